"""Executing runs: each at least once, one of a thread at a time, from wherever it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deerflow.runs.admission import AdmissionLimit, Slot
from deerflow.runs.attempt import Attempt, Parts
from deerflow.storage.runs import Created, NewRun, Run
from deerflow.storage.thread_lock import ThreadBusyError

if TYPE_CHECKING:
    from deerflow.runs.request import RunSpec
    from deerflow.storage.thread_lock import ThreadLock
    from deerflow.tasks.queue import RunQueue


class RunObserver:
    """Learns what becomes of runs. This one does nothing about it."""

    def status_changed(self, run: Run) -> None:
        """A run is new, was claimed, was asked to stop or has ended."""

    def tasks_enqueued(self, due: datetime) -> None:
        """The end of a run has left background tasks, the first of which is due then."""

    async def attempt_ended(self, run: Run) -> None:
        """An attempt came to an end, and this process still holds the thread. Must not raise."""


class Executor:
    """Args:
    worker: names this process in the rows of its runs.
    queue: gets the run of a thread whose turn it is next.
    """

    def __init__(
        self,
        parts: Parts,
        lock: ThreadLock,
        *,
        worker: str,
        queue: RunQueue | None = None,
        observer: RunObserver | None = None,
    ) -> None:
        self._parts = parts
        self._lock = lock
        self._worker = worker
        self._queue = queue
        self._observer = observer or RunObserver()
        self._limit = AdmissionLimit()
        self._attempts: dict[str, Attempt | None] = {}
        """By run id; None while it is being claimed."""
        self._asked: dict[str, Run] = {}
        """Runs that were asked to stop, or to stop a subagent, while they were being claimed."""
        self._background: set[asyncio.Task[None]] = set()

    async def execute(self, run_id: str, *, wait: float | None = None) -> None:
        """Bring the run to its end, if it is its turn. Returns at once if it has ended, is not due or not next.

        Cancelling the call (a shutdown) leaves the run as it is; its next executor goes on with it.

        Args:
            wait: seconds to wait for another executor of the thread; None: as long as it takes.

        Raises:
            ThreadBusyError: there is still another one after that.
        """
        slot = self._limit.slot()
        try:
            await slot.take()
            run = await self._parts.runs.find(run_id)
            if run is None:
                return
            others = await self._parts.runs.active(run.thread_id)
            if run.closed:
                await self._enqueue_next(run, others)
                return
            if run.attempt == 0 and any(other.attempt > 0 for other in others):
                return  # it is enqueued when that one has ended
            withdrawn = [other for other in others if other.ended and other.position < run.position]
            is_running = run.attempt > 0 and wait is None
            try:
                next_run_id = await self._execute(run, withdrawn, slot, wait=0 if is_running else wait)
            except ThreadBusyError:
                if not is_running:
                    raise
                return  # its executor lives; should it die, the run is enqueued again
            if next_run_id is not None:
                await self._enqueue(next_run_id, run.thread_id)
        finally:
            slot.leave()

    async def create(self, new: NewRun, spec: RunSpec, created: asyncio.Future[Created]) -> None:
        """Create a run and execute it at once if its thread is free; otherwise it is enqueued.

        Args:
            created: gets the run, or the reason why it was refused, as soon as that is known.
        """
        slot = self._limit.slot()
        try:
            await slot.take()
            next_run_id = await self._create(new, spec, slot, created)
            if next_run_id is not None:
                await self._enqueue(next_run_id, new.thread_id)
        except Exception as error:
            if created.done():
                raise
            created.set_exception(error)
        finally:
            slot.leave()
            created.cancel()

    def interrupt(self, run_id: str) -> None:
        """Look whether the run, or a subagent of it, was asked to stop, and stop it if this process executes it."""
        if run_id in self._attempts:
            self._in_background(self._stop_if_asked(run_id))

    @property
    def active(self) -> frozenset[str]:
        """Ids of the runs that this process executes."""
        return frozenset(self._attempts)

    async def abandon(self, run: Run, *, wait: float) -> None:
        """End a run whose process died, without going on with it.

        Raises:
            ThreadBusyError: it is alive: somebody still executes the thread after ``wait`` seconds.
        """
        async with self._lock.hold(run.user_id, run.thread_id, wait=wait):
            await self._parts.runs.request_cancel(run.run_id, "interrupt")
            await self._claim_and_attempt(run, self._limit.slot())

    async def _create(self, new: NewRun, spec: RunSpec, slot: Slot, created: asyncio.Future[Created]) -> str | None:
        """The id of the thread's next run, which is the new one if it could not begin."""
        runs = self._parts.runs
        try:
            async with self._lock.hold(new.user_id, new.thread_id, wait=0):
                made = await runs.create(new, worker=self._worker)
                if made.claimed is None:
                    self._report(made, created)
                    return new.run_id
                attempt = self._attempts[new.run_id] = Attempt(self._parts, made.claimed, slot, spec, fresh=True)
                self._report(made, created)
                self._observer.status_changed(made.claimed)
                return await self._attempt(made.claimed, attempt)
        except ThreadBusyError:
            if created.done():
                raise
        self._report(await runs.create(new), created)
        return new.run_id

    def _report(self, made: Created, created: asyncio.Future[Created]) -> None:
        self._observer.status_changed(made.run)
        if not created.done():  # its client may have gone
            created.set_result(made)

    async def _execute(self, run: Run, withdrawn: Sequence[Run], slot: Slot, *, wait: float | None) -> str | None:
        async with self._lock.hold(run.user_id, run.thread_id, wait=wait):
            for other in withdrawn:
                await self._claim_and_attempt(other, slot)
            return await self._claim_and_attempt(run, slot)

    async def _claim_and_attempt(self, run: Run, slot: Slot) -> str | None:
        """The id of the thread's next run. With the thread's lock held."""
        self._attempts[run.run_id] = None
        try:
            claimed = await self._parts.runs.claim(run.run_id, self._worker)
            if claimed is None:
                return None
            self._observer.status_changed(claimed)
            attempt = self._attempts[run.run_id] = Attempt(self._parts, claimed, slot)
            attempt.heed(self._asked.get(run.run_id, claimed))
            return await self._attempt(claimed, attempt)
        finally:
            self._attempts.pop(run.run_id, None)
            self._asked.pop(run.run_id, None)

    async def _attempt(self, run: Run, attempt: Attempt) -> str | None:
        try:
            closed = await attempt.execute()
        finally:
            self._attempts.pop(run.run_id, None)
        if closed is not None:
            self._observer.status_changed(closed.run)
            if closed.tasks_due is not None:
                self._observer.tasks_enqueued(closed.tasks_due)
        await self._observer.attempt_ended(run)
        return closed.next_run_id if closed is not None else None

    async def _stop_if_asked(self, run_id: str) -> None:
        run = await self._parts.runs.find(run_id)
        if run is None or run_id not in self._attempts:
            return
        self._asked[run_id] = run
        if (attempt := self._attempts[run_id]) is not None:
            attempt.heed(run)

    async def _enqueue_next(self, run: Run, others: Sequence[Run]) -> None:
        for other in others:
            if other.attempt == 0 and other.due_at is None:
                await self._enqueue(other.run_id, run.thread_id)
                return

    async def _enqueue(self, run_id: str, thread_id: str) -> None:
        if self._queue is not None:
            await self._queue.defer(run_id, thread_id)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
