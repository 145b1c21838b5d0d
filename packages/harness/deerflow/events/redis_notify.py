"""Wake-ups through Redis's publish and subscribe, which spare PostgreSQL its NOTIFY lock. Events stay in the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from redis.asyncio import Redis
from sqlalchemy import Connection

from deerflow.events.notify import Receive, Receivers

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_PING_SECONDS = 10


class RedisWake:
    """One connection listens for the whole process.

    Args:
        url: ``redis://…``; every process that shares the database must use the same one.
        channel: to be chosen differently if several installations share the Redis.
    """

    def __init__(self, url: str, channel: str = "deerflow") -> None:
        # Without driver_info, or it would look its own version up in the file system whenever it connects.
        self._redis = Redis.from_url(url, socket_keepalive=True, health_check_interval=_PING_SECONDS, driver_info=None)
        self._channel = channel
        self._receivers = Receivers()
        self._listening: asyncio.Task[None] | None = None
        self._unsent: dict[str, dict[str, None]] = {}
        self._sending: asyncio.Task[None] | None = None

    def listen(self, channel: str, receive: Receive) -> None:
        self._receivers.add(channel, receive)
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    def within(self, connection: Connection, channel: str, messages: Sequence[str]) -> bool:
        return False

    async def send(self, channel: str, messages: Sequence[str]) -> None:
        self._unsent.setdefault(channel, {}).update(dict.fromkeys(messages))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def aclose(self) -> None:
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=_RETRY_SECONDS)
        tasks = [task for task in (self._listening, self._sending) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._redis.aclose()

    async def _send(self) -> None:
        """Until nothing is left: those who listen do not know that we could not send."""
        while self._unsent:
            unsent, self._unsent = self._unsent, {}
            try:
                for channel, messages in unsent.items():
                    for payload in self._receivers.payloads(channel, messages):
                        await self._redis.publish(self._channel, payload)
            except Exception as error:
                logger.warning("Redis cannot be reached, trying again: %s", error)
                for channel, messages in unsent.items():
                    self._unsent.setdefault(channel, {}).update(messages)
                await asyncio.sleep(_RETRY_SECONDS)
        self._sending = None

    async def _listen(self) -> None:
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    await pubsub.subscribe(self._channel)
                    while True:
                        # Comes back now and then, so that a ping notices a peer that is gone without a word.
                        message = await pubsub.get_message(timeout=_PING_SECONDS)
                        if message is not None and message["type"] == "subscribe":
                            self._receivers.connected()
                        elif message is not None and message["type"] == "message":
                            self._receivers.deliver(message["data"])
            except Exception as error:
                logger.warning("The connection that listens to Redis is lost, connecting anew: %s", error)
            finally:
                self._receivers.disconnected()
            await asyncio.sleep(_RETRY_SECONDS)
