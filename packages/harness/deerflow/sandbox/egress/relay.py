"""Carrying bytes through the egress proxy: one HTTP request re-framed from scratch, or an opaque tunnel."""

from __future__ import annotations

import asyncio
import re
from asyncio import StreamReader, StreamWriter, Task
from dataclasses import dataclass

import h11

from deerflow.security.addresses import Blocked, normal_host

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
        async with asyncio.timeout(self.idle):
            return await self.reader.read(CHUNK)

    async def send(self, data: bytes) -> None:
        if data:
            self.writer.write(data)
            async with asyncio.timeout(self.idle):
                await self.writer.drain()


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


class Opening:
    """The first bytes of a tunnel: a name in them (TLS's SNI, HTTP's Host) must be the one that was asked for.

    Otherwise a host that the policy forbids is reached behind an allowed one on the same servers.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._held = b""
        self._known = False

    def admit(self, data: bytes) -> bytes:
        """What may be sent now. Raises Blocked."""
        if self._known:
            return data
        self._held += data
        if self._held[:1] == b"\x16":
            hello = _client_hello(self._held)
            if hello is None and len(self._held) <= CHUNK:
                return b""
            self._compare(server_name(hello or b""), "TLS asks for")
        elif self._is_http():
            if b"\r\n\r\n" not in self._held and len(self._held) <= MAX_HEAD:
                return b""
            self._check_head(self._held.lstrip().split(b"\r\n\r\n")[0].split(b"\r\n")[1:])
        elif self._may_become_http():
            return b""
        self._known = True
        return self._held

    def _is_http(self) -> bool:
        return re.match(rb"\s*[A-Za-z]{1,20} [^\r\n]{1,8000} HTTP/[12]", self._held) is not None

    def _may_become_http(self) -> bool:
        return (
            len(self._held) < MAX_HEAD
            and re.fullmatch(rb"\s*([A-Za-z]{1,20}( [\x20-\x7e]*)?)?", self._held) is not None
        )

    def _check_head(self, lines: list[bytes]) -> None:
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not any(name == b"upgrade" for name, _ in headers):
            raise Blocked("Plain HTTP does not go through a tunnel: ask the proxy with an http:// address.")
        self._compare(re.sub(r":\d+$", "", hosts[0].decode("latin-1")), "HTTP asks for")

    def _compare(self, name: str | None, who: str) -> None:
        if name is None:
            return
        try:
            same = normal_host(name) == self._host
        except ValueError:
            same = False
        if not same:
            raise Blocked(f"{who} {name[:100]!r} in a tunnel to {self._host}.")


def _client_hello(data: bytes) -> bytes | None:
    """The first handshake message out of its records (RFC 8446 §5.1); None while it is not whole."""
    message = b""
    while len(data) >= 5 and data[0] == 0x16:
        length = int.from_bytes(data[3:5], "big")
        message += data[5 : 5 + length]
        if len(data) < 5 + length:
            return None
        data = data[5 + length :]
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big"):
            return message
    return None if len(data) < 5 or data[0] == 0x16 else message


def server_name(hello: bytes) -> str | None:
    """The host that a ClientHello asks for (RFC 6066 §3); None if it names none. "" if it cannot be read."""
    try:
        at = 4 + 2 + 32
        at += 1 + hello[at]
        at += 2 + int.from_bytes(hello[at : at + 2], "big")
        at += 1 + hello[at]
        end = at + 2 + int.from_bytes(hello[at : at + 2], "big")
        at += 2
        while at + 4 <= end:
            kind, length = int.from_bytes(hello[at : at + 2], "big"), int.from_bytes(hello[at + 2 : at + 4], "big")
            if kind == 0:
                size = int.from_bytes(hello[at + 7 : at + 9], "big")
                return hello[at + 9 : at + 9 + size].decode("ascii")
            at += 4 + length
    except (IndexError, UnicodeDecodeError):
        return ""
    return None if hello[:1] == b"\x01" else ""


async def tunnel(client: Peer, server: Peer, early: bytes, opening: Opening | None = None) -> None:
    """Carry bytes both ways until both sides have ended; one side may end first. ``early`` came with the request.

    Raises:
        Blocked: ``opening`` does not admit what the client begins with.
    """
    clock = _Clock(asyncio.get_running_loop().time())
    await server.send(opening.admit(early) if opening and early else early)
    directions = [
        asyncio.create_task(_pump(client, server, clock, opening)),
        asyncio.create_task(_pump(server, client, clock)),
    ]
    try:
        await asyncio.gather(*directions)
    finally:
        await _stop(*directions)


@dataclass(slots=True)
class _Clock:
    last: float


async def _pump(source: Peer, sink: Peer, clock: _Clock, opening: Opening | None = None) -> None:
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
        await sink.send(opening.admit(data) if opening else data)
    if sink.writer.can_write_eof():
        sink.writer.write_eof()
