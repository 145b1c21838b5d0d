"""Removing what is over its time (threads, events of runs, old states of threads, leftovers), and all that belongs to a person."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    Text,
    cast,
    delete,
    exists,
    func,
    inspect,
    select,
    text,
    tuple_,
)

from deerflow.config import Paths
from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.tables import (
    api_tokens,
    assistants,
    budgets,
    channel_codes,
    channel_connections,
    channel_conversations,
    channel_decisions,
    channel_identities,
    channel_inbox,
    channel_outbox,
    crons,
    grants,
    jobs,
    mcp_authorizations,
    mcp_connections,
    memory_facts,
    memory_sections,
    run_events,
    runs,
    sessions,
    store_items,
    threads,
    tool_decisions,
    tool_executions,
    utc_now,
)
from deerflow.storage.threads import ThreadFilter
from deerflow.storage.visibility import NO_OWNER
from deerflow.threads.service import ThreadService

_CHANNELS = timedelta(days=30)
"""For so long a platform may deliver a message again, and a message of ours may still be edited."""
_VACUUM_PAGES = 4000
"""Pages freed before others may write."""


@dataclass(frozen=True, slots=True)
class Removed:
    """How many, and about how many bytes they take."""

    count: int = 0
    bytes: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(self.count + other.count, self.bytes + other.bytes)


class Rows(NamedTuple):
    """Rows of a table that may go. ``size``: what says how many bytes one takes."""

    table: Table
    where: ColumnElement[bool]
    size: ColumnElement[int]


def expendable(*, now: datetime, events_before: datetime | None, leftovers_before: datetime) -> dict[str, Rows]:
    """What may be removed, by name.

    Args:
        events_before: the events of runs that ended before may go. None: they stay.
        leftovers_before: tokens that expired before may go. Jobs stay, however late they are: their worker does or ends each.
    """
    found = {
        "store_items": Rows(store_items, store_items.c.expires_at < now, func.length(cast(store_items.c.value, Text))),
        "sessions": Rows(sessions, sessions.c.expires_at < now, func.length(sessions.c.id)),
        "api_tokens": Rows(api_tokens, api_tokens.c.expires_at < leftovers_before, func.length(api_tokens.c.hash)),
        "budgets": Rows(
            budgets,
            (budgets.c.day != "") & (budgets.c.day < (now - timedelta(days=2)).date().isoformat()),
            func.length(budgets.c.key),
        ),
    }
    found |= _of_channels(min(leftovers_before, now - _CHANNELS))
    if events_before is not None:
        ended = select(runs.c.run_id).where(runs.c.ended_at < events_before)
        found["events"] = Rows(run_events, run_events.c.run_id.in_(ended), func.length(run_events.c.data))
        calls = tool_executions.c
        found["tool_executions"] = Rows(tool_executions, calls.run_id.in_(ended), func.length(calls.call))
        made = tool_decisions.c
        found["tool_decisions"] = Rows(tool_decisions, made.run_id.in_(ended), func.length(made.code))
    return found


def _of_channels(before: datetime) -> dict[str, Rows]:
    came, went, asked = channel_inbox.c, channel_outbox.c, channel_decisions.c
    is_done = (came.accepted_at < before) & (came.state != "accepted")
    is_sent = (went.updated_at < before) & went.state.in_(("sent", "dead"))
    codes = channel_codes.c
    return {
        "channel_decisions": Rows(channel_decisions, asked.until < before, func.length(asked.key_hash)),
        "channel_codes": Rows(channel_codes, codes.until < before, func.length(codes.hash)),
        "channel_inbox": Rows(channel_inbox, is_done, func.length(cast(came.body, Text))),
        "channel_outbox": Rows(channel_outbox, is_sent, func.length(cast(went.body, Text))),
    }


_CHECKPOINTS = {
    "sqlite": {
        "checkpoints": "length(checkpoint) + length(metadata) + coalesce(length(writes), 0)",
        "writes": "length(value)",
    },
    "postgresql": {
        "checkpoints": "length(checkpoint::text) + length(metadata::text)",
        "checkpoint_blobs": "length(blob)",
        "checkpoint_writes": "length(blob)",
    },
}


async def give_back_space(database: Database) -> None:
    """Shrink the file of a SQLite database by what was deleted; PostgreSQL does that by itself."""
    if database.is_postgres:
        return
    while await asyncio.wrap_future(database.sqlite.submit(_vacuum, alone=True)):
        pass
    await asyncio.wrap_future(database.sqlite.submit(_truncate_log, alone=True))


def _vacuum(connection: sqlite3.Connection) -> bool:
    """Whether pages were freed."""
    before = _pages(connection)
    # executescript steps the pragma to its end; execute would free a single page.
    connection.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES});")
    return _pages(connection) < before


def _pages(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA page_count").fetchone()[0]


def _truncate_log(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


_ROWS = 500
"""Rows removed in one transaction: others who write do not wait for more."""
_THREADS = 200


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long things are kept after they were last of use; None: for ever. A thread's own ``expires_at`` holds besides."""

    threads: timedelta | None = None
    """Threads that nobody used, with their files."""
    events: timedelta | None = timedelta(days=30)
    """What was streamed while runs were on their way. What was said stays with the thread."""
    checkpoints: timedelta | None = timedelta(days=30)
    """The way back to earlier turns. The thread as it is now stays."""
    leftovers: timedelta = timedelta(days=30)
    """API tokens after they expired."""


class Retention:
    def __init__(self, database: Database, threads: ThreadService, paths: Paths) -> None:
        self._database = database
        self._threads = threads
        self._paths = paths

    async def apply(self, policy: RetentionPolicy, *, dry_run: bool = False) -> dict[str, Removed]:
        """Remove what ``policy`` does not keep, and give the space back to the file system.

        Threads with an active run are left alone. May be done while the product is used, and by several processes at once.

        Args:
            dry_run: only look what would be removed.

        Returns:
            How much, by what it is: threads, checkpoints (threads whose older ones were removed), events, tool_executions,
            store_items, sessions, api_tokens, budgets, and messages, decisions and codes of channels.
        """
        now = utc_now()
        report = {
            "threads": await self._delete_threads(policy, dry_run),
            "checkpoints": await self._compact_threads(policy, dry_run),
        }
        events_before = None if policy.events is None else now - policy.events
        rows = expendable(now=now, events_before=events_before, leftovers_before=now - policy.leftovers)
        for name, some in rows.items():
            report[name] = await (self._measure(some) if dry_run else self._remove(some))
        if not dry_run:
            await give_back_space(self._database)
        return report

    async def _delete_threads(self, policy: RetentionPolicy, dry_run: bool) -> Removed:
        now = utc_now()
        over = threads.c.expires_at < now
        if policy.threads is not None:
            over |= threads.c.updated_at < now - policy.threads
        total = Removed()
        async for thread_id, user_id in self._each(over):
            directory = self._paths.thread_dir(thread_id, user_id)
            size = await asyncio.to_thread(_size, directory) + await self._checkpoint_bytes(thread_id)
            if dry_run or await self._threads.prune(Principal(user_id, source="internal"), [thread_id], "delete"):
                total += Removed(1, size)
        return total

    async def _compact_threads(self, policy: RetentionPolicy, dry_run: bool) -> Removed:
        if policy.checkpoints is None:
            return Removed()
        if not await self._database.browse(lambda connection: inspect(connection).has_table("checkpoints")):
            return Removed()
        idle = (threads.c.updated_at < utc_now() - policy.checkpoints) & (threads.c.status == "idle")
        several = text("(SELECT count(*) FROM checkpoints c WHERE c.thread_id = threads.thread_id) > 1")
        total = Removed()
        async for thread_id, user_id in self._each(idle & several.self_group()):
            size = await self._checkpoint_bytes(thread_id)
            if dry_run:
                total += Removed(1, size)
            elif await self._threads.prune(Principal(user_id, source="internal"), [thread_id], "keep_latest"):
                total += Removed(1, max(0, size - await self._checkpoint_bytes(thread_id)))
        return total

    async def _each(self, where: ColumnElement[bool]) -> AsyncIterator[tuple[str, str]]:
        """Such threads without an active run, each with its owner, in the order of their ids."""
        active = exists().where(runs.c.thread_id == threads.c.thread_id, runs.c.status.in_(("pending", "running")))
        query = select(threads.c.thread_id, threads.c.user_id).order_by(threads.c.thread_id).limit(_THREADS)
        # A thread without an owner is being deleted already.
        page = query = query.where(where, threads.c.user_id != NO_OWNER, ~active)
        while found := await self._database.browse(lambda connection, page=page: connection.execute(page).all()):
            for thread_id, user_id in found:
                yield thread_id, user_id
            page = query.where(threads.c.thread_id > found[-1].thread_id)

    async def _checkpoint_bytes(self, thread_id: str) -> int:
        def job(connection: Connection) -> int:
            total = 0
            for table, size in _CHECKPOINTS[connection.dialect.name].items():
                if inspect(connection).has_table(table):
                    query = text(f"SELECT sum({size}) FROM {table} WHERE thread_id = :thread")
                    total += int(connection.execute(query, {"thread": thread_id}).scalar() or 0)
            return total

        return await self._database.browse(job)

    async def _measure(self, rows: Rows) -> Removed:
        query = select(func.count(), func.sum(rows.size)).where(rows.where)
        count, size = await self._database.browse(lambda connection: connection.execute(query).one())
        return Removed(count, int(size or 0))

    async def _remove(self, rows: Rows) -> Removed:
        key = list(rows.table.primary_key)
        some = select(*key).where(rows.where).limit(_ROWS)
        statement = delete(rows.table).where(tuple_(*key).in_(some)).returning(rows.size)
        total = Removed()
        while True:
            sizes = await self._database.write(lambda connection: connection.execute(statement).scalars().all())
            total += Removed(len(sizes), sum(size or 0 for size in sizes))
            if len(sizes) < _ROWS:
                return total


def _size(directory: Path) -> int:
    """Bytes of the files below; what vanishes meanwhile counts as nothing."""
    total = 0
    for parent, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118
            except OSError:
                continue
    return total


# what belongs to a person --------------------------------------------------------------------------------------------


async def delete_belongings(database: Database, service: ThreadService, paths: Paths, user_id: str) -> None:
    """Delete all threads, files, assistants, crons, store items, grants, memory, connections and chats of a user. Can be repeated.

    Raises:
        ConflictError: new runs start on a thread again and again.
        OSError: files cannot be deleted.
    """
    principal = Principal(user_id, source="internal")
    await database.write(_delete_rows, user_id)
    while found := (await service.repository.search(principal, ThreadFilter(unlisted=True), ListPage(_THREADS)))[0]:
        for thread in found:
            with suppress(NotFoundError):
                await service.delete(principal, thread.thread_id)
    await database.write(_delete_rows, user_id)  # what runs still wrote until they stopped
    await asyncio.to_thread(paths.remove, paths.user_dir(user_id))


def _delete_rows(connection: Connection, user_id: str) -> None:
    talks, went = channel_conversations.c, channel_outbox.c
    theirs = exists().where(
        talks.user_id == user_id,
        talks.connection_id == went.connection_id,
        talks.chat == went.chat,
        talks.topic == went.topic,
    )
    connection.execute(delete(channel_outbox).where(theirs))
    own = (crons, assistants, store_items, grants, memory_facts, memory_sections, mcp_connections, mcp_authorizations)
    chats = (channel_inbox, channel_conversations, channel_identities, channel_codes, channel_connections)
    for table in (*own, *chats):
        connection.execute(delete(table).where(table.c.user_id == user_id))
    connection.execute(delete(jobs).where(jobs.c.payload["user_id"].as_string() == user_id))
