"""The HTTP side of the scripted endpoint: one keep-alive connection on httptools, as cheap as can be."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any, Protocol, cast
from urllib.parse import parse_qs

import httptools

from bench import wire
from bench.replies import HttpError
from bench.request_log import Record


@dataclass(frozen=True, slots=True)
class Exchange:
    """A logged request and its response, to be sent ``first`` seconds later with ``between`` seconds per event."""

    record: Record
    response: wire.Response
    first: float
    between: float


class Endpoint(Protocol):
    """Whoever knows the answers."""

    def exchange(self, raw: bytes, headers: dict[str, str]) -> Exchange: ...

    def control(
        self, method: str, path: str, query: dict[str, list[str]], body: bytes, headers: dict[str, str]
    ) -> wire.Response: ...


class Connection(asyncio.Protocol):
    """Parses requests, writes responses at once or event by event."""

    def __init__(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop, open_: set[asyncio.Transport]) -> None:
        self.endpoint = endpoint
        self.loop = loop
        self.open = open_
        self.transport: asyncio.Transport | None = None
        self.parser: Any = httptools.HttpRequestParser(self)
        self.timer: asyncio.TimerHandle | None = None
        self.pending: Record | None = None
        self.url = b""
        self.body: list[bytes] = []
        self.headers: dict[str, str] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one without inheriting from it
        self.open.add(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer:
            self.timer.cancel()
        if self.pending:
            self.pending.disconnected = True
        if self.transport:
            self.open.discard(self.transport)
        self.transport = None

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if self.transport:
                self.transport.close()

    def on_message_begin(self) -> None:
        self.url, self.body, self.headers = b"", [], {}

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if "expect" in self.headers:
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        path, _, query = self.url.decode().partition("?")
        method, body = self.parser.get_method().decode(), b"".join(self.body)
        try:
            if method == "POST" and path.endswith("/v1/chat/completions"):
                self._start(self.endpoint.exchange(body, self.headers))
            else:
                self._write_whole(self.endpoint.control(method, path, parse_qs(query), body, self.headers))
        except Exception as error:  # A defect of a script must reach the test that wrote it, not hang the client.
            traceback.print_exc(file=sys.stderr)
            self._write_whole(wire.error_response(HttpError(500, f"The scripted endpoint failed: {error!r}")))

    def _start(self, exchange: Exchange) -> None:
        if exchange.first or exchange.between:
            self.pending = exchange.record
            self.timer = self.loop.call_later(exchange.first, self._send, exchange, 0)
        else:
            self._write_whole(exchange.response)
            self._finish(exchange)

    def _send(self, exchange: Exchange, index: int) -> None:
        """Write event ``index`` and what may follow at once; come back for the next one in due time."""
        self.timer = None
        response, between = exchange.response, exchange.between
        frames = response.frames[index : index + 1] if between else response.frames[index:]
        self._write((b"" if index else response.head) + b"".join(frames))
        index += len(frames)
        if index < len(response.frames):
            self.timer = self.loop.call_later(between, self._send, exchange, index)
        else:
            self._finish(exchange)

    def _finish(self, exchange: Exchange) -> None:
        self.pending = None
        exchange.record.ended = time.monotonic()
        if exchange.response.cut and self.transport:
            self.transport.close()

    def _write_whole(self, response: wire.Response) -> None:
        self._write(response.head + b"".join(response.frames))

    def _write(self, data: bytes) -> None:
        if self.transport:
            self.transport.write(data)
