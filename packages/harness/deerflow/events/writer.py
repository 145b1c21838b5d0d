"""Writing the log: events reach readers of this process at once, and the database a little later and together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection

from deerflow.events.jsonable import MessageCache
from deerflow.events.store import EVENTS_PER_CLAIM, Batch, LostRunError, RunEvent, encode_rows, write_batches

if TYPE_CHECKING:
    from deerflow.events.notify import Notifier
    from deerflow.storage.database import Database

logger = logging.getLogger(__name__)
T = TypeVar("T")

CHANNEL = "events"
SECONDS_ALONE = 1.0
"""How long an event may wait to be written when readers have it from memory. Each round is a transaction of its own; the
next attempt at the run replays what a crash takes."""
SECONDS_WITH_OTHERS = 0.02
"""How long an event may wait to be written when other processes may have readers: they see it only then."""
FLUSH_BYTES = 65_536
RUN_BYTES = 8 * 2**20
TOTAL_BYTES = 128 * 2**20
KEEP_SECONDS = 60.0
"""How long the events of an ended run stay in memory for those who are reading them."""
RETRY_SECONDS = 1.0
MERGE_ROWS = 4
_INLINE_BYTES = 262_144
_PAGE_EVENTS = 256
_PAGE_BYTES = 262_144
_EVENT_OVERHEAD = 200


class Topic:
    """A thread in this process: its newest writer, with the run's events, and who waits for more."""

    def __init__(self) -> None:
        self.writer: EventWriter | None = None
        self.readers = 0
        self.changes = 0
        self.others = 0
        """Grows when the database may hold what ``writer`` does not."""
        self.deleted = False
        self._waiting: set[asyncio.Future[bool]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def notify(self, *, others: bool = False) -> None:
        self.changes += 1
        self.others += others
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(True)

    def drop_later(self, writer: EventWriter) -> None:
        """Forget the events of an attempt after a while, if no newer one has begun."""
        self._stop_timer()
        # Not the writer nor the run's context, which the timer would keep until then.
        drop = partial(self._drop, writer.base)
        self._timer = asyncio.get_running_loop().call_later(KEEP_SECONDS, drop, context=Context())

    def clear(self) -> None:
        """Forget what is left, since nobody can find it again."""
        self.writer = None
        self._stop_timer()

    def _drop(self, base: int) -> None:
        if self.writer is not None and self.writer.base == base:
            self.writer = None
            self.notify(others=True)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def wait(self, until: float) -> bool:
        """Until the next :meth:`notify`, or False at the loop's time ``until``."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting.add(future)
        timer = loop.call_at(until, lambda: None if future.done() else future.set_result(False))
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.discard(future)

    def of(self, run_id: str | None) -> EventWriter | None:
        return self.writer if self.writer is not None and run_id in (None, self.writer.run_id) else None

    def executes(self, run_id: str | None) -> bool:
        return (writer := self.of(run_id)) is not None and writer.live


class Topics(dict[str, Topic]):
    """By thread: those that somebody reads, or a run of which executes in this process or has just ended."""

    def __missing__(self, thread_id: str) -> Topic:
        topic = self[thread_id] = Topic()
        return topic

    def forget(self, thread_id: str, topic: Topic) -> None:
        if not topic.readers and not topic.executes(None) and self.get(thread_id) is topic:
            del self[thread_id]
            topic.clear()


class _RefusedError(Exception):
    """What goes with the end of a run returned False: the transaction is rolled back."""


class EventWriter:
    """Emits the events of the run that holds a thread, and keeps in memory those after ``floor``. Only what is durable is
    dropped. Made by :meth:`EventLog.writer`.

    Args:
        topics: where it becomes the thread's newest. Earlier ones have lost the thread.
        first_attempt: known to be the run's first one, so that its readers need not look for an earlier one.
    """

    def __init__(
        self,
        flusher: Flusher,
        topics: Topics,
        thread_id: str,
        run_id: str,
        fencing_token: int,
        *,
        first_attempt: bool,
    ) -> None:
        self.thread_id = thread_id
        self.run_id = run_id
        self.fencing_token = fencing_token
        self.first_attempt = first_attempt
        self.base = self.floor = self.last = self.durable = fencing_token * EVENTS_PER_CLAIM
        self.size = self.unwritten_bytes = 0
        self.live = True
        self.state: dict[str, Any] | None = None
        """The values of the thread, by reference."""
        self.rendered = MessageCache()
        """Messages of ``state`` as clients get them."""
        self.lock = asyncio.Lock()
        """Held while events are written."""
        self._flusher = flusher
        self._topics = topics
        self._topic = topic = topics[thread_id]
        self._events: list[RunEvent] = []
        self._rows = 0
        self._held: list[RunEvent] | None = None
        """What is emitted while the end is being written: background subagents do not wait for an end that may be refused."""
        earlier, topic.writer = topic.writer, self
        topic.others += earlier is not None or flusher.notifier is not None
        self.others = topic.others
        """The topic's when the attempt began."""
        if earlier is not None:
            earlier.live = False
        topic.notify()

    def append(self, method: str, data: Any, namespace: tuple[str, ...] = (), *, first: bool = False) -> int:
        """Emit an event. Readers in this process get it at once, others when it is written, within a moment.

        Args:
            first: it is the first chunk of a message, the only one whose time is kept.

        Returns:
            Its position, unless it has to wait until an end is refused. Events of an ended or lost run are not kept.
        """
        at = 0 if method == "messages" and not first else _now()
        event = RunEvent(self.last + 1, self.run_id, method, data, namespace, at)
        if self._held is not None:
            self._held.append(event)
        elif self.live:
            self._emit(event)
        return event.seq

    def values(self, state: dict[str, Any]) -> int:
        """Emit that the state has changed. It is kept by reference for readers in this process, and stored nowhere."""
        self.state = state
        return self.append("values", None)

    def after(self, cursor: int) -> list[RunEvent]:
        """The next events; at least one if there is any, and no more than a reader should hold at once."""
        start = cursor - self.floor
        events = self._events[start : start + _PAGE_EVENTS]
        size = 0
        for index, event in enumerate(events):
            size += len(event.json)
            if size > _PAGE_BYTES:
                return events[: index + 1]
        return events

    async def flush(self) -> None:
        """Everything emitted so far is durable now.

        Raises:
            LostRunError: the thread has been claimed by somebody else or deleted; the run must stop.
        """
        await self._flusher.shielded(self._flush())

    async def end(self, data: Any, also: Callable[[Connection], bool]) -> bool:
        """Emit ``end`` and do ``also`` in one transaction; readers see it afterwards. Nothing is kept that comes behind it.

        Returns:
            False, and nothing has changed, if ``also`` returned False or the run is lost.
        """
        return await self._flusher.shielded(self._end(data, also))

    async def aclose(self) -> None:
        """Write what is left, if we still may. Idempotent; the run can go on with another writer, anywhere."""
        try:
            if self.live:
                await self.flush()
        except LostRunError:
            return
        finally:
            self._close(elsewhere=True)

    async def batch(self) -> Batch:
        """What is not written yet. With the lock held."""
        return await self._batch(self._unwritten())

    def wrote(self, batch: Batch) -> None:
        if batch.rows:
            self._rows += len(batch.rows)
            self._written(batch.last_seq)
            if self.durable >= self.last:  # the end is written before it is emitted
                self._flusher.unschedule(self)
            self._shrink(min(RUN_BYTES, TOTAL_BYTES // max(len(self._topics), 1)))

    def lose(self) -> None:
        """The thread is no longer ours: what is not written never will be."""
        self._flusher.unschedule(self)
        self._close(elsewhere=True)

    def _emit(self, event: RunEvent) -> None:
        event.seq = self.last + 1
        self._keep(event)
        self._flusher.schedule(self)
        self._topic.notify()

    def _keep(self, event: RunEvent) -> None:
        self._events.append(event)
        self.last = event.seq
        self.size += len(event.json) + _EVENT_OVERHEAD
        self.unwritten_bytes += len(event.json)

    def _unwritten(self) -> list[RunEvent]:
        return self._events[self.durable - self.floor :]

    def _written(self, last: int) -> None:
        self.durable = last
        self.unwritten_bytes = sum(len(event.json) for event in self._unwritten())

    def _shrink(self, size: int) -> None:
        """Drop the oldest events until no more than half of ``size`` bytes are left."""
        if self.size <= size:
            return
        dropped = 0
        while self.size > size // 2 and self.floor + dropped < self.durable:
            self.size -= len(self._events[dropped].json) + _EVENT_OVERHEAD
            dropped += 1
        del self._events[:dropped]
        self.floor += dropped

    async def _flush(self) -> None:
        async with self.lock:
            if self.live:
                await self._flusher.write({self: await self.batch()})
            if not self.live:
                raise LostRunError(f"Run {self.run_id} has lost its thread to another claim.")

    async def _end(self, data: Any, also: Callable[[Connection], bool]) -> bool:
        async with self.lock:
            if not self.live:
                return False
            self._held, ended = [], False
            try:
                ended = await self._write_end(data, also)
            finally:
                held, self._held = self._held, None
                if ended:
                    self._close(elsewhere=False)
                for event in held if self.live else ():
                    self._emit(event)
            return ended

    async def _write_end(self, data: Any, also: Callable[[Connection], bool]) -> bool:
        event = RunEvent(self.last + 1, self.run_id, "end", data, at=_now())
        merges = self._rows > MERGE_ROWS and self.floor == self.base  # all events of the attempt are here
        before = self._events if merges else self._unwritten()
        batch = await self._batch([*before, event], self.base if merges else None)
        try:
            await self._flusher.write({self: batch}, also=also)
        except _RefusedError:
            return False
        if not self.live:
            return False
        self._keep(event)
        self._written(event.seq)
        return True

    async def _batch(self, events: list[RunEvent], replaces_after: int | None = None) -> Batch:
        if sum(len(event.json) for event in events) > _INLINE_BYTES:
            rows = await asyncio.to_thread(encode_rows, self.thread_id, events)
        else:
            rows = encode_rows(self.thread_id, events)
        last = events[-1].seq if events else self.durable
        return Batch(self.thread_id, self.fencing_token, rows, last, replaces_after)

    def _close(self, *, elsewhere: bool) -> None:
        """``elsewhere``: the thread was lost to another claim, or the run may be executed elsewhere from now on."""
        if self.live:
            self.live = False
            self.state = None
            self._topic.notify(others=elsewhere)
            self._topics.forget(self.thread_id, self._topic)
            if self._topic.writer is self:
                self._topic.drop_later(self)


class Flusher:
    """Writes the events of all writers of a log in rounds, one transaction each.

    Args:
        database: where to.
        notifier: notifies the other processes; None if there are none.
    """

    def __init__(self, database: Database, notifier: Notifier | None) -> None:
        self._database = database
        self.notifier = notifier
        self._interval = SECONDS_ALONE if notifier is None else SECONDS_WITH_OTHERS
        self._writers: dict[EventWriter, None] = {}
        self._timer: asyncio.Handle | None = None
        self._due = 0.0  # uvloop's handles do not tell
        self._round: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def schedule(self, writer: EventWriter) -> None:
        """The writer has something to be written soon."""
        if writer not in self._writers:
            self._writers[writer] = None
            self._write_in(self._interval)
        if writer.unwritten_bytes >= FLUSH_BYTES:
            self._write_in(0)

    def unschedule(self, writer: EventWriter) -> None:
        self._writers.pop(writer, None)

    async def shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish ``work`` even if the caller is cancelled: half a transaction would leave us in doubt."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def write(
        self,
        batches: Mapping[EventWriter, Batch],
        *,
        also: Callable[[Connection], bool] | None = None,
        skip_locked: bool = False,
    ) -> None:
        """Write the batches and notify the other processes, in one transaction; with the writers' locks held.

        Raises:
            _RefusedError: ``also`` returned False. It is not called if a writer has lost its thread.
        """

        def job(connection: Connection) -> tuple[set[str], set[str]]:
            lost, locked = write_batches(connection, list(batches.values()), skip_locked=skip_locked)
            if also is not None and not lost and not also(connection):
                raise _RefusedError
            if self.notifier is not None:
                self.notifier.within_about(connection, CHANNEL, [writer.thread_id for writer in batches])
            return lost, locked

        lost, locked = await self._database.write(job)
        for writer, batch in batches.items():
            if writer.thread_id in lost:
                writer.lose()
            elif writer.thread_id not in locked:
                writer.wrote(batch)

    async def aclose(self) -> None:
        """Write what there is. What cannot be written raises."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._round is not None:
            await asyncio.wait([self._round])
        if self._timer is not None:
            self._timer.cancel()
        await self._write_all()

    def _write_in(self, seconds: float) -> None:
        """Unless a round is on its way or planned for an earlier moment; a round that leaves something plans the next."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._round is not None or (self._timer is not None and self._due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = loop.call_later(seconds, self._begin_round)

    def _begin_round(self) -> None:
        self._timer = None
        self._round = asyncio.get_running_loop().create_task(self._write_all())
        self._round.add_done_callback(self._end_round)

    def _end_round(self, done: asyncio.Task[None]) -> None:
        self._round = None
        failed = not done.cancelled() and done.exception() is not None
        if failed:
            logger.error("Events could not be written; trying again.", exc_info=done.exception())
        if self._writers and not done.cancelled():
            self._write_in(RETRY_SECONDS if failed else self._interval)

    async def _write_all(self) -> None:
        """One transaction for all writers that are not writing by themselves just now."""
        writers = [writer for writer in self._writers if not writer.lock.locked()]
        if not writers:
            return
        for writer in writers:
            await writer.lock.acquire()
        try:
            await self.write({writer: await writer.batch() for writer in writers}, skip_locked=True)
        finally:
            for writer in writers:
                writer.lock.release()


def _now() -> int:
    return time.time_ns() // 1_000_000
