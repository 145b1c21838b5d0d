"""The queue of a product that is many processes: background tasks in the PostgreSQL that they share, one for each run.

A task is a notice, nothing else: it names a run and a thread and is deleted when the run has been executed. Tasks of workers
that died are free again as soon as the lock of their thread is, and runs that lost their task are found at the next sweep.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from deerflow.event_loop import end
from deerflow.events.notify import Notifier
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.errors import is_out_of_reach
from deerflow.storage.tables import utc_now
from deerflow.storage.thread_lock import END_FROZEN, FROZEN, IS_HELD, LEASE
from deerflow.tasks.jobs import Job, JobWorker
from deerflow.tasks.queue import Execute, Interrupt, retry_delay

logger = logging.getLogger(__name__)

RUN = "run"
"""The kind of task that executes a run. Its key is the run's id."""
TASKS, CANCEL = "queue", "cancel"
"""Channels to other processes: there are tasks; a run was asked to stop."""

LOOK = 0.5
"""Seconds between two looks for tasks whose worker died."""

LOOKS = 3
"""How often in a row the lock of a task's thread must be free: between its start and its end there is a moment without."""

PATIENCE = 5.0
"""Seconds for which a run is offered to a database that does not answer. Then the sweep has to find it."""

SWEEP = 10.0
"""Seconds between two looks for runs that have no task."""

LONG = timedelta(days=1)
"""The lease of a task. What goes with a worker that dies is the lock of the thread, whatever its clock says."""

Unfinished = Callable[[], Awaitable[Iterable[tuple[str, str]]]]
"""Ids of runs and their threads that are due, have not ended and were last touched some seconds ago."""


class PostgresQueue:
    """A :class:`~deerflow.tasks.queue.RunQueue` for all processes that use one PostgreSQL database.

    What executes a run must hold its thread's :class:`~deerflow.storage.thread_lock.PostgresThreadLock` of the
    same database while it does: a run that is taken and whose thread has no holder is given to another worker.

    Args:
        unfinished: finds the runs that should have a task.
        sweep: seconds between two calls of ``unfinished`` in this process.
    """

    def __init__(self, database: Database, notifier: Notifier, unfinished: Unfinished, *, sweep: float = SWEEP) -> None:
        self._database = database
        self._notifier = notifier
        self._unfinished = unfinished
        self._sweep_seconds = sweep
        self._execute: Execute | None = None
        self._interrupt: Interrupt | None = None
        self._concurrency = 0
        self._worker: JobWorker | None = None
        self._running: set[str] = set()
        """Runs that are executed since they had a task."""
        self._begun: dict[str, asyncio.Task[None]] = {}
        """Runs that began with their creation."""
        self._helpers: list[asyncio.Task[None]] = []

    async def defer(self, run_id: str, thread_id: str, *, at: datetime | None = None) -> None:
        """See :class:`RunQueue`. The run's row says what is to be done, so a database that is away is no error."""
        given_up = time.monotonic() + PATIENCE
        while True:
            try:
                await self._write(_OFFER, run_id, thread_id, at or utc_now())
                return
            except Exception as error:
                if not is_out_of_reach(error):
                    raise
                if time.monotonic() >= given_up:
                    logger.warning("No worker could be notified of run %s, one will find it: %r", run_id, error)
                    return
            await asyncio.sleep(LOOK)

    def begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> bool:
        if self._worker is None or len(self._running) + len(self._begun) >= self._concurrency:
            return False
        self._begun[run_id] = asyncio.create_task(self._begin(run_id, thread_id, work), name=f"run {run_id}")
        return True

    async def cancel(self, run_id: str) -> None:
        self._stop([run_id])
        try:
            await self._notifier.send(CANCEL, [run_id])
        except Exception as error:
            if not is_out_of_reach(error):
                raise
            logger.warning("No worker could be notified to stop run %s: %r", run_id, error)

    async def start(self, execute: Execute, interrupt: Interrupt, *, concurrency: int) -> None:
        self._execute, self._interrupt, self._concurrency = execute, interrupt, concurrency
        self._worker = JobWorker(
            self._database,
            {RUN: self._run},
            concurrency=concurrency,
            lease=LONG,
            most_attempts=math.inf,
            pause=lambda attempts: timedelta(seconds=retry_delay(attempts)),
        )
        self._worker.start()
        self._notifier.listen(TASKS, lambda _: self._ring())
        self._notifier.listen(CANCEL, self._stop)
        self._helpers = [
            asyncio.create_task(self._look_for_dead_workers(), name="tasks of dead workers"),
            asyncio.create_task(self._sweep(), name="runs without a task"),
        ]

    async def aclose(self, *, grace: float) -> None:
        for helper in self._helpers:
            helper.cancel()
        await asyncio.gather(*self._helpers, return_exceptions=True)
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.gather(worker.aclose(grace=grace), end(self._begun.values(), grace))

    async def _run(self, job: Job) -> None:
        """Handler of the tasks."""
        assert self._execute is not None
        if (begun := self._begun.get(job.key)) is not None:
            await asyncio.wait({begun})
        self._running.add(job.key)
        try:
            await self._execute(job.key)
        finally:
            self._running.discard(job.key)

    async def _begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> None:
        """Execute a run without a task, which it gets when it does not come to its end here. Should this process die, the
        sweep finds it."""
        try:
            await work()
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, asyncio.CancelledError):
                logger.exception("Run %s could not be executed and is tried again.", run_id)
            await self.defer(run_id, thread_id)
        finally:
            del self._begun[run_id]

    def _stop(self, run_ids: Sequence[str] | None) -> None:
        """None: what was sent is not known, but every run can look for itself."""
        here = {*self._running, *self._begun}
        for run_id in here if run_ids is None else here.intersection(run_ids):
            if self._interrupt is not None:
                self._interrupt(run_id)

    def _ring(self) -> None:
        if self._worker is not None:
            self._worker.ring()

    async def _write(self, statement: str, *values: Any) -> None:
        """Change tasks, and tell the workers."""

        def change(connection: Connection) -> None:
            if sql.execute(connection, statement, *values).rowcount:
                self._notifier.within(connection, TASKS, [RUN])

        await self._database.write(change)
        self._ring()

    # what got lost --------------------------------------------------------------------------------------------------

    async def _look_for_dead_workers(self) -> None:
        """Give tasks to others whose worker does not hold the thread: it died, is frozen, or lost its connection and let go."""
        free: dict[Any, int] = {}
        silent: dict[Any, int] = {}
        while True:
            await asyncio.sleep(LOOK)
            try:
                silent = _counted(silent, await self._rows(FROZEN, LEASE))
                for pid in [pid for (pid, _), looks in silent.items() if looks >= LOOKS]:
                    logger.warning("A worker has shown no sign of life for %d s: others take its runs.", LEASE)
                    await self._rows(END_FROZEN, LEASE, pid)
                free = _counted(free, await self._rows(_ORPHANS))
                for job_id, attempts in [job for job, looks in free.items() if looks >= LOOKS]:
                    logger.warning("The worker of task %d is gone, another one goes on.", job_id)
                    await self._write(_FREE, job_id, attempts)
            except Exception as error:
                if not is_out_of_reach(error):
                    logger.exception("Tasks of dead workers could not be looked for.")

    async def _sweep(self) -> None:
        """Enqueue runs that have no task, and whose thread has no holder: the notice was lost, or no worker was free when their
        thread became free."""
        while True:
            await asyncio.sleep(self._sweep_seconds)
            try:
                for run_id, thread_id in await self._unfinished():
                    await self._write(_ENQUEUE_LOST, run_id, thread_id, utc_now(), thread_id)
            except Exception as error:
                if not is_out_of_reach(error):
                    logger.exception("Runs that were left over could not be looked for.")

    async def _rows(self, query: str, *values: Any) -> Sequence[tuple[Any, ...]]:
        return await self._database.read(lambda connection: sql.execute(connection, query, *values).fetchall())


_ENQUEUE = f"""INSERT INTO jobs (kind, key, payload, due_at, attempts)
SELECT '{RUN}', ?, jsonb_build_object('thread_id', ?::text), ?, 0"""

_OFFER = f"""{_ENQUEUE} ON CONFLICT (kind, key) DO UPDATE
SET due_at = LEAST(jobs.due_at, excluded.due_at), attempts = 0, error = NULL"""

_ENQUEUE_LOST = f"{_ENQUEUE} WHERE NOT {IS_HELD.format(name='?')} ON CONFLICT DO NOTHING"

_ORPHANS = f"""SELECT id, attempts FROM jobs
WHERE kind = '{RUN}' AND leased_until IS NOT NULL AND NOT {IS_HELD.format(name="payload->>'thread_id'")}"""

_FREE = "UPDATE jobs SET leased_until = NULL WHERE id = ? AND attempts = ?"


def _counted(seen: dict[Any, int], rows: Sequence[tuple[Any, ...]]) -> dict[Any, int]:
    """How often in a row each was there."""
    return {tuple(row): seen.get(tuple(row), 0) + 1 for row in rows}
