"""One reader's way through the log of a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from deerflow.events.record import RunEvent
from deerflow.events.ring import Topic
from deerflow.events.store import decode_row

ReadPage = Callable[[int, int | None], Awaitable[list[bytes]]]


class EventReader:
    """Pulls by position, from this process's memory if that reaches back far enough, else from the database.

    What it holds is bounded, however far behind it is. The order matters: a position may only be left behind once the
    database, asked afterwards, has nothing between it and the next one. Whatever is not in the database by the time a ring
    begins (because a newer claim shut its writer out) or by the time a ring drops it will never be there.

    Args:
        topic: the thread.
        read_page: reads rows that hold events after a position and begin by another; not all, but in order.
        run_id: only events of this run.
        after: the position to start behind.
    """

    def __init__(self, topic: Topic, read_page: ReadPage, run_id: str | None, after: int) -> None:
        self._topic = topic
        self._read_page = read_page
        self._run_id = run_id
        self._cursor = after
        self._rows: deque[bytes] = deque()
        self._exhausted: int | None = None
        """What ``topic.others`` was when the database had nothing (more) behind the cursor."""

    def distrust(self) -> None:
        """Ask the database again before saying that there is nothing."""
        self._exhausted = None

    async def more(self) -> list[RunEvent]:
        """The next events; none if there are none yet."""
        while True:
            if events := self._decoded() or self._remembered():
                self._cursor = events[-1].seq
                return events
            ahead = next(
                (ring for ring in reversed([*self._topic.of(self._run_id)]) if ring.floor > self._cursor), None
            )
            if self._exhausted == self._topic.others:
                if ahead is None:
                    return []
                if ahead.base > self._cursor:
                    self._cursor = ahead.base
                    continue
            if ahead and ahead.first_of_run and self._run_id is not None and ahead.base > self._cursor:
                self._cursor = ahead.base
                continue
            floor, others = ahead.floor if ahead else None, self._topic.others
            self._rows.extend(await self._read_page(self._cursor, floor))
            if self._rows:
                continue
            if ahead is None or floor is None:
                self._exhausted = others
                continue
            if self._run_id is not None and self._cursor <= 0 and floor == ahead.base:
                ahead.first_of_run = True
            self._cursor = max(self._cursor, floor)

    def _decoded(self) -> list[RunEvent]:
        while self._rows:
            events = [event for event in decode_row(self._rows.popleft()) if event.seq > self._cursor]
            if events:
                return events
        return []

    def _remembered(self) -> list[RunEvent]:
        ring = next((ring for ring in self._topic.of(self._run_id) if ring.floor <= self._cursor), None)
        return ring.after(self._cursor) if ring else []
