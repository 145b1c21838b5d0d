"""How processes that share a database tell each other that there is something to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol
from uuid import uuid4

import orjson
from sqlalchemy import Connection

Receive = Callable[[list[str] | None], None]

_PAYLOAD_BYTES = 7500
_FRAME_BYTES = 200


class Wake(Protocol):
    """Short messages between processes. They may get lost with a connection, so they only say where to look."""

    def listen(self, channel: str, receive: Receive) -> None:
        """Call ``receive`` on the running loop with what other processes send to ``channel``, never with our own messages.

        None instead of messages: the connection is (again) there, and what was sent before may have been missed.
        """
        ...

    def within(self, connection: Connection, channel: str, messages: Sequence[str]) -> bool:
        """Send when the transaction of ``connection`` is committed. False: cannot be done, call :meth:`send` afterwards."""
        ...

    async def send(self, channel: str, messages: Sequence[str]) -> None:
        """Send now, or as soon as there is a connection. Raises ValueError for a message of more than 7000 bytes."""
        ...

    async def aclose(self) -> None: ...


class Receivers:
    """Who listens in this process; packs and unpacks what goes over one connection for all of them."""

    def __init__(self) -> None:
        self._sender = uuid4().hex
        self._by_channel: dict[str, Receive] = {}
        self._connected = False

    def add(self, channel: str, receive: Receive) -> None:
        self._by_channel[channel] = receive
        if self._connected:
            receive(None)

    def connected(self) -> None:
        self._connected = True
        for receive in list(self._by_channel.values()):
            receive(None)

    def disconnected(self) -> None:
        self._connected = False

    def deliver(self, payload: str | bytes) -> None:
        sender, channel, messages = orjson.loads(payload)
        if sender != self._sender and channel in self._by_channel:
            self._by_channel[channel](messages)

    def payloads(self, channel: str, messages: Iterable[str]) -> list[str]:
        """As few as hold the messages, none larger than the 8000 bytes that PostgreSQL allows."""
        packed: list[list[str]] = []
        room = 0
        for message in messages:
            length = len(orjson.dumps(message)) + 1
            if length > _PAYLOAD_BYTES - _FRAME_BYTES:
                raise ValueError(f"A message of {length} bytes to other processes is too long.")
            if length > room:
                packed.append([])
                room = _PAYLOAD_BYTES - _FRAME_BYTES
            packed[-1].append(message)
            room -= length
        return [orjson.dumps([self._sender, channel, some]).decode() for some in packed]
