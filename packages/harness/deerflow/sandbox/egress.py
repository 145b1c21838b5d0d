"""The only way out of a sandbox: an HTTP proxy on a unix socket that is bound into it.

It understands ``CONNECT`` and absolute-form requests (RFC 9112 §3.2). Names are resolved here, every address is
checked here, and the connection goes to the very address that was checked, so a name that resolves differently the
next time gains nothing. One proxy per sandbox keeps policy, log and limits apart.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import stat
from asyncio import StreamReader, StreamWriter, Task
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import h11

from deerflow.sandbox.interface import BLOCKED, Gate, Network, SandboxRuntimeError
from deerflow.security.addresses import Address, Blocked, Decision, EgressPolicy, literal_address, normal_host

__all__ = ["Decision", "EgressProxy"]

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Host and port to addresses, as text. Raises OSError."""
Connect = Callable[[Address, int], Awaitable[tuple[StreamReader, StreamWriter]]]

logger = logging.getLogger(__name__)

CHUNK = 1 << 16
MAX_HEAD = 32 << 10
"""Bytes of a request's or response's head."""

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade", b"expect", b"host"}
)
"""RFC 9110 §7.6.1; ``Host`` is written anew from the target that was checked, ``Expect`` is answered here."""
BACKLOG = 128
"""Connections accepted in one go, before the first of them is looked at: a crowd costs that many descriptors at most."""
_LINGER_SECONDS = 2
_LINGER_BYTES = 4 << 20
_REFUSED_AT_ONCE = 32
"""Connections beyond the limit that are still told why; further ones are cut, or they would use up our descriptors."""
_ABSOLUTE = re.compile(r"http://(?P<authority>[^/?#]+)(?P<path>[^#]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:@\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """Bounds that keep one sandbox from wearing out the host. Times in seconds."""

    connections: int = 128
    head_timeout: float = 15
    """For the whole head of a request."""
    connect_timeout: float = 10
    """Per address."""
    idle_timeout: float = 300


class _Refused(Exception):
    """The request gets an error response instead of a connection."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


_REASONS = {
    400: "Bad Request",
    403: BLOCKED,
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
}


class EgressProxy:
    """Serves one sandbox. Start and close it on the same event loop."""

    def __init__(
        self,
        network: Network,
        *,
        log: Callable[[Decision], None] | None = None,
        gate: Gate | None = None,
        resolve: Resolve | None = None,
        connect: Connect | None = None,
        limits: ProxyLimits | None = None,
    ) -> None:
        """
        Args:
            network: what may be reached; mode ``none`` refuses everything.
            log: called with every decision.
            gate: asked about each host that ``network`` allows, before its name is resolved.
            resolve: name resolution, the system's by default.
            connect: how an address is dialled.

        Raises:
            ValueError: ``network`` holds something that is neither a host name nor a CIDR.
        """
        self._policy = EgressPolicy(network)
        self._log = log or (lambda decision: None)
        self._gate = gate
        self._resolve = resolve or _system_resolve
        self._connect = connect or _dial
        self._limits = limits or ProxyLimits()
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, socket_path: Path) -> None:
        """Listen at ``socket_path``, which any user may connect to: guard the directory that holds it.

        Raises:
            SandboxRuntimeError: the socket cannot be made there.
        """
        listener = await asyncio.to_thread(_bound, socket_path)
        self._path = socket_path
        self._server = await asyncio.start_unix_server(self._accept, sock=listener, limit=CHUNK, backlog=BACKLOG)

    async def close(self) -> None:
        """Stop listening and cut every connection. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._path is not None:
            await asyncio.to_thread(self._path.unlink, missing_ok=True)
            self._path = None

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        if len(self._tasks) >= self._limits.connections + _REFUSED_AT_ONCE:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        client = Peer(reader, writer, self._limits.idle_timeout)
        try:
            if len(self._tasks) > self._limits.connections:
                raise _Refused(503, f"This sandbox already has {self._limits.connections} connections open.")
            await self._handle(client)
        except _Refused as refusal:
            with suppress(OSError):
                await client.send(_error_response(refusal))
                await _linger(client)
        except (OSError, h11.ProtocolError):
            # Mid-transfer there is nobody left to tell: the broken connection is the message.
            pass
        finally:
            await _hang_up(writer)

    async def _handle(self, client: Peer) -> None:
        http = HttpPeer(client, h11.SERVER)
        request = await self._read_request(http)
        method = request.method.decode("ascii")
        host, port, target, authority = _parsed_target(method, request.target)
        reader, writer = await self._open(method, host, port)
        server = Peer(reader, writer, self._limits.idle_timeout)
        try:
            if method == "CONNECT":
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                http.http.next_event()
                opening = None if literal_address(host) else Opening(host)
                try:
                    await tunnel(client, server, http.http.trailing_data[0], opening)
                except Blocked as blocked:
                    self._log(Decision(False, method, host, port, reason=str(blocked)))
            else:
                await _relay_request(http, request, target, authority, server)
        except (OSError, h11.ProtocolError) as error:
            if method == "CONNECT" or http.http.our_state is not h11.SEND_RESPONSE:
                raise
            raise _Refused(502, f"{authority} did not answer properly: {error or type(error).__name__}") from None
        finally:
            await _hang_up(writer)

    async def _read_request(self, http: HttpPeer) -> h11.Request:
        try:
            async with asyncio.timeout(self._limits.head_timeout):
                event = await http.next_event()
        except TimeoutError:
            raise _Refused(408, "The request's head did not arrive in time.") from None
        except h11.RemoteProtocolError as error:
            raise _Refused(error.error_status_hint, f"Malformed request: {error}") from None
        if not isinstance(event, h11.Request):
            raise ConnectionError("closed without a request")
        if event.http_version not in (b"1.0", b"1.1"):
            raise _Refused(400, "This proxy speaks HTTP/1.1.")
        names = [name for name, _ in event.headers]
        framing = names.count(b"content-length") + names.count(b"transfer-encoding")
        if framing > 1 or (framing and event.method == b"CONNECT"):
            raise _Refused(400, "Ambiguous message length.")
        return event

    async def _open(self, method: str, host: str, port: int) -> tuple[StreamReader, StreamWriter]:
        """A connection to a checked address of ``host``."""
        try:
            self._policy.check_name(host, port)
            if (literal := literal_address(host)) is not None:
                self._policy.permitted([str(literal)], host, port)
            await self._pass_gate(method, host, port)
            addresses = self._policy.permitted(await self._addresses(host, port), host, port)
            return await self._dial_first(method, host, port, addresses)
        except Blocked as blocked:
            self._log(Decision(False, method, host, port, reason=str(blocked)))
            raise _Refused(403, f"Blocked by the sandbox's network policy: {blocked}") from None
        except OSError as error:
            problem = str(error) or type(error).__name__
            self._log(Decision(True, method, host, port, reason=f"unreachable: {problem}"))
            raise _Refused(502, f"{host}:{port} cannot be reached: {problem}") from None

    async def _pass_gate(self, method: str, host: str, port: int) -> None:
        """Raise _Refused if the gate refuses the host, or fails."""
        if self._gate is None:
            return
        try:
            why = await self._gate(host)
        except Exception:
            logger.exception("The gate of a sandbox could not judge the host %s", host)
            why = f"The server could not decide whether {host} may be reached. Try again."
        if why is not None:
            self._log(Decision(False, method, host, port, reason=why))
            raise _Refused(403, why)

    async def _addresses(self, host: str, port: int) -> list[str]:
        with suppress(ValueError):
            return [str(ip_address(host))]
        async with asyncio.timeout(self._limits.connect_timeout):
            return await self._resolve(host, port)

    async def _dial_first(
        self, method: str, host: str, port: int, addresses: list[Address]
    ) -> tuple[StreamReader, StreamWriter]:
        failure: Exception = OSError("no address")
        for address in addresses[:4]:
            try:
                async with asyncio.timeout(self._limits.connect_timeout):
                    reader, writer = await self._connect(address, port)
            except OSError as error:
                failure = error
                continue
            if not self._policy.exempt(address) and _is_ourselves(writer):
                await _hang_up(writer)
                raise Blocked(f"{host} is this machine itself.")
            self._log(Decision(True, method, host, port, address=str(address)))
            return reader, writer
        raise failure


def _parsed_target(method: str, target: bytes) -> tuple[str, int, bytes, str]:
    """Host, port, what to ask the server for, and its ``Host`` header."""
    text = target.decode("ascii", "replace")
    if method == "CONNECT":
        authority, path, default = text, "", None
    elif match := _ABSOLUTE.fullmatch(text):
        authority, path, default = match["authority"], match["path"], 80
    else:
        raise _Refused(400, "This is a proxy: ask with CONNECT, or with an http:// address in the request line.")
    match = _AUTHORITY.fullmatch(authority)
    port = int(match["port"] or default or 0) if match else 0
    if match is None or not 0 < port < 65536:
        raise _Refused(400, "The target must be HOST:PORT, without user and password.")
    try:
        host = normal_host(match["host"])
    except ValueError as error:
        raise _Refused(400, f"Bad target: {error}") from None
    shown = f"[{host}]" if ":" in host else host
    path = path if path.startswith("/") else "/" + path
    return host, port, path.encode("ascii", "replace"), shown if port == default else f"{shown}:{port}"


def _error_response(refusal: _Refused) -> bytes:
    reason = _REASONS.get(refusal.status, "Unavailable")
    body = f"{refusal}\n".encode("utf-8", "replace")
    head = f"HTTP/1.1 {refusal.status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode("ascii") + body


def _is_ourselves(writer: StreamWriter) -> bool:
    """A public address of this machine: local services behind its firewall would take us for a neighbour."""
    ours, theirs = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
    return bool(ours and theirs and ours[0] == theirs[0])


async def _linger(client: Peer) -> None:
    """Read on for a moment: closing with unread data would take the answer back before it is seen (RFC 9112 §9.6)."""
    client.writer.write_eof()
    async with asyncio.timeout(_LINGER_SECONDS):
        left = _LINGER_BYTES
        while left > 0 and (data := await client.receive()):
            left -= len(data)


async def _hang_up(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        async with asyncio.timeout(5):
            await writer.wait_closed()


async def _system_resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _dial(address: Address, port: int) -> tuple[StreamReader, StreamWriter]:
    return await asyncio.open_connection(str(address), port, limit=CHUNK)


def _bound(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A socket's address holds 108 bytes; through the descriptor any directory will do.
            short = Path(f"/proc/self/fd/{directory}")
            listener.bind(str(short / path.name if short.exists() else path))
            path.chmod(0o666)
        finally:
            os.close(directory)
    except OSError as error:
        listener.close()
        raise SandboxRuntimeError(f"The sandbox's network proxy cannot listen at {path}: {error.strerror}.") from error
    listener.setblocking(False)
    return listener


# carrying bytes: one HTTP request framed anew from scratch, or an opaque tunnel ------------------------------------------


@dataclass(slots=True)
class Peer:
    """One side of the relay."""

    reader: StreamReader
    writer: StreamWriter
    idle: float
    """Seconds without a byte after which the connection is given up."""
    last: float = 0
    """When the last byte of a tunnel came, by the loop's clock."""

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

    def __init__(self, peer: Peer, role: type[h11.CLIENT] | type[h11.SERVER]) -> None:
        self._peer = peer
        self.http = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)

    async def next_event(self) -> h11.Event | type[h11.PAUSED]:
        """Raises h11.RemoteProtocolError for anything malformed."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
            self.http.receive_data(await self._peer.receive())
        return event  # type: ignore[return-value]

    async def send(self, event: h11.Event) -> None:
        await self._peer.send(self.http.send(event) or b"")


async def _relay_request(client: HttpPeer, request: h11.Request, target: bytes, authority: str, upstream: Peer) -> None:
    """Send the one request of this connection on and its response back.

    Both messages are parsed and written anew, so nothing hidden behind an ambiguous length reaches the server, and
    nothing after the first request is ever read.
    """
    server = HttpPeer(upstream, h11.CLIENT)
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


@dataclass(slots=True)
class Opening:
    """The first bytes of a tunnel: a name in them (TLS's SNI, HTTP's Host) must be the one that was asked for.

    Otherwise a host that the policy forbids is reached behind an allowed one on the same servers.
    """

    host: str
    held: bytes = b""
    known: bool = False

    def admit(self, data: bytes) -> bytes:
        """What may be sent now. Raises Blocked."""
        if self.known:
            return data
        self.held += data
        if self.held[:1] == b"\x16":
            hello = _client_hello(self.held)
            if hello is None and len(self.held) <= CHUNK:
                return b""
            self._compare(server_name(hello or b""), "TLS asks for")
        elif self._is_http():
            if b"\r\n\r\n" not in self.held and len(self.held) <= MAX_HEAD:
                return b""
            self._check_head(self.held.lstrip().split(b"\r\n\r\n")[0].split(b"\r\n")[1:])
        elif self._may_become_http():
            return b""
        self.known = True
        return self.held

    def _is_http(self) -> bool:
        return re.match(rb"\s*[A-Za-z]{1,20} [^\r\n]{1,8000} HTTP/[12]", self.held) is not None

    def _may_become_http(self) -> bool:
        return (
            len(self.held) < MAX_HEAD and re.fullmatch(rb"\s*([A-Za-z]{1,20}( [\x20-\x7e]*)?)?", self.held) is not None
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
            same = normal_host(name) == self.host
        except ValueError:
            same = False
        if not same:
            raise Blocked(f"{who} {name[:100]!r} in a tunnel to {self.host}.")


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
    client.last = server.last = asyncio.get_running_loop().time()
    await server.send(opening.admit(early) if opening and early else early)
    directions = [asyncio.create_task(_pump(client, server, opening)), asyncio.create_task(_pump(server, client))]
    try:
        await asyncio.gather(*directions)
    finally:
        await _stop(*directions)


async def _pump(source: Peer, sink: Peer, opening: Opening | None = None) -> None:
    now = asyncio.get_running_loop().time
    while True:
        try:
            data = await source.receive()
        except TimeoutError:
            # The other direction may still be busy: a long download sends nothing up.
            if now() - max(source.last, sink.last) >= source.idle:
                raise
            continue
        if not data:
            break
        source.last = now()
        await sink.send(opening.admit(data) if opening else data)
    if sink.writer.can_write_eof():
        sink.writer.write_eof()
