"""Crons: rows that say when to start which run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select

from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.json_filter import matches
from deerflow.storage.list_page import ListPage
from deerflow.storage.tables import crons, threads
from deerflow.storage.visibility import changeable, readable, readable_by, values_of
from deerflow.tasks.jobs import enqueue

CRONS = "crons"
"""The kind of task that looks which crons are due."""
SORTABLE = (
    "cron_id",
    "assistant_id",
    "thread_id",
    "created_at",
    "updated_at",
    "next_run_date",
    "end_time",
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A row of ``crons``. See there for what the columns mean."""

    cron_id: str
    user_id: str
    assistant_id: str
    thread_id: str | None
    schedule: str
    timezone: str | None
    end_time: datetime | None
    enabled: bool
    on_run_completed: str
    payload: dict[str, Any]
    metadata: dict[str, Any]
    next_run_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CronQuery:
    """None means: any."""

    assistant_id: str | None = None
    thread_id: str | None = None
    enabled: bool | None = None
    metadata: Mapping[str, Any] | None = None


class CronRepository:
    """The crons of a principal; those of others raise NotFoundError, like those that do not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, principal: Principal, cron: Cron) -> Cron:
        """Raises NotFoundError if its thread does not exist or belongs to someone else."""

        own = f"SELECT 1 FROM threads WHERE thread_id = ? AND {changeable(threads)}"

        def job(connection: Connection) -> Cron:
            thread_id = cron.thread_id
            if thread_id is not None and not sql.execute(connection, own, thread_id, *values_of(principal)).fetchone():
                raise NotFoundError(f"Thread {thread_id} not found.")
            sql.insert(connection, crons, asdict(cron))
            look_when_due(connection)
            return cron

        return await self._database.write(job)

    async def get(self, principal: Principal, cron_id: str) -> Cron:
        return await self._database.read(_get, principal, cron_id)

    async def update(self, principal: Principal, cron_id: str, changes: Mapping[str, Any]) -> Cron:
        def job(connection: Connection) -> Cron:
            sql.update(connection, crons, changes, _CHANGEABLE, cron_id, *values_of(principal))
            look_when_due(connection)
            return _get(connection, principal, cron_id)

        return await self._database.write(job)

    async def delete(self, principal: Principal, cron_id: str) -> None:
        statement = f"DELETE FROM crons WHERE {_CHANGEABLE}"
        if not await self._database.write(sql.change, statement, cron_id, *values_of(principal)):
            raise NotFoundError(f"Cron {cron_id} not found.")

    async def search(
        self,
        principal: Principal,
        query: CronQuery,
        page: ListPage = ListPage(),
    ) -> tuple[list[Cron], int]:
        """A page, and how many there are in all. Raises InvalidRequestError for an unknown order or odd metadata."""
        sort_by = page.order(SORTABLE, "created_at")
        column = crons.c["next_run_at" if sort_by == "next_run_date" else sort_by]
        order = ((column.desc() if page.descending else column.asc()).nulls_last(), crons.c.cron_id)

        def job(connection: Connection) -> tuple[list[Cron], int]:
            wanted = _matching(connection, principal, query)
            found = select(crons).where(wanted).order_by(*order).limit(page.limit).offset(page.offset)
            rows = connection.execute(found)
            total = connection.execute(select(func.count()).select_from(crons).where(wanted)).scalar_one()
            return [Cron(**row._mapping) for row in rows], total

        return await self._database.browse(job)


def look_when_due(connection: Connection) -> None:
    """Enqueue the task that starts what is due for the moment when the next cron is, of all users'."""
    (soonest,) = sql.execute(connection, f"SELECT min(next_run_at) FROM crons WHERE {GOES}").fetchone()
    if soonest is not None:
        enqueue(connection, CRONS, "", {}, due_at=sql.moment(soonest))


_READABLE = f"WHERE cron_id = ? AND {readable(crons)}"
_CHANGEABLE = f"cron_id = ? AND {changeable(crons)}"
GOES = "enabled AND user_id NOT IN (SELECT id FROM users WHERE suspended_at IS NOT NULL)"
"""Schedules of people who are suspended pause."""


def _get(connection: Connection, principal: Principal, cron_id: str) -> Cron:
    cron = sql.first(connection, Cron, crons, _READABLE, cron_id, *values_of(principal))
    if cron is None:
        raise NotFoundError(f"Cron {cron_id} not found.")
    return cron


def _matching(connection: Connection, principal: Principal, query: CronQuery) -> ColumnElement[bool]:
    wanted = [readable_by(principal, crons)]
    for name in ("assistant_id", "thread_id", "enabled"):
        if (value := getattr(query, name)) is not None:
            wanted.append(crons.c[name] == value)
    if query.metadata:
        wanted.append(matches(connection, crons.c.metadata, query.metadata))
    return and_(*wanted)
