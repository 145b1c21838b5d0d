"""How the run that holds a thread says what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from deerflow.events.record import RunEvent
from deerflow.events.store import Batch, LostRunError, encode_rows, write_batch

if TYPE_CHECKING:
    from deerflow.events.flush import Flusher
    from deerflow.events.ring import Ring, Topic

MERGE_ROWS = 4
_INLINE_BYTES = 262_144


class _RefusedError(Exception):
    """What was to be done together with the end did not want to."""


class EventWriter:
    """Made by :meth:`EventLog.writer`. ``closed`` is called when nothing more will be said."""

    def __init__(
        self,
        flusher: Flusher,
        topic: Topic,
        ring: Ring,
        thread_id: str,
        epoch: int,
        closed: Callable[[], None],
        dropped: Callable[[], None],
    ) -> None:
        self.thread_id = thread_id
        self.unwritten_bytes = 0
        self.in_doubt = False
        """Whether a transaction failed in a way that may have left rows behind."""
        self.lock = asyncio.Lock()
        """Held by whoever writes."""
        self._flusher = flusher
        self._topic = topic
        self._ring = ring
        self._epoch = epoch
        self._on_closed = closed
        self._on_lost = dropped
        self._rows = 0
        self._closed = False
        self._ending = False

    def append(self, method: str, data: Any, namespace: tuple[str, ...] = ()) -> int:
        """Say something. Readers in this process get it at once, others when it is written, within a moment.

        Returns:
            Its position. What is said by a run that has ended or been lost is not kept.
        """
        event = RunEvent(self._ring.last + 1, self._ring.run_id, method, data, namespace)
        if self._ring.live and not self._ending:
            self._ring.append(event)
            self.unwritten_bytes += len(event.json)
            self._flusher.mark(self)
            self._topic.wake()
        return event.seq

    def values(self, state: dict[str, Any]) -> int:
        """Say that the state has changed. It is kept by reference for readers in this process, and stored nowhere."""
        self._ring.values = state
        return self.append("values", None)

    async def flush(self) -> None:
        """Everything said so far is durable now.

        Raises:
            LostRunError: the thread has been claimed by somebody else or deleted; the run must stop.
        """
        await self._flusher.shielded(self._flush())

    async def end(self, data: Any, also: Callable[[Connection], bool]) -> bool:
        """Say ``end`` and do ``also`` in one transaction. Nothing may be appended meanwhile; readers see it afterwards.

        Returns:
            False, and nothing has changed, if ``also`` returned False or the run is lost.
        """
        return await self._flusher.shielded(self._end(data, also))

    async def aclose(self) -> None:
        """Write what is left, if we still may. Idempotent; the run can go on with another writer, anywhere."""
        try:
            if self._ring.live:
                await self.flush()
        except LostRunError:
            pass
        finally:
            self._close()

    # for those who write ------------------------------------------------------------------------------------------------

    async def batch(self) -> Batch:
        """What is not written yet. With the lock held."""
        return await self._batch(self._ring.unwritten())

    def wrote(self, batch: Batch) -> None:
        if not batch.rows:
            return
        last = batch.last_seq
        self._rows += len(batch.rows)
        self._ring.durable = last
        self.in_doubt = False
        self.unwritten_bytes = sum(len(event.json) for event in self._ring.unwritten())
        if self._ring.durable >= self._ring.last:  # the end is written before it is told
            self._flusher.unmark(self)

    def lose(self) -> None:
        """The thread is no longer ours: what is not written never will be."""
        self._ring.live = False
        self._flusher.unmark(self)
        self._on_lost()

    async def _flush(self) -> None:
        async with self.lock:
            if self._closed:
                return
            if not self._ring.live:
                raise LostRunError(f"Run {self._ring.run_id} has lost its thread to another claim.")
            await self._write(await self.batch(), lambda connection: True)

    async def _end(self, data: Any, also: Callable[[Connection], bool]) -> bool:
        async with self.lock:
            if not self._ring.live:
                return False
            self._ending = True
            try:
                event = RunEvent(self._ring.last + 1, self._ring.run_id, "end", data)
                everything = self._ring.whole() if self._rows > MERGE_ROWS else None
                batch = await self._batch([*(everything or self._ring.unwritten()), event], anew=everything is not None)
                try:
                    await self._write(batch, also)
                except (LostRunError, _RefusedError):
                    return False
                self._ring.append(event)
                self._ring.durable = event.seq
            finally:
                self._ending = False
            self._close()
            return True

    async def _batch(self, events: list[RunEvent], *, anew: bool = False) -> Batch:
        if sum(len(event.json) for event in events) > _INLINE_BYTES:
            rows = await asyncio.to_thread(encode_rows, self.thread_id, events)
        else:
            rows = encode_rows(self.thread_id, events)
        last = events[-1].seq if events else self._ring.durable
        replaces_after = self._ring.base if anew else self._ring.durable if self.in_doubt else None
        return Batch(self.thread_id, self._epoch, rows, last, replaces_after)

    async def _write(self, batch: Batch, also: Callable[[Connection], bool]) -> None:
        def job(connection: Connection) -> None:
            write_batch(connection, batch)
            if not also(connection):
                raise _RefusedError

        try:
            await self._flusher.transact([self.thread_id], job)
        except LostRunError:
            self.lose()
            raise
        except _RefusedError:
            raise
        except BaseException:
            self.in_doubt = True
            raise
        self.wrote(batch)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._ring.live = False
            self._ring.values = None
            self._on_closed()
