"""Server-sent events out of the bytes of an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; ``data`` is JSON."""

    name: str
    data: bytes
    id: str


async def server_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[ServerEvent | None, None]:
    """Every whole event, and None for a comment, which says that the connection lives. What is cut off is left out.

    See https://html.spec.whatwg.org/multipage/server-sent-events.html; lines end with LF or CR LF here.
    """
    fields: dict[bytes, bytes] = {}
    async for line in _lines(chunks):
        if line:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            fields[name] = fields[name] + b"\n" + value if name == b"data" and name in fields else value
            continue
        if b"data" in fields:
            yield ServerEvent(
                fields.get(b"event", b"message").decode(), fields[b"data"], fields.get(b"id", b"").decode()
            )
        else:
            yield None
        fields = {}


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split at line feeds only: JSON may hold other characters that text is split at."""
    pending = bytearray()
    async for chunk in chunks:
        pending += chunk
        if b"\n" not in chunk:
            continue
        *lines, rest = pending.split(b"\n")
        pending = bytearray(rest)
        for line in lines:
            yield bytes(line.removesuffix(b"\r"))
