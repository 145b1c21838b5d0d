"""Removing what is over its time: threads, events of runs, old states of threads, leftovers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, Protocol

from sqlalchemy import Connection

from deerflow.config import Paths
from deerflow.features.retention_rows import (
    Amount,
    Rows,
    ThreadOf,
    checkpoint_bytes,
    compactable,
    expendable,
    give_back_space,
    measure,
    outlived,
    remove,
)
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now

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
    """API tokens after they expired, jobs that could not be done."""


class ThreadPruning(Protocol):
    """What is needed of ``ThreadService``."""

    async def prune(
        self, principal: Principal, thread_ids: Sequence[str], strategy: Literal["delete", "keep_latest"]
    ) -> int: ...


class Retention:
    def __init__(self, database: Database, threads: ThreadPruning, paths: Paths) -> None:
        self._database = database
        self._threads = threads
        self._paths = paths

    async def apply(self, policy: RetentionPolicy, *, dry_run: bool = False) -> dict[str, Amount]:
        """Remove what ``policy`` does not keep, and give the space back to the file system.

        Threads with an active run are left alone. May be done while the product is used, and by several processes at once.

        Args:
            dry_run: only look what would be removed.

        Returns:
            How much, by what it is: threads, checkpoints (threads whose older ones were removed), events, tool_executions,
            store_items, sessions, api_tokens, jobs.
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

    async def _delete_threads(self, policy: RetentionPolicy, dry_run: bool) -> Amount:
        now = utc_now()
        idle_since = None if policy.threads is None else now - policy.threads

        def some(connection: Connection, after: str) -> list[ThreadOf]:
            return outlived(connection, now=now, idle_since=idle_since, after=after, limit=_THREADS)

        total = Amount()
        async for thread_id, user_id in self._each(some):
            directory = self._paths.thread_dir(thread_id, user_id)
            size = await asyncio.to_thread(_size, directory) + await self._checkpoint_bytes(thread_id)
            if dry_run or await self._threads.prune(Principal(user_id, source="internal"), [thread_id], "delete"):
                total += Amount(1, size)
        return total

    async def _compact_threads(self, policy: RetentionPolicy, dry_run: bool) -> Amount:
        if policy.checkpoints is None:
            return Amount()
        idle_since = utc_now() - policy.checkpoints

        def some(connection: Connection, after: str) -> list[ThreadOf]:
            return compactable(connection, idle_since=idle_since, after=after, limit=_THREADS)

        total = Amount()
        async for thread_id, user_id in self._each(some):
            size = await self._checkpoint_bytes(thread_id)
            if dry_run:
                total += Amount(1, size)
            elif await self._threads.prune(Principal(user_id, source="internal"), [thread_id], "keep_latest"):
                total += Amount(1, max(0, size - await self._checkpoint_bytes(thread_id)))
        return total

    async def _each(self, some: Callable[[Connection, str], list[ThreadOf]]) -> AsyncIterator[ThreadOf]:
        after = ""
        while found := await self._database.browse(lambda connection, after=after: some(connection, after)):
            for thread in found:
                yield thread
            after = found[-1].thread_id

    async def _checkpoint_bytes(self, thread_id: str) -> int:
        return await self._database.browse(lambda connection: checkpoint_bytes(connection, thread_id))

    async def _measure(self, rows: Rows) -> Amount:
        return await self._database.browse(lambda connection: measure(connection, rows))

    async def _remove(self, rows: Rows) -> Amount:
        total = Amount()
        while True:
            step = await self._database.write(lambda connection: remove(connection, rows, _ROWS))
            total += step
            if step.count < _ROWS:
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
