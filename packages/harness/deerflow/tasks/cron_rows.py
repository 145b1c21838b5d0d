"""Schedules: rows that say when to start which run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, select, update

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.json_filter import matches
from deerflow.storage.tables import crons, threads
from deerflow.tasks.job_rows import enqueue

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

    async def create(self, cron: Cron) -> Cron:
        """Raises NotFoundError if its thread does not exist or belongs to someone else."""

        def job(connection: Connection) -> Cron:
            own = (threads.c.thread_id == cron.thread_id, threads.c.user_id == cron.user_id)
            if (
                cron.thread_id is not None
                and connection.execute(select(threads.c.thread_id).where(*own)).first() is None
            ):
                raise NotFoundError(f"Thread {cron.thread_id} not found.")
            connection.execute(insert(crons).values({name: getattr(cron, name) for name in Cron.__slots__}))
            look_when_due(connection)
            return cron

        return await self._database.write(job)

    async def get(self, principal: Principal, cron_id: str) -> Cron:
        return await self._database.read(lambda connection: _get(connection, principal, cron_id))

    async def update(self, principal: Principal, cron_id: str, changes: Mapping[str, Any]) -> Cron:
        def job(connection: Connection) -> Cron:
            connection.execute(update(crons).where(_mine(principal, cron_id)).values(dict(changes)))
            look_when_due(connection)
            return _get(connection, principal, cron_id)

        return await self._database.write(job)

    async def delete(self, principal: Principal, cron_id: str) -> None:
        def job(connection: Connection) -> None:
            if not connection.execute(delete(crons).where(_mine(principal, cron_id))).rowcount:
                raise NotFoundError(f"Cron {cron_id} not found.")

        await self._database.write(job)

    async def search(
        self,
        principal: Principal,
        query: CronQuery,
        *,
        limit: int = 10,
        offset: int = 0,
        sort_by: str = "created_at",
        descending: bool = True,
    ) -> tuple[list[Cron], int]:
        """A page, and how many there are in all. ``sort_by``: one of SORTABLE. Raises InvalidRequestError for odd metadata."""

        def job(connection: Connection) -> tuple[list[Cron], int]:
            wanted = _matching(connection, principal, query)
            column = crons.c["next_run_at" if sort_by == "next_run_date" else sort_by]
            order = (column.desc().nulls_last() if descending else column.asc().nulls_last(), crons.c.cron_id)
            rows = connection.execute(select(crons).where(wanted).order_by(*order).limit(limit).offset(offset))
            total = connection.execute(select(func.count()).select_from(crons).where(wanted)).scalar_one()
            return [_cron(row) for row in rows], total

        return await self._database.browse(job)


def due(connection: Connection, now: datetime, *, limit: int = 100) -> Sequence[Cron]:
    """Crons of all users whose time has come, longest due first."""
    come = and_(crons.c.enabled, crons.c.next_run_at <= now)
    rows = connection.execute(select(crons).where(come).order_by(crons.c.next_run_at).limit(limit))
    return [_cron(row) for row in rows]


def claim(connection: Connection, cron: Cron, next_run_at: datetime | None) -> bool:
    """Move ``cron`` on to its next time. False if another process did so first, or it was changed or deleted."""
    same = and_(
        crons.c.cron_id == cron.cron_id,
        crons.c.enabled,
        crons.c.next_run_at == cron.next_run_at,
        crons.c.updated_at == cron.updated_at,
    )
    return bool(connection.execute(update(crons).where(same).values(next_run_at=next_run_at)).rowcount)


def look_when_due(connection: Connection) -> None:
    """Enqueue the task that starts what is due for the moment when the next cron is, of all users'."""
    soonest = connection.execute(select(func.min(crons.c.next_run_at)).where(crons.c.enabled)).scalar_one()
    if soonest is not None:
        enqueue(connection, CRONS, "", {}, due_at=soonest)


def _mine(principal: Principal, cron_id: str) -> ColumnElement[bool]:
    return and_(crons.c.cron_id == cron_id, crons.c.user_id == principal.user_id)


def _get(connection: Connection, principal: Principal, cron_id: str) -> Cron:
    row = connection.execute(select(crons).where(_mine(principal, cron_id))).one_or_none()
    if row is None:
        raise NotFoundError(f"Cron {cron_id} not found.")
    return _cron(row)


def _matching(connection: Connection, principal: Principal, query: CronQuery) -> ColumnElement[bool]:
    wanted = [crons.c.user_id == principal.user_id]
    if query.assistant_id is not None:
        wanted.append(crons.c.assistant_id == query.assistant_id)
    if query.thread_id is not None:
        wanted.append(crons.c.thread_id == query.thread_id)
    if query.enabled is not None:
        wanted.append(crons.c.enabled.is_(query.enabled))
    if query.metadata:
        wanted.append(matches(connection, crons.c.metadata, query.metadata))
    return and_(*wanted)


def _cron(row: Row[Any]) -> Cron:
    return Cron(**row._asdict())


FIELDS = "minute hour day-of-month month day-of-week"


def next_due(schedule: str, timezone: str | None, after: datetime) -> datetime:
    """The first time after ``after`` that ``schedule`` names, in UTC.

    Expressions of fixed hours are due once a day also on the days when clocks change: a time that is skipped is due
    when clocks have moved on, one that comes twice the first time. Others (``*/15 * * * *``) follow the real time.

    Args:
        schedule: five fields, as in crontab(5).
        timezone: IANA name; None: UTC.

    Raises:
        InvalidRequestError: the expression or the time zone is none, or the time never comes.
    """
    zone = _zone(timezone)
    fields = schedule.split()
    if len(fields) != 5:
        raise InvalidRequestError(f"schedule {schedule!r} has {len(fields)} fields. A schedule has five: {FIELDS}.")
    if any(field[:1] in "RrHh" for field in fields):
        raise InvalidRequestError(f"schedule {schedule!r} is not a cron expression: R and H are not supported.")
    try:
        times = croniter(schedule, after.astimezone(zone))
        due: datetime = times.get_next(datetime)
        while due.fold and "*" not in fields[1]:
            due = times.get_next(datetime)
    except (CroniterError, ValueError, KeyError, IndexError) as error:
        raise InvalidRequestError(f"schedule {schedule!r} cannot be used: {error}.") from error
    return due.astimezone(UTC)


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidRequestError(f"timezone {name!r} is unknown. Use an IANA name such as Europe/Berlin.") from error
