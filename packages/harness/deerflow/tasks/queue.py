"""Who runs what when: a queue carries nothing but the ids of runs and makes sure that some worker executes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol

from deerflow.event_loop import end

logger = logging.getLogger(__name__)

Execute = Callable[[str], Awaitable[None]]
"""Carries out the run with this id, as far as it can be carried out now.

At least once: it is called again for a run that has ended, is not the next one of its thread or is being executed
elsewhere, and finds that out for itself. Cancelled: it unwinds and leaves the run's row so that the next call goes on.
Raising: the run could not be carried out now; it is called again after a second, then after two, up to a minute.
Giving a run up after too many attempts is its own business.
"""

Interrupt = Callable[[str], None]
"""Tells the execution of the run with this id to look at the run's row again. Nothing happens when there is none here."""


class RunQueue(Protocol):
    """Rings bells; the truth about runs is their table.

    A run is deferred after its row is committed, and never dropped: one that is deferred while it is being executed is
    executed once more afterwards. Two executions of one run never overlap in one process, and between
    processes only while one of them has lost its connection to the database; the lock of the thread decides then.
    """

    async def defer(self, run_id: str, thread_id: str, *, at: datetime | None = None) -> None:
        """Have the run executed by some worker, soon or at a moment. Doing it twice does no harm.

        Args:
            run_id: its row is there.
            thread_id: the thread of the run.
            at: with a time zone; None or in the past: now.
        """
        ...

    def begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Execute a run that is not recorded yet in this process, by ``work``, which records it first.

        False, and nothing is done, if this process executes none, or has no room: record it, then defer it.
        """
        ...

    async def cancel(self, run_id: str) -> None:
        """Have the process that executes the run, if any, look at its row again."""
        ...

    async def start(self, execute: Execute, interrupt: Interrupt, *, concurrency: int) -> None:
        """Execute runs in this process from now on. A process that never calls it only defers them.

        Args:
            execute: carries out one run.
            interrupt: tells an execution to look at its row; it must not block.
            concurrency: how many runs are executed at a time.
        """
        ...

    async def aclose(self, *, grace: float) -> None:
        """Take no more runs, wait for those that are being executed, then cancel them and wait for their unwinding.

        Args:
            grace: seconds they have to come to their end by themselves.
        """
        ...


def retry_delay(failures: int) -> float:
    """Seconds until a run is tried again that could not be carried out ``failures`` times, at least once, in a row."""
    return float(min(2 ** (min(failures, 10) - 1), 60))


LONGEST_TIMER = 60.0
"""Seconds. Timers stand still while a machine sleeps, so the clock is looked at again at least this often."""


class LocalQueue:
    """A :class:`RunQueue` in memory, on one event loop.

    Deferred runs are forgotten when the process ends: at its start the owner of the queue defers all runs that have
    not ended.
    """

    def __init__(self) -> None:
        self._ready: dict[str, None] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._failures: dict[str, int] = {}
        self._execute: Execute | None = None
        self._interrupt: Interrupt | None = None
        self._concurrency = 0

    async def defer(self, run_id: str, thread_id: str, *, at: datetime | None = None) -> None:
        self._defer(run_id, at)

    def begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> bool:
        if self._execute is None or self._ready or len(self._running) >= self._concurrency:
            return False
        self._running[run_id] = asyncio.create_task(self._run(lambda _: work(), run_id), name=f"run {run_id}")
        return True

    async def cancel(self, run_id: str) -> None:
        if self._interrupt is not None and run_id in self._running:
            self._interrupt(run_id)

    async def start(self, execute: Execute, interrupt: Interrupt, *, concurrency: int) -> None:
        self._execute, self._interrupt, self._concurrency = execute, interrupt, concurrency
        self._take()

    async def aclose(self, *, grace: float) -> None:
        self._execute = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.clear()
        await end(self._running.values(), grace)

    def _defer(self, run_id: str, at: datetime | None) -> None:
        seconds = (at - datetime.now(UTC)).total_seconds() if at is not None else 0.0
        if seconds <= 0:
            self._ready[run_id] = None
            self._take()
            return

        self._defer_for(min(seconds, LONGEST_TIMER), run_id, at)

    def _defer_for(self, seconds: float, run_id: str, at: datetime | None) -> None:
        def due() -> None:
            del self._timers[run_id]
            self._defer(run_id, at)

        # One for a run, or each call for one that cannot be executed would begin a series of attempts of its own.
        if (earlier := self._timers.get(run_id)) is not None:
            earlier.cancel()
        self._timers[run_id] = asyncio.get_running_loop().call_later(seconds, due)

    def _take(self) -> None:
        """Begin what may begin. A run that is being executed and was deferred again stays ready until that has ended."""
        if self._execute is None:
            return
        for run_id in [run_id for run_id in self._ready if run_id not in self._running]:
            if len(self._running) >= self._concurrency:
                return
            del self._ready[run_id]
            self._running[run_id] = asyncio.create_task(self._run(self._execute, run_id), name=f"run {run_id}")

    async def _run(self, execute: Execute, run_id: str) -> None:
        try:
            await execute(run_id)
            self._failures.pop(run_id, None)
        except Exception:
            failures = self._failures[run_id] = self._failures.get(run_id, 0) + 1
            delay = retry_delay(failures)
            logger.exception("Run %s could not be executed; trying again in %.0f s.", run_id, delay)
            if self._execute is not None:
                self._defer_for(delay, run_id, None)
        finally:
            del self._running[run_id]
            self._take()
