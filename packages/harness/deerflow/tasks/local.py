"""The queue of a product that is one process: tasks on its event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from deerflow.tasks.queue import Execute, Interrupt, retry_delay

logger = logging.getLogger(__name__)

LONGEST_TIMER = 60.0
"""Seconds. Timers stand still while a machine sleeps, so the clock is looked at again at least this often."""


class LocalQueue:
    """A :class:`~deerflow.tasks.queue.RunQueue` in memory, on one event loop.

    What was rung is forgotten when the process ends: at its start whoever owns the queue rings for all runs that have
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
        self._ring(run_id, at)

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
        if running := set(self._running.values()):
            _, late = await asyncio.wait(running, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _ring(self, run_id: str, at: datetime | None) -> None:
        seconds = (at - datetime.now(UTC)).total_seconds() if at is not None else 0.0
        if seconds <= 0:
            self._ready[run_id] = None
            self._take()
            return

        self._ring_in(min(seconds, LONGEST_TIMER), run_id, at)

    def _ring_in(self, seconds: float, run_id: str, at: datetime | None) -> None:
        def ring() -> None:
            del self._timers[run_id]
            self._ring(run_id, at)

        # One for a run, or every ring for one that cannot be executed would begin a series of attempts of its own.
        if (earlier := self._timers.get(run_id)) is not None:
            earlier.cancel()
        self._timers[run_id] = asyncio.get_running_loop().call_later(seconds, ring)

    def _take(self) -> None:
        """Begin what may begin. A run that is being executed and was rung again stays ready until that has ended."""
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
                self._ring_in(delay, run_id, None)
        finally:
            del self._running[run_id]
            self._take()
