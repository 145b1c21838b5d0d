"""Rows of assistants, in versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, delete, func, insert, select, update

from deerflow.errors import ConflictError, NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.json_filter import matches
from deerflow.storage.list_page import ListPage
from deerflow.storage.moment import Moment
from deerflow.storage.tables import assistant_versions, assistants, threads, utc_now
from deerflow.storage.threads import LEAD_AGENT
from deerflow.storage.visibility import changeable_by, readable_by

SORTABLE = ("assistant_id", "graph_id", "name", "created_at", "updated_at")
OWN = ("assistant_id", "graph_id", "version", "created_at", "updated_at")
VERSIONED = ("name", "description", "config", "context", "metadata")


@dataclass(frozen=True, slots=True)
class Assistant:
    """An assistant as one of its versions has it, and as clients see it; ``updated_at`` is when that became the latest."""

    assistant_id: str
    graph_id: Annotated[str, Field(examples=[LEAD_AGENT])]
    name: str
    description: str | None
    config: dict[str, Any]
    context: dict[str, Any]
    metadata: dict[str, Any]
    version: int
    created_at: Moment
    updated_at: Moment


@dataclass(frozen=True, slots=True)
class AssistantQuery:
    """None means: any. ``name``: a part of it, in any case."""

    graph_id: str | None = None
    name: str | None = None
    metadata: Mapping[str, Any] | None = None


class AssistantRepository:
    """The assistants of a principal; those of others raise NotFoundError, like those that do not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, principal: Principal, new: Assistant) -> Assistant:
        """Raises ConflictError if the id is taken, by whomever."""

        def job(connection: Connection) -> Assistant:
            taken = select(assistants.c.assistant_id).where(assistants.c.assistant_id == new.assistant_id)
            if connection.execute(taken).first() is not None:
                raise ConflictError(f"Assistant {new.assistant_id} already exists.")
            row = {name: getattr(new, name) for name in OWN}
            connection.execute(insert(assistants).values(user_id=principal.user_id, **row))
            _add_version(connection, new)
            return new

        return await self._database.write(job)

    async def get(self, principal: Principal, assistant_id: str) -> Assistant:
        return await self._database.read(lambda connection: _get(connection, principal, assistant_id))

    async def update(self, principal: Principal, assistant_id: str, changes: Mapping[str, Any]) -> Assistant:
        """A new version, which becomes the latest. ``changes``: of VERSIONED; metadata is merged, the rest replaced."""

        def job(connection: Connection) -> Assistant:
            old = _get(connection, principal, assistant_id, lock=True)
            of = assistant_versions.c.assistant_id == assistant_id
            newest = connection.execute(select(func.max(assistant_versions.c.version)).where(of)).scalar_one()
            fields = {name: getattr(old, name) for name in Assistant.__slots__} | dict(changes)
            fields["metadata"] = {**old.metadata, **changes.get("metadata", {})}
            new = Assistant(**(fields | {"version": newest + 1, "updated_at": utc_now()}))
            _add_version(connection, new)
            _set_latest(connection, new.assistant_id, new.version, new.updated_at)
            return new

        return await self._database.write(job)

    async def set_latest(self, principal: Principal, assistant_id: str, version: int) -> Assistant:
        def job(connection: Connection) -> Assistant:
            _get(connection, principal, assistant_id, lock=True)
            here = (assistant_versions.c.assistant_id == assistant_id, assistant_versions.c.version == version)
            if connection.execute(select(assistant_versions.c.version).where(*here)).first() is None:
                raise NotFoundError(f"Assistant {assistant_id} has no version {version}.")
            _set_latest(connection, assistant_id, version, utc_now())
            return _get(connection, principal, assistant_id)

        return await self._database.write(job)

    async def versions(
        self,
        principal: Principal,
        assistant_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        page: ListPage = ListPage(),
    ) -> list[Assistant]:
        """Newest first; ``updated_at`` and ``created_at`` are those of the version."""

        def job(connection: Connection) -> list[Assistant]:
            _get(connection, principal, assistant_id)
            version = assistant_versions.c
            made = version.created_at
            query = (
                select(assistants.c.graph_id, *assistant_versions.c, made.label("updated_at"))
                .join(assistants, assistants.c.assistant_id == version.assistant_id)
                .where(version.assistant_id == assistant_id)
                .order_by(version.version.desc())
            )
            if metadata:
                query = query.where(matches(connection, version.metadata, metadata))
            return [_from(row) for row in connection.execute(query.limit(page.limit).offset(page.offset))]

        return await self._database.browse(job)

    async def search(
        self,
        principal: Principal,
        query: AssistantQuery,
        page: ListPage = ListPage(),
    ) -> tuple[list[Assistant], int]:
        """A page, and how many there are in all. Raises InvalidRequestError for an unknown order or odd metadata."""
        sort_by = page.order(SORTABLE, "created_at")
        column = assistant_versions.c.name if sort_by == "name" else assistants.c[sort_by]
        order = (column.desc() if page.descending else column.asc(), assistants.c.assistant_id)

        def job(connection: Connection) -> tuple[list[Assistant], int]:
            wanted = _latest().where(_matching(connection, principal, query))
            rows = connection.execute(wanted.order_by(*order).limit(page.limit).offset(page.offset))
            total = connection.execute(select(func.count()).select_from(wanted.subquery())).scalar_one()
            return [_from(row) for row in rows], total

        return await self._database.browse(job)

    async def delete(self, principal: Principal, assistant_id: str) -> None:
        def job(connection: Connection) -> None:
            _get(connection, principal, assistant_id, lock=True)
            # Not left to the foreign key, which SQLite enforces only if it is switched on.
            connection.execute(delete(assistant_versions).where(assistant_versions.c.assistant_id == assistant_id))
            connection.execute(delete(assistants).where(assistants.c.assistant_id == assistant_id))

        await self._database.write(job)

    async def thread_ids(self, principal: Principal, assistant_id: str) -> list[str]:
        """Threads of the principal's that last ran this assistant."""
        mine = (changeable_by(principal, threads), threads.c.assistant_id == assistant_id)
        return await self._database.browse(lambda c: list(c.scalars(select(threads.c.thread_id).where(*mine))))


def _latest() -> Select[Any]:
    """Assistants joined to their latest versions."""
    version = assistant_versions.c
    same = and_(version.assistant_id == assistants.c.assistant_id, version.version == assistants.c.version)
    return select(*(assistants.c[name] for name in OWN), *(version[name] for name in VERSIONED)).join(
        assistant_versions, same
    )


def _get(connection: Connection, principal: Principal, assistant_id: str, *, lock: bool = False) -> Assistant:
    may = changeable_by if lock else readable_by
    mine = and_(assistants.c.assistant_id == assistant_id, may(principal, assistants))
    if lock:
        # Apart from the join: PostgreSQL would not find the version that a change it waited for has just made.
        connection.execute(select(assistants.c.assistant_id).where(mine).with_for_update())
    row = connection.execute(_latest().where(mine)).one_or_none()
    if row is None:
        raise NotFoundError(f"Assistant {assistant_id} not found.")
    return _from(row)


def _add_version(connection: Connection, new: Assistant) -> None:
    row = {name: getattr(new, name) for name in ("assistant_id", "version", *VERSIONED)}
    connection.execute(insert(assistant_versions).values(**row, created_at=new.updated_at))


def _set_latest(connection: Connection, assistant_id: str, version: int, now: datetime) -> None:
    this = update(assistants).where(assistants.c.assistant_id == assistant_id)
    connection.execute(this.values(version=version, updated_at=now))


def _matching(connection: Connection, principal: Principal, query: AssistantQuery) -> ColumnElement[bool]:
    wanted = [readable_by(principal, assistants)]
    if query.graph_id is not None:
        wanted.append(assistants.c.graph_id == query.graph_id)
    if query.name is not None:
        wanted.append(assistant_versions.c.name.icontains(query.name, autoescape=True))
    if query.metadata:
        wanted.append(matches(connection, assistant_versions.c.metadata, query.metadata))
    return and_(*wanted)


def _from(row: Row[Any]) -> Assistant:
    return Assistant(**row._asdict())
