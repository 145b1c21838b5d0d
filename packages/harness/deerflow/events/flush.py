"""Writes what runs say, a little later and together, and tells the other processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection

from deerflow.events.store import write_free_batches

if TYPE_CHECKING:
    from deerflow.events.notify import Wake
    from deerflow.events.writer import EventWriter
    from deerflow.storage.database import Database

logger = logging.getLogger(__name__)
T = TypeVar("T")

CHANNEL = "events"
SECONDS_ALONE = 1.0
"""How long an event may wait to be written when readers have it from memory. Each round is a transaction of its own; what a
crash takes is said again by the attempt that follows."""
SECONDS_WITH_OTHERS = 0.02
"""How long an event may wait to be written when other processes may have readers: they see it only then."""
FLUSH_BYTES = 65_536
RETRY_SECONDS = 1.0


class Flusher:
    """One for all writers of a log.

    Args:
        database: where to.
        wake: tells the other processes; None if there are none.
        wrote: called after each round.
    """

    def __init__(self, database: Database, wake: Wake | None, wrote: Callable[[], None]) -> None:
        self._database = database
        self._wake = wake
        self._wrote = wrote
        self._interval = SECONDS_ALONE if wake is None else SECONDS_WITH_OTHERS
        self._writers: dict[EventWriter, None] = {}
        self._timer: asyncio.Handle | None = None
        self._due = 0.0  # uvloop's handles do not tell
        self._round: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def mark(self, writer: EventWriter) -> None:
        """The writer has something that is to be written soon."""
        if writer not in self._writers:
            self._writers[writer] = None
            self._write_in(self._interval)
        if writer.unwritten_bytes >= FLUSH_BYTES:
            self._write_in(0)

    def unmark(self, writer: EventWriter) -> None:
        self._writers.pop(writer, None)

    async def shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work`` to its end even if the caller is cancelled: half a transaction would leave us in doubt."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def transact(self, thread_ids: Sequence[str], job: Callable[[Connection], T]) -> T:
        """Write, and let the other processes know what about."""

        def work(connection: Connection) -> tuple[T, bool]:
            result = job(connection)
            return result, self._wake is None or self._wake.within(connection, CHANNEL, thread_ids)

        result, told = await self._database.write(work)
        if self._wake is not None and not told:
            await self._wake.send(CHANNEL, thread_ids)
        return result

    async def aclose(self) -> None:
        """Write what there is. What cannot be written is given up, and said so."""
        if self._timer is not None:
            self._timer.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._round is not None:
            await self._round
        if self._timer is not None:
            self._timer.cancel()
        if self._writers:
            await self._write()

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
        self._round = asyncio.get_running_loop().create_task(self._write())
        self._round.add_done_callback(self._end_round)

    def _end_round(self, done: asyncio.Task[None]) -> None:
        self._round = None
        failed = not done.cancelled() and done.exception() is not None
        if failed:
            logger.error("Events could not be written; trying again.", exc_info=done.exception())
        if self._writers and not done.cancelled():
            self._write_in(RETRY_SECONDS if failed else self._interval)

    async def _write(self) -> None:
        """One transaction for all writers that are not writing by themselves just now."""
        writers = {writer.thread_id: writer for writer in self._writers if not writer.lock.locked()}
        if not writers:
            return
        for writer in writers.values():
            await writer.lock.acquire()
        try:
            batches = [await writer.batch() for writer in writers.values()]
            lost, locked = await self.transact(
                list(writers), lambda connection: write_free_batches(connection, batches)
            )
            for batch in batches:
                if batch.thread_id in lost:
                    writers[batch.thread_id].lose()
                elif batch.thread_id not in locked:
                    writers[batch.thread_id].wrote(batch)
        except BaseException:
            for writer in writers.values():
                writer.in_doubt = True
            raise
        finally:
            for writer in writers.values():
                writer.lock.release()
        self._wrote()
