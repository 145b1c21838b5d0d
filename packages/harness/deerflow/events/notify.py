"""Notifications: between the processes that share a PostgreSQL, and to the screens of a person in all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

Receive = Callable[[list[str] | None], None]

POSTGRES_CHANNEL = "deerflow"
RETRY_SECONDS = 1.0
SEND_SECONDS = 0.02
MOST_NOTICES = 100
_PAYLOAD_BYTES = 7300
_NOTIFY = text("SELECT pg_notify(:channel, :payload)")
_HUB = "hub"
_REFRESH = orjson.dumps({"type": "refresh"})


class Notifier:
    """Short messages between processes, through PostgreSQL's LISTEN and NOTIFY. They may get lost with a connection, so they
    only say where to look.

    One connection listens for the whole process; it must not go through a pooler in transaction mode.

    Args:
        database: the PostgreSQL that the processes share.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sender = uuid4().hex
        self._by_channel: dict[str, Receive] = {}
        self.is_connected = False
        self._task: asyncio.Task[None] | None = None

    def listen(self, channel: str, receive: Receive) -> None:
        """Call ``receive`` on the running loop with what other processes send to ``channel``, never with our own messages.

        None instead of messages: the connection is (again) there, and what was sent before may have been missed.
        """
        self._by_channel[channel] = receive
        if self.is_connected:
            receive(None)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())

    def within(self, connection: Connection, channel: str, messages: Sequence[str]) -> None:
        """Send when the transaction of ``connection`` is committed. Raises ValueError for a message of more than 7000 bytes."""
        for payload in self.payloads(channel, messages):
            connection.execute(_NOTIFY, {"channel": POSTGRES_CHANNEL, "payload": payload})

    async def send(self, channel: str, messages: Sequence[str]) -> None:
        """Send now."""
        await self._database.write(lambda connection: self.within(connection, channel, messages))

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def payloads(self, channel: str, messages: Iterable[str]) -> list[str]:
        """As few as hold the messages, none larger than the 8000 bytes that PostgreSQL allows."""
        packed: list[list[str]] = []
        room = 0
        for message in messages:
            length = len(orjson.dumps(message)) + 1
            if length > _PAYLOAD_BYTES:
                raise ValueError(f"A message of {length} bytes to other processes is too long.")
            if length > room:
                packed.append([])
                room = _PAYLOAD_BYTES
            packed[-1].append(message)
            room -= length
        return [orjson.dumps([self._sender, channel, some]).decode() for some in packed]

    def deliver(self, payload: str) -> None:
        sender, channel, messages = orjson.loads(payload)
        if sender != self._sender and channel in self._by_channel:
            self._by_channel[channel](messages)

    async def _listen(self) -> None:
        import psycopg

        address = "postgresql://" + self._database.location.split("://", 1)[1]
        # A peer that vanishes is noticed within half a minute.
        options: dict[str, Any] = {
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "connect_timeout": 10,
        }
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(address, autocommit=True, **options) as connection:
                    await connection.execute(f"LISTEN {POSTGRES_CHANNEL}")
                    self.is_connected = True
                    for receive in list(self._by_channel.values()):
                        receive(None)
                    async for notice in connection.notifies():
                        self.deliver(notice.payload)
            except Exception as error:
                logger.warning("The connection that listens to PostgreSQL is lost, connecting again: %s", error)
            finally:
                self.is_connected = False
            await asyncio.sleep(RETRY_SECONDS)


class _Subscriber:
    """A screen. Equal notices are one, however long nobody fetches them."""

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
        """What is published from now on; an empty list after ``heartbeat`` seconds of silence.

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
        except Exception:
            # Whoever listens through what is broken here reconnects, and refreshes then.
            logger.warning("Other processes could not be notified of a change.", exc_info=True)
        finally:
            self._sending = None
