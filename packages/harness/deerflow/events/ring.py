"""The recent events of threads whose runs execute in this process, and the readers that wait for more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from deerflow.events.record import EPOCH, RunEvent

RUN_BYTES = 8 * 2**20
TOTAL_BYTES = 128 * 2**20
BATCH_EVENTS = 256
BATCH_BYTES = 262_144
_EVENT_OVERHEAD = 200


class Ring:
    """What one attempt at a run has said: everything after ``floor``. Only what is durable is dropped."""

    def __init__(self, run_id: str, epoch: int) -> None:
        self.run_id = run_id
        self.base = self.floor = self.last = self.durable = epoch * EPOCH
        self.size = 0
        self.live = True
        self.first_of_run = False
        """Known to be the run's first attempt, so that its readers need not look for an earlier one."""
        self.values: dict[str, Any] | None = None
        self._events: list[RunEvent] = []

    def append(self, event: RunEvent) -> None:
        self._events.append(event)
        self.last = event.seq
        self.size += len(event.json) + _EVENT_OVERHEAD

    def after(self, cursor: int) -> list[RunEvent]:
        """The next events; at least one if there is any, and no more than a reader should hold at once."""
        start = cursor - self.floor
        events = self._events[start : start + BATCH_EVENTS]
        size = 0
        for index, event in enumerate(events):
            size += len(event.json)
            if size > BATCH_BYTES:
                return events[: index + 1]
        return events

    def unwritten(self) -> list[RunEvent]:
        return self._events[self.durable - self.floor :]

    def whole(self) -> list[RunEvent] | None:
        """Everything that was said, or None if some of it has been dropped."""
        return list(self._events) if self.floor == self.base else None

    def shrink(self, size: int) -> None:
        """Drop the oldest events until no more than half of ``size`` bytes are left."""
        if self.size <= size:
            return
        dropped = 0
        while self.size > size // 2 and self.floor + dropped < self.durable:
            self.size -= len(self._events[dropped].json) + _EVENT_OVERHEAD
            dropped += 1
        del self._events[:dropped]
        self.floor += dropped


class Topic:
    """A thread: its rings, oldest first, and who waits for it."""

    __slots__ = ("_waiting", "changes", "deleted", "others", "readers", "rings")

    def __init__(self) -> None:
        self.rings: list[Ring] = []
        self.readers = 0
        self.changes = 0
        self.others = 0
        """Grows when the database may hold what no ring of this process does."""
        self.deleted = False
        self._waiting: set[asyncio.Future[bool]] = set()

    def wake(self, *, others: bool = False) -> None:
        self.changes += 1
        self.others += others
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(True)

    async def wait(self, until: float) -> bool:
        """Until the next :meth:`wake`, or False at the loop's time ``until``."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting.add(future)
        timer = loop.call_at(until, _expire, future)
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.discard(future)

    def of(self, run_id: str | None) -> Iterator[Ring]:
        """Newest first."""
        return (ring for ring in reversed(self.rings) if run_id is None or ring.run_id == run_id)

    def executes(self, run_id: str | None) -> bool:
        return any(ring.live for ring in self.of(run_id))

    @property
    def idle(self) -> bool:
        return not self.rings and not self.readers


def _expire(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)
