"""The event log: what happens in runs, kept in order for its readers, live or later, in this process or another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deerflow.events.jsonable import values_json
from deerflow.events.store import (
    EVENTS_PER_CLAIM,
    LostRunError,
    RunEvent,
    decode_row,
    delete_events,
    read_page,
)
from deerflow.events.writer import CHANNEL, EventWriter, Flusher, Topic, Topics

if TYPE_CHECKING:
    from deerflow.events.notify import Notifier
    from deerflow.storage.database import Database

__all__ = ["EVENTS_PER_CLAIM", "EventLog", "EventWriter", "LostRunError", "RunEvent"]

MANY_MESSAGES = 32
"""So many are rendered in a thread of their own."""
BEGIN_SECONDS = 0.1
"""How long a silent reader waits for its run to begin here before it asks the database how the run stands."""


class EventLog:
    """Events of all threads. Belongs to one event loop; nothing of it may be called from another thread.

    Args:
        database: where events are kept.
        notifier: to and from other processes that use the database. None: there are none.
    """

    def __init__(self, database: Database, notifier: Notifier | None = None) -> None:
        self._database = database
        self._notifier = notifier
        self._flusher = Flusher(database, notifier)
        self._listening = False
        self._topics = Topics()

    def writer(self, thread_id: str, run_id: str, fencing_token: int, *, first_attempt: bool = False) -> EventWriter:
        """For the run that has claimed the thread. Earlier writers of the thread have lost it.

        Args:
            first_attempt: nothing has executed this run before: the log holds no event of it.
        """
        return EventWriter(self._flusher, self._topics, thread_id, run_id, fencing_token, first_attempt=first_attempt)

    async def read(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        after: int = 0,
        heartbeat: float = 5.0,
        ended: Callable[[], Awaitable[bool]] | None = None,
        fresh: bool = False,
    ) -> AsyncGenerator[list[RunEvent], None]:
        """Events after a position: first those that are there, then those that come.

        Args:
            thread_id: the thread. Whether the reader may see it is the caller's to check.
            run_id: only events of this run, up to its ``end``. None: all of the thread, until it is deleted.
            after: the position.
            heartbeat: seconds of silence after which an empty list is yielded.
            ended: whether the run is over, for runs that end without an event. Asked when there is nothing to yield.
            fresh: the run has just been made; if this process alone executes runs, the database holds nothing of it.
        """
        with self._reading(thread_id, follows=heartbeat > 0) as topic:
            reader = _LogReader(self._database, topic, thread_id, run_id, after)
            if fresh and self._notifier is None:
                reader.exhausted = topic.others
            clock = asyncio.get_running_loop().time
            until, ask_at, over = clock() + heartbeat, clock() + min(BEGIN_SECONDS, heartbeat), False
            while True:
                seen = topic.changes
                if events := await reader.more():
                    yield events
                    if run_id is not None and events[-1].method == "end":
                        return
                    until = clock() + heartbeat
                    continue
                if topic.deleted or over:
                    return
                if topic.changes != seen:
                    continue
                if ended is not None and not topic.executes(run_id):
                    # What other runs of the thread emit must not put the question off.
                    if clock() < ask_at and await topic.wait(ask_at):
                        continue
                    ask_at = clock() + min(BEGIN_SECONDS, heartbeat)
                    if await ended():
                        over = True
                        reader.exhausted = None
                        continue
                if topic.changes == seen and not await topic.wait(until):
                    yield []
                    until = clock() + heartbeat

    async def so_far(self, thread_id: str, run_id: str) -> AsyncGenerator[list[RunEvent], None]:
        """The events of a run until now, some at a time."""
        async with aclosing(self.read(thread_id, run_id=run_id, heartbeat=0, ended=_yes)) as pages:
            async for page in pages:
                if not page:
                    return
                yield page

    def latest_values(self, thread_id: str) -> dict[str, Any] | None:
        """The graph's state, by reference, if a run of the thread executes in this process and has emitted it."""
        topic = self._topics.get(thread_id)
        return topic.writer.state if topic is not None and topic.writer is not None else None

    async def live_values(self, thread_id: str) -> dict[str, Any] | None:
        """:meth:`latest_values` as JSON values for clients; do not change them."""
        topic, state = self._topics.get(thread_id), self.latest_values(thread_id)
        if topic is None or topic.writer is None or state is None:
            return None
        rendered = topic.writer.rendered
        if len(state.get("messages") or ()) - len(rendered) > MANY_MESSAGES:
            return await asyncio.to_thread(values_json, state, rendered)
        return values_json(state, rendered)

    async def notify(self, thread_id: str) -> None:
        """Let readers everywhere ask again whether their run is over: it has ended without an event."""
        self._receive([thread_id])
        if self._notifier is not None:
            await self._notifier.send_about(CHANNEL, [thread_id])

    async def delete(self, thread_id: str, run_id: str | None = None) -> None:
        """Forget the events of a run, or of the whole thread, whose readers then come to their end."""
        await self._database.write(lambda connection: delete_events(connection, thread_id, run_id))
        if (topic := self._topics.get(thread_id)) is None:
            return
        if (writer := topic.of(run_id)) is not None:
            writer.live = False
            topic.writer = None
        if run_id is None:
            topic.deleted = True
            del self._topics[thread_id]
        topic.notify(others=True)
        self._topics.forget(thread_id, topic)

    async def aclose(self) -> None:
        """Write what is not yet written. The database and the notifier stay open: they are the caller's."""
        await self._flusher.aclose()

    @contextmanager
    def _reading(self, thread_id: str, *, follows: bool) -> Iterator[Topic]:
        """A reader's time with a thread. ``follows``: it learns from other processes that there are new events."""
        following = nullcontext()
        if follows and self._notifier is not None:
            if not self._listening:
                self._listening = True
                self._notifier.listen(CHANNEL, self._receive)
            following = self._notifier.following(CHANNEL, thread_id)
        topic = self._topics[thread_id]
        topic.readers += 1
        try:
            with following:
                yield topic
        finally:
            topic.readers -= 1
            self._topics.forget(thread_id, topic)

    def _receive(self, thread_ids: list[str] | None) -> None:
        for topic in self._topics.values() if thread_ids is None else map(self._topics.get, thread_ids):
            if topic is not None:
                topic.notify(others=True)


async def _yes() -> bool:
    return True


@dataclass(eq=False)
class _LogReader:
    """One reader's position in the log of a thread, from this process's memory if that reaches back far enough, else from
    the database. What it holds is bounded, however far behind it is.

    The order matters: a position may only be left behind once the database, asked afterwards, has nothing between it and
    the next one. What is not in the database when a buffer begins (a newer claim shut its writer out) will never be there.

    Args:
        run_id: only events of this run.
        cursor: the position to start behind.
    """

    database: Database
    topic: Topic
    thread_id: str
    run_id: str | None
    cursor: int
    exhausted: int | None = None
    """What ``topic.others`` was when the database had nothing (more) after the cursor. None: ask it before there is nothing."""
    _rows: deque[bytes] = field(default_factory=deque[bytes])

    async def more(self) -> list[RunEvent]:
        """The next events; none if there are none yet."""
        while True:
            if events := self._decoded() or self._buffered():
                self.cursor = events[-1].seq
                return events
            writer, others = self.topic.of(self.run_id), self.topic.others
            if writer is not None and writer.floor > self.cursor:
                await self._catch_up(writer, others)
                continue
            # What comes while a writer here is live is in its buffer: who takes the thread away ends that, and notifies.
            if writer is not None and writer.live:
                if self.exhausted is None or self.exhausted >= writer.others:
                    return []
            elif self.exhausted == others:
                return []
            if not await self._read_page():
                self.exhausted = others

    async def _catch_up(self, writer: EventWriter, others: int) -> None:
        """Read what the writer does not hold any more, or go on to it if there is nothing."""
        is_first = writer.first_attempt and self.run_id is not None
        floor = writer.floor
        if writer.base > self.cursor and (is_first or self.exhausted == others):
            self.cursor = writer.base
        elif not await self._read_page(floor):
            self.cursor = max(self.cursor, floor)

    async def _read_page(self, until: int | None = None) -> bool:
        """Whether there are rows that hold events after the cursor and begin by ``until``: not all, but in order."""
        thread_id, run_id, after = self.thread_id, self.run_id, self.cursor
        self._rows.extend(
            await self.database.read(lambda connection: read_page(connection, thread_id, run_id, after, until))
        )
        return bool(self._rows)

    def _decoded(self) -> list[RunEvent]:
        while self._rows:
            events = [event for event in decode_row(self._rows.popleft()) if event.seq > self.cursor]
            if events:
                return events
        return []

    def _buffered(self) -> list[RunEvent]:
        writer = self.topic.of(self.run_id)
        return writer.after(self.cursor) if writer is not None and writer.floor <= self.cursor else []
