"""An HTTP and WebSocket server on 127.0.0.1 for doubles of platforms: it can cut a connection, dribble bytes and let a link go silent."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Self

import h11
from starlette.requests import Request
from starlette.responses import Response
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

_QUIET = logging.getLogger(f"{__name__}.protocol")
_QUIET.setLevel(logging.WARNING)  # below that it logs what clients send, their secrets too
Answer = Callable[[Request], Awaitable[Response]]
Attend = Callable[["Link"], Awaitable[None]]


class Cut(Exception):
    """Raised by an answer: the connection ends without one."""


class Loopback:
    """The server.

    Args:
        answer: gets each HTTP request, its body read.
        attend: gets each WebSocket, and keeps it until it returns.
    """

    def __init__(self, answer: Answer, attend: Attend) -> None:
        self._answer = answer
        self._attend = attend
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_dribbling = False
        """Every answer and message goes out in small pieces; a WebSocket message in several frames."""

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except Cut:
            writer.transport.abort()
        except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER)
        while (head := await self._next(http, reader, writer)) is not None:
            assert isinstance(head, h11.Request)
            if dict(head.headers).get(b"upgrade", b"").lower() == b"websocket":
                await self._upgrade(head, http.trailing_data[0], reader, writer)
                return
            body = bytearray()
            while isinstance(piece := await self._next(http, reader, writer), h11.Data):
                body += piece.data
            answer = await self._answer(request(head, bytes(body)))
            sent = h11.Response(status_code=answer.status_code, headers=answer.raw_headers)
            await self.write(writer, (http.send(sent) or b"") + (http.send(h11.Data(data=bytes(answer.body))) or b""))
            await self.write(writer, http.send(h11.EndOfMessage()) or b"")
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()

    async def _next(self, http: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
        """Return the next event of HTTP, or None when the client has left."""
        while (event := http.next_event()) is h11.NEED_DATA:
            if http.they_are_waiting_for_100_continue:
                writer.write(http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            http.receive_data(await reader.read(65536))
        return None if isinstance(event, h11.ConnectionClosed) else event

    async def _upgrade(
        self, head: h11.Request, early: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        asked = request(head, b"")
        key = asked.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        link = Link(self, asked, reader, writer, early)
        try:
            await self._attend(link)
        finally:
            await link.close()

    async def write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        for start in range(0, len(data), 7) if self.is_dribbling and len(data) < 4096 else ():
            writer.write(data[start : start + 7])
            await writer.drain()
            await asyncio.sleep(0)
        if not self.is_dribbling or len(data) >= 4096:
            writer.write(data)
            await writer.drain()


def request(head: h11.Request, body: bytes) -> Request:
    path, _, query = head.target.partition(b"?")
    scope: dict[str, Any] = {
        "type": "http",
        "method": head.method.decode(),
        "path": path.decode(),
        "query_string": query,
        "headers": [(name.lower(), value) for name, value in head.headers],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)


class Link:
    """A WebSocket that a client opened. ``request`` is the one that opened it."""

    def __init__(
        self,
        server: Loopback,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        early: bytes,
    ) -> None:
        self.request = request
        self.is_silent = False
        """The connection stands and the other side neither reads nor writes."""
        self._server = server
        self._reader = reader
        self._writer = writer
        self._early = early
        self._writing = asyncio.Lock()
        self._protocol = ServerProtocol(state=State.OPEN, max_size=None, logger=_QUIET)

    @property
    def is_open(self) -> bool:
        return self._protocol.state is State.OPEN and not self._writer.transport.is_closing()

    async def send(self, message: str | bytes) -> None:
        data = message.encode() if isinstance(message, str) else message
        first = self._protocol.send_text if isinstance(message, str) else self._protocol.send_binary
        if self._server.is_dribbling and len(data) > 2:
            third = len(data) // 3
            first(data[:third], fin=False)
            self._protocol.send_ping(b"between")
            self._protocol.send_continuation(data[third : 2 * third], fin=False)
            self._protocol.send_continuation(data[2 * third :], fin=True)
        else:
            first(data)
        await self._flush()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say good-bye and end the connection."""
        if self.is_open:
            self._protocol.send_close(code, reason)
            with suppress(ConnectionError):
                await self._flush()

    def abort(self) -> None:
        """End the connection without a word."""
        self._writer.transport.abort()

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        """Yield what the client sends until it leaves."""
        whole, is_text = bytearray(), True
        data = self._early
        while True:
            if data and not self.is_silent:
                self._protocol.receive_data(data)
                for frame in self._protocol.events_received():
                    opcode = getattr(frame, "opcode", None)
                    if opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                        is_text = is_text if opcode is Opcode.CONT else opcode is Opcode.TEXT
                        whole += frame.data  # type: ignore[union-attr]
                        if frame.fin:  # type: ignore[union-attr]
                            yield whole.decode() if is_text else bytes(whole)
                            whole.clear()
                await self._flush()
                if self._protocol.state is not State.OPEN:
                    return
            data = await self._reader.read(65536)
            if not data:
                return

    async def _flush(self) -> None:
        async with self._writing:  # pieces of two messages would mix
            for data in self._protocol.data_to_send():
                if data and not self.is_silent:
                    await self._server.write(self._writer, data)
