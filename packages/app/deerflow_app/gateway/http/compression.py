"""Responses in fewer bytes: zstd, br or gzip, whatever the client takes; streams are flushed with every chunk."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import brotli
import zstandard
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MINIMUM_BYTES = 1024
_INLINE_BYTES = 131_072
_EVENT_STREAM = "text/event-stream"
_COMPRESSIBLE = (
    "text/",
    "application/json",
    "application/javascript",
    "application/xml",
    "application/manifest+json",
    "image/svg+xml",
)


@dataclass(frozen=True, slots=True)
class Encoder:
    """After ``flush`` everything given so far can be decoded from what has been returned."""

    compress: Callable[[bytes], bytes]
    flush: Callable[[], bytes]
    finish: Callable[[], bytes]

    def encode(self, data: bytes, more: bool) -> bytes:
        return self.compress(data) + (self.flush() if more else self.finish())


def _zstd(far: bool) -> Encoder:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=23 if far else 21)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return Encoder(stream.compress, partial(stream.flush, zstandard.COMPRESSOBJ_FLUSH_BLOCK), stream.flush)


def _brotli(far: bool) -> Encoder:
    stream = brotli.Compressor(quality=4, lgwin=22 if far else 19)
    return Encoder(stream.process, stream.flush, stream.finish)


def _gzip(far: bool) -> Encoder:
    stream = zlib.compressobj(6, wbits=31)
    return Encoder(stream.compress, partial(stream.flush, zlib.Z_SYNC_FLUSH), stream.flush)


ENCODERS: Mapping[str, Callable[[bool], Encoder]] = {"zstd": _zstd, "br": _brotli, "gzip": _gzip}
"""The best first. Their argument: whether to find again what was said up to 8 MB ago, the most that RFC 9659 lets a browser expect."""


def negotiate(accept_encoding: str, codings: Collection[str] = ENCODERS) -> str | None:
    """Which of ``codings`` to use for a client, by its ``Accept-Encoding`` (RFC 9110 §12.5.3), or None for none."""
    weights: dict[str, float] = {}
    for item in accept_encoding.lower().split(","):
        coding, _, parameter = (part.strip() for part in item.partition(";"))
        name, _, value = (part.strip() for part in parameter.partition("="))
        try:
            weights[{"x-gzip": "gzip"}.get(coding, coding)] = float(value) if name == "q" else 1.0
        except ValueError:
            weights[coding] = 0.0
    offered = {coding: weights.get(coding, weights.get("*", 0.0)) for coding in codings}
    best = max(offered, key=lambda coding: offered[coding], default="")
    return best if offered.get(best, 0) > 0 and offered[best] >= weights.get("identity", 0.0) else None


@dataclass
class CompressionMiddleware:
    """Leaves alone what is short, compressed already, partial, or not made of text."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] != "HEAD":
            headers = Headers(scope=scope)
            coding = None if "range" in headers else negotiate(headers.get("accept-encoding", ""))
            send = _Compressed(send, coding).send
        await self.app(scope, receive, send)


class _Compressed:
    """One response. What it will be is decided with the first piece of its body."""

    _start: Message | None = None
    _encoder: Encoder | None = None

    def __init__(self, send: Send, coding: str | None) -> None:
        self._send = send
        self._coding = coding

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            if Headers(raw=message["headers"]).get("content-type", "").startswith(_EVENT_STREAM):
                # Its first event may be long in coming, and what the headers say is of use before.
                await self._begin(MINIMUM_BYTES, far=True)
        elif message["type"] == "http.response.body":
            body, more = message.get("body", b""), message.get("more_body", False)
            await self._begin(MINIMUM_BYTES if more else len(body))
            if self._encoder is not None:
                encode = self._encoder.encode
                large = len(body) > _INLINE_BYTES
                message = {
                    **message,
                    "body": await asyncio.to_thread(encode, body, more) if large else encode(body, more),
                }
            await self._send(message)
        else:
            await self._begin(0)
            await self._send(message)

    async def _begin(self, size: int, *, far: bool = False) -> None:
        """Send the headers, if that has not been done. ``size``: bytes of the body that are known of."""
        if self._start is None:
            return
        start, self._start = self._start, None
        headers = MutableHeaders(raw=list(start["headers"]))
        if _may_compress(start["status"], headers, size):
            headers.add_vary_header("Accept-Encoding")
            if self._coding is not None:
                self._encoder = ENCODERS[self._coding](far)
                headers["content-encoding"] = self._coding
                del headers["content-length"]
                # The same bytes are no longer what the tag stands for; a range of the file must not be put together with them.
                if (tag := headers.get("etag", "")).startswith('"'):
                    headers["etag"] = f"W/{tag}"
        await self._send({**start, "headers": headers.raw})


def _may_compress(status: int, headers: Headers, size: int) -> bool:
    if status < 200 or status in (204, 206, 304) or size < MINIMUM_BYTES:
        return False
    if (
        "content-encoding" in headers
        or "content-range" in headers
        or "no-transform" in headers.get("cache-control", "")
    ):
        return False
    length = headers.get("content-length", "")
    return not (length.isdecimal() and int(length) < MINIMUM_BYTES) and headers.get("content-type", "").startswith(
        _COMPRESSIBLE
    )
