"""Notices about messages before they are handled: missed while away, or waiting for long. Nothing is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from deerflow.features.channels.inbox import is_addressed
from deerflow.features.channels.outbox import Target
from deerflow.features.channels.types import Event
from deerflow.features.channels.work import PlatformWork

MISSED = "Missed while away: {count}. Send what is still wanted again."
BUSY = "This takes longer than usual: {count} messages wait. Yours is kept."
_BUSY_EVERY = 600


class Notices:
    """Args:
    wake: something may be sent.
    """

    def __init__(self, work: PlatformWork, connection_id: str, wake: Callable[[], None]) -> None:
        self._work = work
        self._id = connection_id
        self._wake = wake
        self._came = asyncio.Event()
        self._some_late = True
        self._new: dict[tuple[str, str], Event] = {}

    def came(self, events: Sequence[Event]) -> None:
        """Note events that were stored."""
        for event in events:
            if self._work.inbox.is_late(event):
                self._some_late = True
            elif is_addressed(event):
                self._new[event.place.chat, event.place.topic] = event
        self._came.set()

    async def run(self) -> None:
        """Say what is to be said, a moment after messages came, until cancelled."""
        while True:
            await asyncio.sleep(self._work.timing.settles)
            late, self._some_late = self._some_late, False
            new, self._new = list(self._new.values()), {}
            if late:
                await self._work.database.write(self._say_missed)
            waiting = await self._work.database.read(self._work.inbox.waiting, self._id) if new else 0
            if waiting > self._work.max_waiting:
                await self._work.database.write(self._say_busy, new, waiting)
            self._wake()
            await self._came.wait()
            self._came.clear()

    def _say_missed(self, connection: Connection) -> None:
        for row, count in self._work.inbox.take_missed(connection, self._id):
            target = Target(self._id, row.event.place, row.event.wake)
            text = MISSED.format(count=count)
            self._work.outbox.deliver(connection, target, text, key=f"missed:{row.id}")

    def _say_busy(self, connection: Connection, new: Sequence[Event], waiting: int) -> None:
        window = int(self._work.inbox.now().timestamp()) // _BUSY_EVERY
        for event in new:
            target = Target(self._id, event.place, event.wake)
            key = f"busy:{window}:{event.place.chat}:{event.place.topic}"
            self._work.outbox.deliver(connection, target, BUSY.format(count=waiting), key=key)
