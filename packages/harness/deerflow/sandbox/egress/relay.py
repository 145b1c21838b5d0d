"""Carrying bytes through the egress proxy: one HTTP request re-framed from scratch, or an opaque tunnel."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter, Task
from dataclasses import dataclass

import h11

CHUNK = 1 << 16
MAX_HEAD = 32 << 10
"""Bytes of a request's or response's head."""

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade", b"expect", b"host"}
)
"""RFC 9110 §7.6.1; ``Host`` is written anew from the target that was checked, ``Expect`` is answered here."""


@dataclass(slots=True)
class Peer:
    """One side of the relay."""

    reader: StreamReader
    writer: StreamWriter
    idle: float
    """Seconds without a byte after which the connection is given up."""

    async def receive(self) -> bytes:
        """The next bytes, empty at the end. Raises TimeoutError."""
        return await asyncio.wait_for(self.reader.read(CHUNK), self.idle)

    async def send(self, data: bytes) -> None:
        if data:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), self.idle)


class HttpPeer:
    """A peer that speaks HTTP/1.1 through h11, which parses strictly and frames what we send itself."""

    def __init__(self, peer: Peer, connection: h11.Connection) -> None:
        self._peer = peer
        self.http = connection

    async def next_event(self) -> h11.Event | type[h11.PAUSED]:
        """Raises h11.RemoteProtocolError for anything malformed."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
            self.http.receive_data(await self._peer.receive())
        return event  # type: ignore[return-value]

    async def send(self, event: h11.Event) -> None:
        await self._peer.send(self.http.send(event) or b"")


async def relay_request(client: HttpPeer, request: h11.Request, target: bytes, authority: str, upstream: Peer) -> None:
    """Send the one request of this connection on and its response back.

    Both messages are parsed and written anew, so nothing hidden behind an ambiguous length reaches the server, and
    nothing after the first request is ever read.
    """
    server = HttpPeer(upstream, h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD))
    incoming = list(request.headers)
    headers = [(b"host", authority.encode("ascii")), *_end_to_end(incoming), (b"connection", b"close")]
    if any(name == b"transfer-encoding" for name, _ in incoming):
        headers.append((b"transfer-encoding", b"chunked"))
    await server.send(h11.Request(method=request.method, target=target, headers=headers))
    upload = asyncio.create_task(_copy_body(client, server))
    download = asyncio.create_task(_copy_response(server, client))
    try:
        # A server may answer before it has read everything; a failed upload means that no answer will come.
        done, _ = await asyncio.wait({upload, download}, return_when=asyncio.FIRST_COMPLETED)
        if download not in done:
            await upload
        await download
    finally:
        await _stop(upload, download)


async def _copy_response(server: HttpPeer, client: HttpPeer) -> None:
    while True:
        event = await server.next_event()
        if isinstance(event, h11.InformationalResponse):
            continue
        if not isinstance(event, h11.Response):
            raise h11.RemoteProtocolError("the server closed the connection without an answer")
        headers = [*_end_to_end(list(event.headers)), (b"connection", b"close")]
        await client.send(h11.Response(status_code=event.status_code, headers=headers, reason=event.reason))
        return await _copy_body(server, client)


async def _copy_body(source: HttpPeer, sink: HttpPeer) -> None:
    while not isinstance(event := await source.next_event(), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            raise h11.RemoteProtocolError("the message ended early")
        await sink.send(h11.Data(data=event.data))
    await sink.send(h11.EndOfMessage())


def _end_to_end(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    named = {token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")}
    return [(name, value) for name, value in headers if name not in _HOP_BY_HOP and name not in named]


async def _stop(*tasks: Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def tunnel(client: Peer, server: Peer, early: bytes) -> None:
    """Carry bytes both ways until both sides have ended; one side may end first. ``early`` came with the request."""
    clock = _Clock(asyncio.get_running_loop().time())
    await server.send(early)
    directions = [asyncio.create_task(_pump(client, server, clock)), asyncio.create_task(_pump(server, client, clock))]
    try:
        await asyncio.gather(*directions)
    finally:
        await _stop(*directions)


@dataclass(slots=True)
class _Clock:
    last: float


async def _pump(source: Peer, sink: Peer, clock: _Clock) -> None:
    now = asyncio.get_running_loop().time
    while True:
        try:
            data = await source.receive()
        except TimeoutError:
            # The other direction may still be busy: a long download sends nothing up.
            if now() - clock.last >= source.idle:
                raise
            continue
        if not data:
            break
        clock.last = now()
        await sink.send(data)
    if sink.writer.can_write_eof():
        sink.writer.write_eof()
