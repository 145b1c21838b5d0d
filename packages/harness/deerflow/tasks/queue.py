"""Who runs what when: a queue carries nothing but the ids of runs and makes sure that some worker executes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

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

    Who rings does so after the row is committed. A ring for a run is never dropped: a run that is being executed while
    it is rung is executed once more afterwards. Two executions of one run never overlap in one process, and between
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
        """Execute runs in this process from now on. A process that never calls it only rings.

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
