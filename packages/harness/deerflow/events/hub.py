"""Deliver notices within a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    pass
from deerflow.events.notify import MOST_NOTICES, Notifier

SEND_SECONDS = 0.02
_HUB = "hub"
_REFRESH = orjson.dumps({"type": "refresh"})


class _Subscriber:
    """A screen. Equal notices are kept once until they are fetched."""

    def __init__(self) -> None:
        self.notices: dict[bytes, None] = {}
        self.news = asyncio.Event()

    def add(self, notice: bytes) -> None:
        if len(self.notices) >= MOST_NOTICES or notice == _REFRESH or _REFRESH in self.notices:
            self.notices = {_REFRESH: None}
        else:
            self.notices[notice] = None
        self.news.set()

    def take(self) -> list[dict[str, Any]]:
        taken, self.notices = self.notices, {}
        self.news.clear()
        return [orjson.loads(notice) for notice in taken]


class Hub:
    """Publish and subscribe by person: notices that something a screen shows has changed, in whichever process it did.

    Belongs to one event loop.

    Args:
        notifier: to and from the other processes; None if there are none.
    """

    def __init__(self, notifier: Notifier | None = None) -> None:
        self._notifier = notifier
        self._listening = False
        self._subscribers: dict[str, set[_Subscriber]] = {}
        self._unsent: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def publish(self, user_id: str, notice: dict[str, Any]) -> None:
        """Notify all subscribers of a person, everywhere.

        Args:
            user_id: whose screens.
            notice: what to look at again, such as ``{"type": "runs", "thread_id": …}``; short, and without contents.
        """
        encoded = orjson.dumps(notice, option=orjson.OPT_SORT_KEYS)
        self._deliver(user_id, encoded)
        if self._notifier is not None:
            self._unsent[orjson.dumps([user_id, encoded.decode()]).decode()] = None
            if self._sending is None:
                self._sending = asyncio.get_running_loop().create_task(self._send(self._notifier))

    async def subscribe(self, user_id: str, heartbeat: float = 5.0) -> AsyncGenerator[list[dict[str, Any]], None]:
        """Yield what is published from now on; an empty list after ``heartbeat`` seconds of silence.

        A slow subscriber gets equal notices once. ``{"type": "refresh"}`` stands for too many, or for what may have been
        missed: everything may have changed.
        """
        if self._notifier is not None and not self._listening:
            self._listening = True
            self._notifier.listen(_HUB, self._receive)
        subscriber = _Subscriber()
        self._subscribers.setdefault(user_id, set()).add(subscriber)
        try:
            while True:
                try:
                    async with asyncio.timeout(heartbeat):
                        await subscriber.news.wait()
                except TimeoutError:
                    yield []
                else:
                    yield subscriber.take()
        finally:
            self._subscribers[user_id].discard(subscriber)
            if not self._subscribers[user_id]:
                del self._subscribers[user_id]

    async def aclose(self) -> None:
        """Send what is not sent yet."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    def _deliver(self, user_id: str, notice: bytes) -> None:
        for subscriber in self._subscribers.get(user_id, ()):
            subscriber.add(notice)

    def _receive(self, messages: list[str] | None) -> None:
        if messages is None:
            for user_id in self._subscribers:
                self._deliver(user_id, _REFRESH)
        else:
            for user_id, notice in map(orjson.loads, messages):
                self._deliver(user_id, notice.encode())

    async def _send(self, notifier: Notifier) -> None:
        try:
            while self._unsent:
                await asyncio.sleep(SEND_SECONDS)
                unsent, self._unsent = list(self._unsent), {}
                await notifier.send(_HUB, unsent)
        finally:
            self._sending = None
