"""Threads: whose they are, what they are called, and what their owners noted about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import orjson
from sqlalchemy import ColumnElement, Connection, FromClause, and_, func, inspect, or_, select

from deerflow.config import switches
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.budgets import forget_turn
from deerflow.storage.database import Database
from deerflow.storage.json_filter import contains
from deerflow.storage.list_page import ListPage
from deerflow.storage.provenance import UNJUDGED, Source, SourceKind, add_sources, sources_of, trust
from deerflow.storage.search import forget_thread, index_title
from deerflow.storage.tables import threads, utc_now
from deerflow.storage.visibility import (
    GONE,
    NO_OWNER,
    THERE,
    changeable,
    may_change,
    readable,
    readable_by,
    values_of,
)

ThreadStatus = Literal["idle", "busy", "interrupted", "error"]
SORTABLE = ("thread_id", "status", "created_at", "updated_at", "state_updated_at")
IfExists = Literal["raise", "do_nothing"]

OWNER_KEYS = frozenset({"user_id", "owner_id"})
"""Keys of ``metadata`` that clients cannot set: whose a thread is follows from who made it."""

PAUSED = "memory_paused"
"""Key of ``metadata``: true means the same as ``memory`` among what is switched off."""
TEMPORARY = "temporary"
"""Key of ``metadata``, see :attr:`Thread.temporary`."""
TEMPORARY_FOR = timedelta(days=1)
LEAD_AGENT = "lead_agent"
"""The graph of all runs."""
MAX_TITLE = 500
_WAITING = f"WHERE {readable(threads)} AND waits_since IS NOT NULL ORDER BY waits_since DESC, thread_id DESC LIMIT ?"
_READABLE = f"WHERE thread_id = ? AND {readable(threads)}"
_CHANGEABLE = f"WHERE thread_id = ? AND {changeable(threads)}"


@dataclass(frozen=True, slots=True)
class Thread:
    """A row of ``threads``."""

    thread_id: str
    user_id: str
    assistant_id: str | None
    title: str | None
    status: ThreadStatus
    metadata: dict[str, Any]
    epoch: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    waits_since: datetime | None

    @property
    def switched_off(self) -> tuple[str, ...]:
        """Return what its person has switched off in it."""
        off = switches.switches(self.metadata.get(switches.KEY))
        without_memory = self.temporary or self.metadata.get(PAUSED) is True
        return switches.switches([*off, switches.MEMORY]) if without_memory else off

    @property
    def temporary(self) -> bool:
        """Return whether the thread is in no list, no search, no memory and no backup, and goes after a day."""
        return self.metadata.get(TEMPORARY) is True


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """Which threads are meant; everything that is given must hold.

    Args:
        metadata: what a thread's must contain, deeply.
        assistants: by key of ``metadata``, the assistant of threads that are meant whatever they contain; None: any assistant.
        unlisted: temporary threads, too; those that ``ids`` names are meant anyway.
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    ids: Sequence[str] | None = None
    status: ThreadStatus | None = None
    title: str | None = None
    assistants: Mapping[str, str | None] = field(default_factory=dict)
    unlisted: bool = False


class ThreadRepository:
    """Rows of ``threads``, of one owner at a time. A foreign thread is as good as none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        principal: Principal,
        thread_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        assistant_id: str | None = None,
        title: str | None = None,
        expires_at: datetime | None = None,
        if_exists: IfExists = "do_nothing",
    ) -> Thread:
        """Make a thread, or find the one that the principal has under this id.

        Raises:
            ConflictError: the id is taken, and ``if_exists`` is ``raise`` or the thread is not the principal's.
            InvalidRequestError: the metadata cannot be stored.
        """
        storable = _storable(metadata or {})
        row = {
            "thread_id": thread_id,
            "user_id": principal.user_id,
            "assistant_id": assistant_id,
            "title": title,
            "metadata": storable,
            "expires_at": _within_a_day(expires_at) if storable.get(TEMPORARY) else expires_at,
        }

        def create(connection: Connection) -> Thread:
            made = _insert(connection, row)
            found = find(connection, thread_id)
            if found is None or not may_change(principal, found) or (not made and if_exists == "raise"):
                raise ConflictError(f"A thread with the id {thread_id} cannot be created: the id is taken.")
            if made and title and not found.temporary:
                index_title(connection, thread_id, principal.user_id, title)
            return found

        return await self._database.write(create)

    async def get(self, principal: Principal, thread_id: str, *, to_change: bool = False) -> Thread:
        """Raises NotFoundError, with ``to_change`` also for a thread that the principal may only read."""
        return await self._database.read(changeable_thread if to_change else readable_thread, principal, thread_id)

    async def check_not_foreign(self, principal: Principal, thread_id: str) -> None:
        """Raises NotFoundError for a thread of someone else's; one that is not there yet is anyone's."""
        found = await self._database.browse(find, thread_id)
        if found is not None and not may_change(principal, found):
            raise NotFoundError(f"There is no thread {thread_id}.", reason="thread_gone")

    async def update(
        self,
        principal: Principal,
        thread_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
    ) -> Thread:
        """Merge ``metadata`` into the thread's, key by key. ``updated_at`` stays: it tells when the conversation went on.

        A thread becomes temporary, or a lasting one, before its first run alone.

        Raises NotFoundError, or InvalidRequestError for metadata that cannot be stored.
        """
        new = _storable(metadata or {})

        def update_row(connection: Connection) -> Thread:
            thread = changeable_thread(connection, principal, thread_id, lock=True)
            values: dict[str, Any] = {"metadata": {**thread.metadata, **new}}
            changed = replace(thread, **values)
            if changed.temporary != thread.temporary and thread.epoch:
                raise InvalidRequestError("A chat that has begun can neither become temporary nor be kept.")
            if changed.temporary:
                values["expires_at"] = _within_a_day(expires_at or thread.expires_at)
            elif expires_at is not None or thread.temporary:
                values["expires_at"] = expires_at
            sql.update(connection, threads, values, "thread_id = ?", thread_id)
            return replace(thread, **values)

        return await self._database.write(update_row)

    async def search(
        self,
        principal: Principal,
        wanted: ThreadFilter = ThreadFilter(),
        page: ListPage = ListPage(),
    ) -> tuple[list[Thread], int]:
        """One page of the principal's threads, and how many there are in all. Raises InvalidRequestError for an unknown order."""
        sort_by = page.order(SORTABLE, "updated_at")
        column = threads.c["updated_at" if sort_by == "state_updated_at" else sort_by]
        order = [key.desc() if page.descending else key.asc() for key in dict.fromkeys((column, threads.c.thread_id))]

        def search(connection: Connection) -> tuple[list[Thread], int]:
            where = _where(connection, principal, wanted)
            found = select(threads).where(where).order_by(*order).limit(page.limit).offset(page.offset)
            return [Thread(**row._mapping) for row in connection.execute(found)], _count(connection, where)

        return await self._database.browse(search)

    async def count(self, principal: Principal, wanted: ThreadFilter = ThreadFilter()) -> int:
        return await self._database.browse(lambda connection: _count(connection, _where(connection, principal, wanted)))

    async def waiting(self, principal: Principal, limit: int) -> list[Thread]:
        """The principal's threads that wait for a decision or an answer, those that began to wait last first."""
        found = await self._database.browse(sql.select, Thread, threads, _WAITING, *values_of(principal), limit)
        return [thread for thread in found if not thread.temporary]

    async def dismiss(self, principal: Principal, thread_id: str) -> None:
        """Take the thread from those that wait, until it asks again. Raises NotFoundError."""

        def job(connection: Connection) -> None:
            changeable_thread(connection, principal, thread_id, lock=True)
            sql.update(connection, threads, {"waits_since": None}, "thread_id = ?", thread_id)

        await self._database.write(job)

    async def add_sources(self, thread_id: str, sources: Sequence[Source]) -> None:
        """Record where foreign text that is about to come into a thread is from."""
        await self._database.write(add_sources, thread_id, sources)

    async def sources(self, principal: Principal, thread_id: str) -> list[Source]:
        """Return where foreign text in the thread came from, the oldest first. Raises NotFoundError."""

        def job(connection: Connection) -> list[Source]:
            readable_thread(connection, principal, thread_id)
            return [source for source in sources_of(connection, thread_id) if source.kind != UNJUDGED]

        return await self._database.read(job)

    async def trust(self, principal: Principal, thread_id: str, kind: SourceKind, name: str) -> None:
        """Trust what a source has brought so far. Raises NotFoundError."""

        def job(connection: Connection) -> bool:
            changeable_thread(connection, principal, thread_id, lock=True)
            return kind != UNJUDGED and trust(connection, thread_id, kind, name)

        if not await self._database.write(job):
            raise NotFoundError(f"The thread has no source {name!r} of the kind {kind}.")

    async def set_title(self, principal: Principal, thread_id: str, title: str) -> None:
        """Raises NotFoundError."""

        def rename(connection: Connection) -> None:
            changeable_thread(connection, principal, thread_id, lock=True)
            set_title(connection, thread_id, title)

        await self._database.write(rename)


# what others compose into their transactions ----------------------------------------------------------------------------


def find(connection: Connection, thread_id: str) -> Thread | None:
    """The thread, whoever owns it."""
    return sql.first(connection, Thread, threads, "WHERE thread_id = ?", thread_id)


def readable_thread(connection: Connection, principal: Principal, thread_id: str) -> Thread:
    """Return a thread that the principal may read. Raises NotFoundError."""
    return _first(connection, _READABLE, principal, thread_id)


def changeable_thread(connection: Connection, principal: Principal, thread_id: str, *, lock: bool = False) -> Thread:
    """Return a thread that the principal may change; ``lock`` keeps others from it until the transaction ends.

    Raises NotFoundError.
    """
    tail = _CHANGEABLE + sql.for_update(connection) if lock else _CHANGEABLE
    return _first(connection, tail, principal, thread_id)


def set_status(connection: Connection, thread_id: str, status: ThreadStatus, *, waits: bool = False) -> None:
    """Also notes that the conversation went on, and whether it waits for its person."""
    now = utc_now()
    values = {"status": status, "updated_at": now, "waits_since": now if waits else None}
    sql.update(connection, threads, values, "thread_id = ?", thread_id)


def set_title(connection: Connection, thread_id: str, title: str, *, only_if_missing: bool = False) -> bool:
    """Name the thread, on one line and not too long. ``only_if_missing``: a name that it has stays. True if it was named.

    That is no news of the conversation, whose time stays as it is."""
    title = shortened(title)
    where = f"thread_id = ? AND {THERE}" + (" AND title IS NULL" if only_if_missing else "")
    statement = f"UPDATE threads SET title = ? WHERE {where} RETURNING user_id, expires_at"
    named = sql.execute(connection, statement, title, thread_id).fetchone()
    if named is None:
        return False
    thread = find(connection, thread_id) if named[1] is not None else None
    if thread is None or not thread.temporary:
        index_title(connection, thread_id, named[0], title)
    return True


def shortened(title: str) -> str:
    """A title as it is stored: one line without control characters."""
    printable = "".join(character if character.isprintable() else " " for character in title)
    return " ".join(printable.split())[:MAX_TITLE]


def begin_deletion(connection: Connection, user_id: str, thread_id: str) -> bool:
    """Take the thread from its owner, with all rows about it: from now on it is not there for anyone, nor is its id free.

    What is kept elsewhere (checkpoints, files) goes next, then :func:`end_deletion`. False if a run of it is active.
    Raises NotFoundError.
    """
    changeable_thread(connection, Principal(user_id, source="internal"), thread_id, lock=True)
    active = """SELECT 1 FROM runs WHERE thread_id = ?
        AND status IN ('pending', 'running') AND COALESCE(stop_reason, '') <> 'cancelled' LIMIT 1"""
    if sql.execute(connection, active, thread_id).fetchone():
        return False
    for table in ("tool_executions", "steering"):
        of_runs = f"DELETE FROM {table} WHERE run_id IN (SELECT run_id FROM runs WHERE thread_id = ?)"
        sql.execute(connection, of_runs, thread_id)
    newest = "SELECT COALESCE(turn_id, run_id) FROM runs WHERE thread_id = ? ORDER BY position DESC LIMIT 1"
    for (turn_id,) in sql.execute(connection, newest, thread_id).fetchall():
        forget_turn(connection, turn_id)
    for table in ("feedback", "run_events", "turns", "runs", "crons", "thread_pages", "task_transcripts"):
        sql.execute(connection, f"DELETE FROM {table} WHERE thread_id = ?", thread_id)
    sql.execute(connection, "DELETE FROM budgets WHERE scope = 'thread' AND key = ?", thread_id)
    of_files = "DELETE FROM jobs WHERE substr(key, 1, ?) = ?"
    sql.execute(connection, of_files, len(thread_id) + 1, f"{thread_id}/")
    forget_thread(connection, thread_id)
    nothing = dict.fromkeys(("title", "expires_at", "waits_since"))
    gone = {"user_id": NO_OWNER, "metadata": {"deleted_from": user_id}, **nothing}
    sql.update(connection, threads, gone, "thread_id = ?", thread_id)
    return True


def end_deletion(connection: Connection, thread_id: str) -> None:
    for table in ("thread_sources", "thread_addresses"):
        sql.execute(connection, f"DELETE FROM {table} WHERE thread_id = ?", thread_id)
    sql.execute(connection, f"DELETE FROM threads WHERE thread_id = ? AND {GONE}", thread_id)


def unfinished_deletions(connection: Connection) -> list[tuple[str, str]]:
    """``(thread_id, user_id)`` of threads whose deletion was begun and not ended: the process died in between."""
    found = sql.select(connection, Thread, threads, f"WHERE {GONE}")
    return [(thread.thread_id, thread.metadata["deleted_from"]) for thread in found]


def expired(connection: Connection, limit: int = 100) -> list[tuple[str, str]]:
    """``(thread_id, user_id)`` of threads whose time is over."""
    over = f"SELECT thread_id, user_id FROM threads WHERE expires_at < ? AND {THERE} LIMIT ?"
    return sql.execute(connection, over, utc_now(), limit).fetchall()


def temporary_threads(connection: Connection) -> list[tuple[str, str]]:
    """Return ``(thread_id, user_id)`` of all temporary threads; also of a database of an older version, or without threads."""
    if not inspect(connection).has_table(threads.name):
        return []
    columns = threads.c
    found = select(columns.thread_id, columns.user_id).where(*_is_temporary(connection, threads))
    return [(thread_id, user_id) for thread_id, user_id in connection.execute(found)]


def _is_temporary(connection: Connection, table: FromClause) -> tuple[ColumnElement[bool], ...]:
    """Conditions that the index of what expires answers, so that no other row is looked at."""
    return table.c.expires_at.is_not(None), contains(connection, table.c.metadata, {TEMPORARY: True})


def _within_a_day(moment: datetime | None) -> datetime:
    latest = utc_now() + TEMPORARY_FOR
    return min(moment, latest) if moment is not None else latest


def _first(connection: Connection, tail: str, principal: Principal, thread_id: str) -> Thread:
    thread = sql.first(connection, Thread, threads, tail, thread_id, *values_of(principal))
    if thread is None:
        raise NotFoundError(f"There is no thread {thread_id}.", reason="thread_gone")
    return thread


def _insert(connection: Connection, row: Mapping[str, Any]) -> bool:
    now = utc_now()
    values = {**row, "status": "idle", "epoch": 0, "created_at": now, "updated_at": now}
    made = sql.insert(connection, threads, values, "ON CONFLICT (thread_id) DO NOTHING RETURNING thread_id")
    return made.fetchone() is not None


def _storable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    sql.check_unicode(metadata, "metadata")
    switches.switches(metadata.get(switches.KEY))
    if not isinstance(metadata.get(TEMPORARY, False), bool):
        raise InvalidRequestError(f"metadata: {TEMPORARY} must be true or false.")
    try:
        encoded = orjson.dumps(metadata)
    except TypeError as error:
        raise InvalidRequestError(f"metadata cannot be stored: {error}.") from error
    if b"\\u0000" in encoded:
        raise InvalidRequestError("metadata cannot be stored: it holds a NUL character.")
    return {key: value for key, value in metadata.items() if key not in OWNER_KEYS}


def _where(connection: Connection, principal: Principal, wanted: ThreadFilter) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = [readable_by(principal, threads)]
    if wanted.ids is not None:
        conditions.append(threads.c.thread_id.in_(wanted.ids))
    elif not wanted.unlisted:
        others = threads.alias()
        temporary = select(others.c.thread_id).where(*_is_temporary(connection, others))
        conditions.append(threads.c.thread_id.not_in(temporary))
    for name in ("status", "title"):
        if (value := getattr(wanted, name)) is not None:
            conditions.append(threads.c[name] == value)
    if metadata := _storable(wanted.metadata):
        try:
            for key, assistant_id in wanted.assistants.items():
                of_assistant = threads.c.assistant_id
                ran = of_assistant.is_not(None) if assistant_id is None else of_assistant == assistant_id
                conditions.append(or_(ran, contains(connection, threads.c.metadata, {key: metadata.pop(key)})))
            conditions.append(contains(connection, threads.c.metadata, metadata))
        except ValueError as error:
            raise InvalidRequestError(f"metadata: {error}") from error
    return and_(*conditions)


def _count(connection: Connection, where: ColumnElement[bool]) -> int:
    return connection.execute(select(func.count()).select_from(threads).where(where)).scalar_one()
