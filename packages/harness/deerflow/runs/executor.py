"""Executing runs: each at least once, one of a thread at a time, from wherever it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from deerflow.event_loop import begun
from deerflow.runs.attempt import Attempt, AttemptServices, Slot
from deerflow.storage.runs import Created, NewRun, Run
from deerflow.storage.thread_lock import ThreadBusyError
from deerflow.tracing import in_trace

if TYPE_CHECKING:
    from deerflow.runs.request import RunSpec
    from deerflow.storage.thread_lock import ThreadLock
    from deerflow.tasks.queue import RunQueue

SLOTS = 8
"""How many runs may keep the event loop busy at the same time; the others come later, in the order of their asking.

Without a bound hundreds that begin together, or get their answers together, would all do their next step in the same round of
the loop, and no request would be answered for seconds.
"""


class RunObserver:
    """Learns what becomes of runs. This one does nothing about it."""

    def status_changed(self, run: Run) -> None:
        """A run is new, was claimed, was asked to stop or has ended."""

    def tasks_enqueued(self, due: datetime) -> None:
        """The end of a run has left background tasks, the first of which is due then."""

    async def attempt_ended(self, run: Run) -> None:
        """An attempt came to an end, and this process still holds the thread. Must not raise."""


@dataclass(eq=False)
class Executor:
    """Args:
    worker: names this process in the rows of its runs.
    queue: gets the run of a thread whose turn it is next.
    """

    parts: AttemptServices
    lock: ThreadLock
    worker: str
    queue: RunQueue
    observer: RunObserver

    slot: Callable[[], Slot] = field(default_factory=lambda: partial(Slot, asyncio.Semaphore(SLOTS)))
    """Of a run that begins to work."""
    _attempts: dict[str, Attempt | None] = field(default_factory=dict[str, "Attempt | None"])
    """By run id; None while it is being claimed."""
    _asked: dict[str, Run] = field(default_factory=dict[str, Run])
    """Runs that were asked to stop, or to stop a subagent, while they were being claimed."""
    _looking: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def execute(self, run_id: str, *, wait: float | None = None) -> None:
        """Bring the run to its end, if it is its turn. Returns at once if it has ended, is not due or not next.

        Cancelling the call (a shutdown) leaves the run as it is; its next executor goes on with it.

        Args:
            wait: seconds to wait for another executor of the thread; None: as long as it takes.

        Raises:
            ThreadBusyError: there is still another one after that.
        """
        slot = self.slot()
        try:
            await slot.take()
            run = await self.parts.runs.find(run_id)
            if run is not None:
                await self._enqueue(await self._execute(run, slot, wait), run.thread_id)
        finally:
            slot.leave()

    async def create(self, new: NewRun, spec: RunSpec, created: asyncio.Future[Created]) -> None:
        """Create a run and execute it at once if its thread is free; otherwise it is enqueued.

        Args:
            created: gets the run, or the reason why it was refused, as soon as that is known.
        """
        slot = self.slot()
        try:
            await slot.take()
            await self._enqueue(await self._create(new, spec, slot, created), new.thread_id)
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
            task = asyncio.create_task(self._stop_if_asked(run_id))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    @property
    def active(self) -> frozenset[str]:
        """Ids of the runs that this process executes."""
        return frozenset(self._attempts)

    async def abandon(self, run: Run, *, wait: float) -> None:
        """End a run whose process died, without going on with it.

        Raises:
            ThreadBusyError: it is alive: somebody still executes the thread after ``wait`` seconds.
        """
        async with self.lock.hold(run.user_id, run.thread_id, wait=wait):
            await self.parts.runs.request_cancel(run.run_id, "interrupt")
            await self._claim_and_attempt(run, self.slot())

    # Each of these returns the id of the thread's next run, if there is one that may begin.

    async def _execute(self, run: Run, slot: Slot, wait: float | None) -> str | None:
        others = await self.parts.runs.active(run.thread_id)
        if run.closed:
            return next((other.run_id for other in others if other.attempt == 0 and other.due_at is None), None)
        if run.attempt == 0 and any(other.attempt > 0 for other in others):
            return None  # it is enqueued when that one has ended
        withdrawn = [other for other in others if other.ended and other.position < run.position]
        is_running = run.attempt > 0 and wait is None
        try:
            async with self.lock.hold(run.user_id, run.thread_id, wait=0 if is_running else wait):
                for other in withdrawn:
                    await self._claim_and_attempt(other, slot)
                return await self._claim_and_attempt(run, slot)
        except ThreadBusyError:
            if not is_running:
                raise
            return None  # its executor lives; should it die, the run is enqueued again

    async def _create(self, new: NewRun, spec: RunSpec, slot: Slot, created: asyncio.Future[Created]) -> str | None:
        """The next one is the new one if it could not begin."""
        runs = self.parts.runs
        try:
            async with (
                self.lock.hold(new.user_id, new.thread_id, wait=0),
                begun(self.parts.agents.read(spec.principal, new.thread_id, spec.options)) as reading,
            ):
                made = await runs.create(new, worker=self.worker)
                if made.claimed is None:
                    self._report(made, created)
                    return new.run_id
                attempt = Attempt(self.parts, made.claimed, slot, spec, fresh=True, reading=reading)
                self._attempts[new.run_id] = attempt
                self._report(made, created)
                self.observer.status_changed(made.claimed)
                return await self._attempt(made.claimed, attempt)
        except ThreadBusyError:
            if created.done():
                raise
        self._report(await runs.create(new), created)
        return new.run_id

    async def _claim_and_attempt(self, run: Run, slot: Slot) -> str | None:
        """With the thread's lock held."""
        self._attempts[run.run_id] = None
        try:
            claimed = await self.parts.runs.claim(run.run_id, self.worker)
            if claimed is None:
                return None
            self.observer.status_changed(claimed)
            attempt = self._attempts[run.run_id] = Attempt(self.parts, claimed, slot)
            attempt.heed(self._asked.get(run.run_id, claimed))
            return await self._attempt(claimed, attempt)
        finally:
            self._attempts.pop(run.run_id, None)
            self._asked.pop(run.run_id, None)

    async def _attempt(self, run: Run, attempt: Attempt) -> str | None:
        try:
            with in_trace(run.trace_id):
                closed = await attempt.execute()
        finally:
            self._attempts.pop(run.run_id, None)
        if closed is not None:
            self.observer.status_changed(closed.run)
            if closed.tasks_due is not None:
                self.observer.tasks_enqueued(closed.tasks_due)
        await self.observer.attempt_ended(run)
        return closed.next_run_id if closed is not None else None

    def _report(self, made: Created, created: asyncio.Future[Created]) -> None:
        self.observer.status_changed(made.run)
        if not created.done():  # its client may have gone
            created.set_result(made)

    async def _stop_if_asked(self, run_id: str) -> None:
        run = await self.parts.runs.find(run_id)
        if run is None or run_id not in self._attempts:
            return
        self._asked[run_id] = run
        if (attempt := self._attempts[run_id]) is not None:
            attempt.heed(run)

    async def _enqueue(self, run_id: str | None, thread_id: str) -> None:
        if run_id is not None:
            await self.queue.defer(run_id, thread_id)
