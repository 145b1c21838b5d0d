"""The event log: what runs say, kept in order for whoever reads it, live or later, in this process or another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from deerflow.events.flush import CHANNEL, Flusher
from deerflow.events.reader import EventReader
from deerflow.events.record import RunEvent
from deerflow.events.ring import RUN_BYTES, TOTAL_BYTES, Ring, Topic
from deerflow.events.store import LostRunError, delete_events, read_page
from deerflow.events.writer import EventWriter

if TYPE_CHECKING:
    from deerflow.events.notify import Wake
    from deerflow.storage.database import Database

__all__ = ["EventLog", "EventWriter", "LostRunError", "RunEvent"]

KEEP_SECONDS = 60.0
"""How long what an ended run said stays in memory."""


class EventLog:
    """Events of all threads. Belongs to one event loop; nothing of it may be called from another thread.

    Args:
        database: where events are kept.
        wake: tells other processes that use the database, and us of them. None: there are none.
    """

    def __init__(self, database: Database, wake: Wake | None = None) -> None:
        self._database = database
        self._wake = wake
        self._flusher = Flusher(database, wake, self._make_room)
        self._listening = False
        self._topics: dict[str, Topic] = {}

    def writer(self, thread_id: str, run_id: str, epoch: int) -> EventWriter:
        """For the run that has claimed the thread, with the epoch of its claim. Earlier writers of the thread have lost it."""
        topic = self._topic(thread_id)
        ring = Ring(run_id, epoch)
        topic.rings.append(ring)
        for earlier in [earlier for earlier in topic.rings if earlier.live and earlier is not ring]:
            self._drop(thread_id, topic, earlier)
        topic.wake(others=self._wake is not None)
        return EventWriter(
            self._flusher,
            topic,
            ring,
            thread_id,
            epoch,
            closed=lambda: self._closed(thread_id, topic, ring),
            dropped=lambda: self._drop(thread_id, topic, ring),
        )

    async def read(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        after: int = 0,
        heartbeat: float = 5.0,
        ended: Callable[[], Awaitable[bool]] | None = None,
    ) -> AsyncGenerator[list[RunEvent], None]:
        """Events after a position: first what there is, then what comes.

        Args:
            thread_id: the thread. Whether the reader may see it is the caller's to check.
            run_id: only events of this run, up to its ``end``. None: all of the thread, until it is deleted.
            after: the position.
            heartbeat: seconds of silence after which an empty list is yielded.
            ended: whether the run is over, for runs that ended without a word. Asked when there is nothing to yield.
        """
        self._listen()
        topic = self._topic(thread_id)
        topic.readers += 1
        reader = EventReader(topic, lambda *span: self._page(thread_id, run_id, *span), run_id, after)
        clock = asyncio.get_running_loop().time
        until, over = clock() + heartbeat, False
        try:
            while True:
                seen = topic.changes
                if events := await reader.more():
                    yield events
                    if run_id is not None and events[-1].method == "end":
                        return
                    until = clock() + heartbeat
                elif topic.deleted or over:
                    return
                elif ended is not None and not topic.executes(run_id) and await ended():
                    over = True
                    reader.distrust()
                elif topic.changes == seen and not await topic.wait(until):
                    yield []
                    until = clock() + heartbeat
        finally:
            topic.readers -= 1
            self._forget(thread_id, topic)

    def latest_values(self, thread_id: str) -> dict[str, Any] | None:
        """The graph's state, by reference, if a run of the thread executes in this process and has told it."""
        topic = self._topics.get(thread_id)
        return next((ring.values for ring in topic.of(None) if ring.live), None) if topic else None

    async def touch(self, thread_id: str) -> None:
        """Let readers everywhere ask again whether their run is over: it has ended without a word."""
        self._receive([thread_id])
        if self._wake is not None:
            await self._wake.send(CHANNEL, [thread_id])

    async def delete(self, thread_id: str, run_id: str | None = None) -> None:
        """Forget the events of a run, or of the whole thread, whose readers then come to their end."""
        await self._database.write(lambda connection: delete_events(connection, thread_id, run_id))
        if (topic := self._topics.get(thread_id)) is None:
            return
        for ring in [*topic.of(run_id)]:
            self._drop(thread_id, topic, ring)
        if run_id is None:
            topic.deleted = True
            self._topics.pop(thread_id, None)
        topic.wake(others=True)

    async def aclose(self) -> None:
        """Write what is not yet written. The database and the wake stay open: they are the caller's."""
        await self._flusher.aclose()

    def _listen(self) -> None:
        if self._wake is not None and not self._listening:
            self._listening = True
            self._wake.listen(CHANNEL, self._receive)

    def _receive(self, thread_ids: list[str] | None) -> None:
        topics = self._topics.values() if thread_ids is None else map(self._topics.get, thread_ids)
        for topic in [topic for topic in topics if topic is not None]:
            topic.wake(others=True)

    async def _page(self, thread_id: str, run_id: str | None, after: int, until: int | None) -> list[bytes]:
        return await self._database.read(lambda connection: read_page(connection, thread_id, run_id, after, until))

    def _topic(self, thread_id: str) -> Topic:
        return self._topics.get(thread_id) or self._topics.setdefault(thread_id, Topic())

    def _closed(self, thread_id: str, topic: Topic, ring: Ring) -> None:
        topic.wake()
        asyncio.get_running_loop().call_later(KEEP_SECONDS, self._drop, thread_id, topic, ring)

    def _drop(self, thread_id: str, topic: Topic, ring: Ring) -> None:
        ring.live = False
        if ring in topic.rings:
            topic.rings.remove(ring)
            topic.wake(others=True)
        self._forget(thread_id, topic)

    def _forget(self, thread_id: str, topic: Topic) -> None:
        if topic.idle and self._topics.get(thread_id) is topic:
            del self._topics[thread_id]

    def _make_room(self) -> None:
        """Keep the bounds, at the cost of what readers can also get from the database."""
        rings = [(thread_id, topic, ring) for thread_id, topic in self._topics.items() for ring in topic.rings]
        total = sum(ring.size for _, _, ring in rings)
        for thread_id, topic, ring in sorted(rings, key=lambda item: item[2].live):
            if total <= TOTAL_BYTES:
                limit = RUN_BYTES
            else:
                limit = 0
                total -= ring.size
            if ring.live:
                ring.shrink(limit)
            elif limit == 0:
                self._drop(thread_id, topic, ring)
