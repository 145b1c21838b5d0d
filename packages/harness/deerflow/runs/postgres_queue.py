"""The queue of a product that is many processes is the table of runs itself: who gets the lock of a thread executes what is due in it.

The lock goes with the process that holds it, so one look finds new, due, orphaned and forgotten runs alike. Notices only say that it
is worth to look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from deerflow.event_loop import end
from deerflow.events.notify import Notifier
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.errors import is_out_of_reach
from deerflow.storage.postgres_lock import END_FROZEN, FROZEN, IS_TAKEN, LEASE, PostgresThreadLock
from deerflow.storage.tables import utc_now
from deerflow.storage.thread_lock import LockLostError, ThreadBusyError
from deerflow.tasks.queue import Execute, Interrupt, retry_delay

logger = logging.getLogger(__name__)

RUNS, CANCEL = "queue", "cancel"
"""Channels to other processes: there are runs; a run was asked to stop."""

LOOK = 0.5
"""Seconds between two looks for runs that became due, or whose process died."""

AT_ONCE = 8
"""So many are taken at a time, that other processes get some."""

WATCH, WATCH_OTHERS = 1.0, 5.0
"""Seconds between two looks for frozen processes, of the one that watches and of each other one, since that one may freeze itself."""

LOOKS = 3
"""Looks in a row at which a process must be silent: after the machine slept all are, for a moment."""

WATCHER = "the process that looks for frozen ones"
"""The name of its lock, beside the ids of threads."""

REMEMBERED = 10.0
"""Seconds after its rest in which a run is found again if it has not ended."""

DUE = f"""WITH heads AS MATERIALIZED (
    SELECT DISTINCT ON (thread_id) run_id, thread_id, user_id, attempt, created_at FROM runs
    WHERE status IN ('pending', 'running') AND (due_at IS NULL OR due_at <= %(now)s)
    ORDER BY thread_id, attempt = 0, position
), fair AS MATERIALIZED (
    SELECT run_id, thread_id FROM (
        SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY attempt = 0, created_at) AS share FROM heads
    ) AS shared
    WHERE run_id <> ALL (%(but)s::text[]) AND thread_id <> ALL (%(ours)s::text[]) ORDER BY share, created_at
) SELECT run_id, thread_id FROM fair WHERE {IS_TAKEN} LIMIT %(most)s"""
"""SQL: lock free threads whose turn it is. A person's runs are numbered, those being executed first; the lowest number
comes next, so that the runs of one person do not keep those of others waiting."""


class PostgresQueue:
    """A :class:`~deerflow.tasks.queue.RunQueue` for all processes that use one PostgreSQL database.

    Args:
        lock: of threads; what executes a run must hold it while it does.
    """

    def __init__(self, database: Database, notifier: Notifier, lock: PostgresThreadLock) -> None:
        self._database = database
        self._notifier = notifier
        self._lock = lock
        self._execute: Execute | None = None
        self._interrupt: Interrupt | None = None
        self._concurrency = 0
        self._bell = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._rung: set[str] = set()
        """Those of the running that were deferred again since they began."""
        self._rests: dict[str, _Rest] = {}
        """Runs that were executed here and need not have ended."""
        self._crowded = False
        """There may be runs that wait for room here: a new one does not begin before them."""
        self._helpers: list[asyncio.Task[None]] = []

    async def defer(self, run_id: str, thread_id: str, *, at: datetime | None = None) -> None:
        """See :class:`RunQueue`. What is due later is found when it is due."""
        if at is not None and at > utc_now():
            return
        self._wake([run_id])
        if self._room() <= 0:
            await self._notifier.send(RUNS, [run_id])

    def begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> bool:
        if self._crowded or self._room() <= 0:
            return False
        self._start(run_id, work)
        return True

    async def cancel(self, run_id: str) -> None:
        self._stop([run_id])
        await self._notifier.send(CANCEL, [run_id])

    async def start(self, execute: Execute, interrupt: Interrupt, *, concurrency: int) -> None:
        self._execute, self._interrupt, self._concurrency = execute, interrupt, concurrency
        self._notifier.listen(RUNS, self._wake)
        self._notifier.listen(CANCEL, self._stop)
        self._helpers = [
            asyncio.create_task(self._look(execute), name="runs that are due"),
            asyncio.create_task(self._watch(), name="frozen processes"),
        ]

    async def aclose(self, *, grace: float) -> None:
        self._execute = None
        for helper in self._helpers:
            helper.cancel()
        await asyncio.gather(*self._helpers, return_exceptions=True)
        await end(self._running.values(), grace)

    def _room(self) -> int:
        return self._concurrency - len(self._running) if self._execute is not None else 0

    def _wake(self, run_ids: Sequence[str] | None) -> None:
        """None: what was sent is not known."""
        for run_id in run_ids or ():
            if run_id in self._running:
                self._rung.add(run_id)
            elif (rest := self._rests.get(run_id)) is not None:
                rest.until = _now()
        self._crowded |= self._room() <= 0
        self._bell.set()

    def _stop(self, run_ids: Sequence[str] | None) -> None:
        """None: what was sent is not known, but every run can look for itself."""
        for run_id in self._running if run_ids is None else self._running.keys() & run_ids:
            if self._interrupt is not None:
                self._interrupt(run_id)

    def _start(self, run_id: str, work: Callable[[], Awaitable[None]], *, taken: str | None = None) -> None:
        """``taken``: the thread that was locked for it."""
        self._running[run_id] = asyncio.create_task(self._run(run_id, work, taken), name=f"run {run_id}")

    async def _run(self, run_id: str, work: Callable[[], Awaitable[None]], taken: str | None) -> None:
        rest = self._rests.setdefault(run_id, _Rest())
        rest.times += 1
        try:
            await work()
        except Exception:
            logger.exception("Run %s could not be executed; trying again in %.0f s.", run_id, retry_delay(rest.times))
        finally:
            if taken is not None:
                self._lock.leave(taken)
            del self._running[run_id]
            rest.until = _now() + (0 if run_id in self._rung else retry_delay(rest.times))
            self._rung.discard(run_id)
            self._bell.set()

    async def _look(self, execute: Execute) -> None:
        while True:
            self._bell.clear()
            try:
                if await self._take(execute):
                    continue
            except Exception:
                logger.exception("Runs that are due could not be looked for; trying again.")
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._bell.wait()

    async def _take(self, execute: Execute) -> bool:
        """Begin what is due, as far as there is room. Return whether there may be more."""
        room = min(AT_ONCE, self._room())
        if room <= 0:
            return False
        found = await self._lock.take(DUE, {"now": utc_now(), "but": self._not_now(), "most": room})
        for run_id, thread_id in found:
            self._start(run_id, partial(execute, run_id), taken=thread_id)
        self._crowded = len(found) == room
        return self._crowded

    def _not_now(self) -> list[str]:
        """Return the runs that are executed here, or were a moment ago."""
        now = _now()
        for run_id in [run_id for run_id, rest in self._rests.items() if rest.until < now - REMEMBERED]:
            if run_id not in self._running:
                del self._rests[run_id]
        return [*self._running, *(run_id for run_id, rest in self._rests.items() if rest.until > now)]

    # frozen processes -----------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Let others take the runs of a process that is frozen."""
        silent: dict[Any, int] = {}
        while True:
            try:
                async with self._lock.hold("", WATCHER, wait=0):
                    while True:
                        silent = await self._end_frozen(silent)
                        await asyncio.sleep(WATCH)
            except ThreadBusyError:
                silent = await self._end_frozen(silent)
            except LockLostError:
                silent = {}
            await asyncio.sleep(WATCH_OTHERS)

    async def _end_frozen(self, silent: dict[Any, int]) -> dict[Any, int]:
        """Return how often in a row each session was found silent."""
        try:
            silent = {tuple(row): silent.get(tuple(row), 0) + 1 for row in await self._rows(FROZEN, LEASE)}
            for pid in [pid for (pid, _), looks in silent.items() if looks >= LOOKS]:
                logger.warning("A process has shown no sign of life for %d s: others take its runs.", LEASE)
                await self._rows(END_FROZEN, LEASE, pid)
        except Exception as error:
            if not is_out_of_reach(error):
                logger.exception("Frozen processes could not be looked for.")
        return silent

    async def _rows(self, query: str, *values: Any) -> Sequence[tuple[Any, ...]]:
        return await self._database.read(lambda connection: sql.execute(connection, query, *values).fetchall())


@dataclass(slots=True)
class _Rest:
    """Counts the executions of a run here in a row, and holds until when, by the loop's clock, it is left alone."""

    times: int = 0
    until: float = 0.0


def _now() -> float:
    return asyncio.get_running_loop().time()
