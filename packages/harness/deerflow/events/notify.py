"""Notifications: between the processes that share a PostgreSQL, and to the screens of a person in all of them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zlib import crc32

import orjson
from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

Receive = Callable[[list[str] | None], None]

POSTGRES_CHANNEL = "deerflow"
CHANNELS = 64
"""For what concerns single threads: ``deerflow_0`` and so on, by hash."""
KEPT_SECONDS = 60.0
"""For so long one of them is listened to after the last thread was left: the next one may come."""
RETRY_SECONDS = 1.0
MOST_NOTICES = 100
_PAYLOAD_BYTES = 7300
_NOTIFY = text(
    "SELECT pg_notify(channel, payload) FROM unnest(CAST(:channels AS text[]), CAST(:payloads AS text[])) AS notice (channel, payload)"
)


class Notifier:
    """Short messages between processes, through PostgreSQL's LISTEN and NOTIFY. They may get lost with a connection, so they
    only say where to look.

    One connection listens for the whole process; it must not go through a pooler in transaction mode. What concerns one thread
    goes through one of 64 channels of PostgreSQL, so that a process gets little that it does not follow.

    Args:
        database: the PostgreSQL that the processes share.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sender = uuid4().hex
        self._by_channel: dict[str, Receive] = {}
        self._followed: dict[str, _Followed] = {}
        """By channel of PostgreSQL."""
        self._heard: set[str] = set()
        """Channels of PostgreSQL that the connection listens to."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        return bool(self._heard)

    def listen(self, channel: str, receive: Receive) -> None:
        """Call ``receive`` on the running loop with what other processes send to ``channel``, never with our own messages.

        None instead of messages: the connection is (again) there, and what was sent before may have been missed.
        """
        self._by_channel[channel] = receive
        if self.is_connected:
            receive(None)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())

    @contextmanager
    def following(self, channel: str, key: str) -> Iterator[None]:
        """Let the channel's receiver get what is sent about ``key``, and ``[key]`` itself as soon as it does."""
        name = _name_of(key)
        followed = self._followed.setdefault(name, _Followed())
        followed.keys[channel, key] += 1
        if name not in self._heard:
            self._changed.set()
        try:
            yield
        finally:
            followed.keys[channel, key] -= 1
            if not followed.keys[channel, key]:
                del followed.keys[channel, key]
            followed.left_at = asyncio.get_running_loop().time()

    def within(self, connection: Connection, channel: str, messages: Sequence[str]) -> None:
        """Send when the transaction of ``connection`` is committed. Raises ValueError for a message of more than 7000 bytes."""
        _notify(connection, [(POSTGRES_CHANNEL, payload) for payload in self.payloads(channel, messages)])

    def within_about(self, connection: Connection, channel: str, keys: Collection[str]) -> None:
        """Send keys to those who follow them, likewise."""
        _notify(connection, self._about(channel, keys))

    async def send(self, channel: str, messages: Sequence[str]) -> None:
        """Send now. What cannot be sent is no error: others look for themselves within seconds, or when they are connected again.

        Raises ValueError for a message of more than 7000 bytes.
        """
        await self._send(channel, [(POSTGRES_CHANNEL, payload) for payload in self.payloads(channel, messages)])

    async def send_about(self, channel: str, keys: Collection[str]) -> None:
        """Send keys to those who follow them, likewise."""
        await self._send(channel, self._about(channel, keys))

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

    def _about(self, channel: str, keys: Iterable[str]) -> list[tuple[str, str]]:
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for key in keys:
            by_name[_name_of(key)].append(key)
        return [(name, payload) for name, some in by_name.items() for payload in self.payloads(channel, some)]

    async def _send(self, channel: str, notices: list[tuple[str, str]]) -> None:
        try:
            await self._database.write(_notify, notices)
        except Exception as error:
            logger.warning("Other processes could not be notified (%s), they look for themselves: %r", channel, error)

    async def _listen(self) -> None:
        import psycopg

        # A peer that vanishes is noticed within half a minute.
        options: dict[str, Any] = {
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "connect_timeout": 10,
        }
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._database.direct, autocommit=True, **options
                ) as connection:
                    await self._attune(connection)
                    for receive in list(self._by_channel.values()):
                        receive(None)
                    while True:
                        await self._hear(connection)
                        self._catch_up(await self._attune(connection))
            except Exception as error:
                logger.warning("The connection that listens to PostgreSQL is lost, connecting again: %s", error)
            finally:
                self._heard = set()
            await asyncio.sleep(RETRY_SECONDS)

    async def _hear(self, connection: AsyncConnection[Any]) -> None:
        """Deliver what comes until something else is to be listened to."""
        hearing = asyncio.create_task(self._deliver_all(connection))
        changing = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({hearing, changing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changing.cancel()
            hearing.cancel()  # where it waits, nothing that has come is lost
            await asyncio.wait({hearing})
        if not hearing.cancelled():
            hearing.result()

    async def _deliver_all(self, connection: AsyncConnection[Any]) -> None:
        async for notice in connection.notifies():
            self.deliver(notice.payload)

    async def _attune(self, connection: AsyncConnection[Any]) -> set[str]:
        """Listen to what is followed, and no more to what was left a while ago. Return what is new."""
        self._changed.clear()
        until = asyncio.get_running_loop().time() - KEPT_SECONDS
        for name in [name for name, one in self._followed.items() if not one.keys and one.left_at < until]:
            del self._followed[name]
        wanted = {POSTGRES_CHANNEL, *self._followed}
        new, old = wanted - self._heard, self._heard - wanted
        commands = [f"LISTEN {name}" for name in sorted(new)] + [f"UNLISTEN {name}" for name in sorted(old)]
        self._heard = wanted  # who comes from now on finds it so, or asks again
        await connection.execute("; ".join(commands).encode())
        return new

    def _catch_up(self, new: Iterable[str]) -> None:
        """Let followers look again: notices sent there before may have been missed."""
        for name in new:
            for channel, key in list(self._followed[name].keys):
                if channel in self._by_channel:
                    self._by_channel[channel]([key])


@dataclass(slots=True)
class _Followed:
    """Followers of a channel of PostgreSQL: their number by key, and when, by the loop's clock, one left last."""

    keys: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    left_at: float = 0.0


def _name_of(key: str) -> str:
    return f"{POSTGRES_CHANNEL}_{crc32(key.encode()) % CHANNELS}"


def _notify(connection: Connection, notices: Sequence[tuple[str, str]]) -> None:
    """Send (channel of PostgreSQL, payload)."""
    if notices:
        channels, payloads = zip(*notices, strict=True)
        connection.execute(_NOTIFY, {"channels": list(channels), "payloads": list(payloads)})
