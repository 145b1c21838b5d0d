"""Requests to the gateway that cost the measuring process next to nothing, and count every byte of an answer's body."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httptools


@dataclass
class Answer:
    """``first`` and ``ended``: seconds from asking to the first body with ``mark`` in it, and to the end."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    first: float | None = None
    ended: float = 0.0

    def json(self) -> Any:
        return json.loads(bytes(self.body))


async def post(
    url: str,
    body: dict[str, Any],
    *,
    headers: Mapping[str, str] = {},
    mark: bytes = b"",
    enough: Callable[[bytearray], bool] | None = None,
) -> Answer:
    """One request on a connection of its own.

    Args:
        headers: further ones.
        mark: what to note the arrival of.
        enough: hang up when this says so of the body so far.
    """
    sent = json.dumps(body).encode()
    return await _asked(url, "POST", sent, headers, mark, enough)


async def get(url: str, headers: Mapping[str, str] = {}) -> Answer:
    return await _asked(url, "GET", b"", headers, b"", None)


async def _asked(
    url: str,
    method: str,
    sent: bytes,
    headers: Mapping[str, str],
    mark: bytes,
    enough: Callable[[bytearray], bool] | None,
) -> Answer:
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    started = time.perf_counter()
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=is_secure or None)
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: {parts.netloc}\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(sent)}\r\n{more}\r\n"
    )
    writer.write(head.encode() + sent)
    answer = Answer()
    reading = _Reading(answer)
    parser = httptools.HttpResponseParser(reading)
    try:
        while not reading.complete and (data := await reader.read(65_536)):
            parser.feed_data(data)
            if answer.first is None and mark and mark in answer.body:
                answer.first = time.perf_counter() - started
            if enough and enough(answer.body):
                break
    finally:
        writer.close()
    answer.status = parser.get_status_code()
    answer.ended = time.perf_counter() - started
    return answer


class _Reading:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.complete = False

    def on_body(self, data: bytes) -> None:
        self._answer.body += data

    def on_message_complete(self) -> None:
        self.complete = True
