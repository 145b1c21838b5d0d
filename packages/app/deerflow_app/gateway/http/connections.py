"""uvicorn's quick HTTP parser, with bounds on what strangers can take: memory, time and connections."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
HEAD_LINES = 200
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
"""Without a byte of a body that has begun."""
_PIPELINED = 16
_DESCRIPTORS_KEPT = 64
_MOST = 16_384
_LOG_SECONDS = 60.0

logger = logging.getLogger(__name__)


@dataclass
class ConnectionLimits:
    """How many connections there may be, and the log line about those that were closed.

    Half of them are kept for requests that are being answered, such as streams: a connection that waits for a request, or for the
    rest of one, gives way to a newcomer, the oldest first.
    """

    total: int
    per_address: int
    unlimited: Sequence[IPv4Network | IPv6Network] = ()
    """Networks of proxies, behind each address of which there are many clients."""
    _closed: Counter[str] = field(default_factory=Counter)
    _next_line: float = 0.0

    @classmethod
    def of_process(cls, unlimited: Sequence[IPv4Network | IPv6Network] = ()) -> ConnectionLimits:
        """Below the number of file descriptors that this process may have: databases, sandboxes and models need some, too."""
        allowed, could_be = resource.getrlimit(resource.RLIMIT_NOFILE)
        descriptors = min(could_be, _MOST)
        if allowed < descriptors:  # 1024 by default, for the sake of programs that use select()
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, could_be))
        total = max(descriptors - max(_DESCRIPTORS_KEPT, descriptors // 4), 8)
        return cls(total, total // 2, unlimited)

    def admit(self, newcomer: BoundedHttp, connections: Sequence[Any]) -> bool:
        """Whether ``newcomer``, which is among ``connections``, may stay. Closes one that waits where there are too many."""
        address = newcomer.address
        siblings = [one for one in connections if one.client and one.client[0] == address]
        if len(siblings) > self.per_address and not self._is_unlimited(address):
            return self._make_room(siblings, newcomer, f"too many from {address}")
        waiting = [one for one in connections if isinstance(one, BoundedHttp) and one.is_waiting]
        if len(connections) > self.total or len(waiting) > self.total // 2:
            return self._make_room(waiting, newcomer, "too many in all")
        return True

    def note(self, reason: str) -> None:
        """Count a connection that was closed; a line in the log at most once a minute."""
        self._closed[reason] += 1
        now = asyncio.get_running_loop().time()
        if now >= self._next_line:
            self._next_line = now + _LOG_SECONDS
            reasons = ", ".join(f"{reason}: {count}" for reason, count in self._closed.most_common(5))
            logger.warning("Closed connections (%s). At most %d may be open.", reasons, self.total)
            self._closed.clear()

    def _make_room(self, connections: Sequence[Any], newcomer: BoundedHttp, reason: str) -> bool:
        self.note(reason)
        others = [one for one in connections if isinstance(one, BoundedHttp) and one.is_waiting and one is not newcomer]
        if others:
            min(others, key=lambda one: one.waits_since).transport.abort()
        return bool(others)

    def _is_unlimited(self, address: str) -> bool:
        return any(ip_address(address) in network for network in self.unlimited)


class BoundedHttp(HttpToolsProtocol):
    """Closes connections that send more than HEAD_BYTES or HEAD_LINES of headers and trailers with a request (the parser would
    keep all of it; trailers are counted and dropped), that are slow to send one, or that are too many.
    """

    waits_since = 0.0
    _refusal: str | None = None
    _due: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _in_message = False
    _in_head = False
    _hosts = 0
    _lines = 0
    _bytes = 0
    _unparsed = 0

    def __init__(self, *args: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_waiting(self) -> bool:
        """For a request, or for the rest of one."""
        return self._in_message or self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)
        if not self._limits.admit(self, [*self.connections]):
            transport.write(
                b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-type: text/plain\r\n"
                b"connection: close\r\n\r\nThe server has too many connections. Try again in a moment."
            )
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._stop_waiting()
        super().handle_websocket_upgrade()

    def data_received(self, data: bytes) -> None:
        if self._due is None:
            self._expect(HEAD_SECONDS)
        # What the parser has not called back about is what it keeps: a header, an address, an extension of a chunk.
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The address or the headers are too large.")

    def send_400_response(self, msg: str) -> None:
        if self.cycle and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
        else:
            super().send_400_response(self._refusal or msg)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _PIPELINED:
            raise self._refused("Too many requests before the first answer.")
        self._in_message = self._in_head = True
        self._hosts = self._lines = self._bytes = self._unparsed = 0
        self._expect(HEAD_SECONDS)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        self._count(len(name) + len(value) + len(": \r\n"))
        if self._in_head:
            self._hosts += name.lower() == b"host"
            if self._hosts > 1:  # a proxy before us may have believed the other one
                raise self._refused("More than one Host header.")
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._unparsed = False, 0
        self._expect(BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        if not self.cycle.response_complete:
            self._expect(BODY_SECONDS)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_message, self._unparsed, self._due = False, 0, None
        super().on_message_complete()

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._bytes += size
        if self._bytes > HEAD_BYTES or self._lines > HEAD_LINES:
            raise self._refused("The address or the headers are too large.")

    def _refused(self, reason: str) -> Exception:
        """Raised in a callback, it makes the parser give up; the answer is a 400 with ``reason``."""
        self._refusal = reason
        return ValueError(reason)

    def _expect(self, seconds: float) -> None:
        """Something must come within ``seconds``. One timer serves many deadlines: most of them are met."""
        self.waits_since = self.loop.time()
        self._due = self.waits_since + seconds
        if self._timer is None:
            self._timer = self.loop.call_at(self._due, self._overdue)

    def _overdue(self) -> None:
        self._timer = None
        if self._due is None or self.transport.is_closing():
            return
        # The client may wait for a word before it sends the body.
        asks_to_continue = self._in_message and not self._in_head and self.cycle.waiting_for_100_continue
        if not self.is_waiting or self.flow.read_paused or asks_to_continue or self.loop.time() < self._due:
            self._timer = self.loop.call_at(max(self._due, self.loop.time() + 1), self._overdue)
            return
        self._limits.note("slow to send a request")
        if self._in_message and not (self.cycle and self.cycle.response_started):
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()

    def _stop_waiting(self) -> None:
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
