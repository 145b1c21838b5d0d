"""Notices to the screens of a person that something they show has changed, in whichever process it did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from deerflow.events.notify import Wake

logger = logging.getLogger(__name__)

_CHANNEL = "hub"
_SEND_SECONDS = 0.02
MOST_NOTICES = 100
_REFRESH = orjson.dumps({"type": "refresh"})


class _Subscriber:
    """Who listens. Equal notices are one, however long nobody fetches them."""

    def __init__(self) -> None:
        self.notices: dict[bytes, None] = {}
        self.news = asyncio.Event()

    def tell(self, notice: bytes) -> None:
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
    """Publish and subscribe by person. Belongs to one event loop.

    Args:
        wake: to and from the other processes; None if there are none.
    """

    def __init__(self, wake: Wake | None = None) -> None:
        self._wake = wake
        self._listening = False
        self._subscribers: dict[str, set[_Subscriber]] = {}
        self._unsent: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def publish(self, user_id: str, notice: dict[str, Any]) -> None:
        """Tell all subscribers of a person, everywhere.

        Args:
            user_id: whose screens.
            notice: what to look at again, such as ``{"type": "runs", "thread_id": …}``; short, and without contents.
        """
        encoded = orjson.dumps(notice, option=orjson.OPT_SORT_KEYS)
        self._tell(user_id, encoded)
        if self._wake is not None:
            self._unsent[orjson.dumps([user_id, encoded.decode()]).decode()] = None
            if self._sending is None:
                self._sending = asyncio.get_running_loop().create_task(self._send(self._wake))

    async def subscribe(self, user_id: str, heartbeat: float = 5.0) -> AsyncGenerator[list[dict[str, Any]], None]:
        """What is published from now on; an empty list after ``heartbeat`` seconds of silence.

        Who is slow gets equal notices once. ``{"type": "refresh"}`` stands for too many, or for what may have been missed:
        everything may have changed.
        """
        if self._wake is not None and not self._listening:
            self._listening = True
            self._wake.listen(_CHANNEL, self._receive)
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

    def _tell(self, user_id: str, notice: bytes) -> None:
        for subscriber in self._subscribers.get(user_id, ()):
            subscriber.tell(notice)

    def _receive(self, messages: list[str] | None) -> None:
        if messages is None:
            for user_id in self._subscribers:
                self._tell(user_id, _REFRESH)
        else:
            for user_id, notice in map(orjson.loads, messages):
                self._tell(user_id, notice.encode())

    async def _send(self, wake: Wake) -> None:
        try:
            while self._unsent:
                await asyncio.sleep(_SEND_SECONDS)
                unsent, self._unsent = list(self._unsent), {}
                await wake.send(_CHANNEL, unsent)
        except Exception:
            # Whoever listens through what is broken here will reconnect, and refresh then.
            logger.warning("Other processes could not be told of a change.", exc_info=True)
        finally:
            self._sending = None
