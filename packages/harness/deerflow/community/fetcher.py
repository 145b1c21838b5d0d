"""Loading what stands at an address that somebody else named."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message

import httpx

from deerflow.security.addresses import Blocked
from deerflow.security.outbound import Outbound

HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; DeerFlow)",
    "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.8",
    "Accept-Language": "en,*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
MAX_REDIRECTS = 5
MAX_BYTES = 20 << 20


class WebError(Exception):
    """What is wanted of the web cannot be had. ``str()`` is a sentence for the model."""


@dataclass(frozen=True, slots=True)
class Download:
    """What stood at ``url``, which redirects led to. ``charset`` is what the server says of it, in lower case."""

    url: str
    media_type: str
    charset: str
    data: bytes


class Fetcher:
    """Loads addresses; each that a redirect leads to is checked like the first one.

    Args:
        outbound: which addresses may be called.
        timeout: seconds for all of it.
        max_bytes: of the content, unpacked.
    """

    def __init__(self, outbound: Outbound, *, timeout: float = 20, max_bytes: int = MAX_BYTES) -> None:
        self._outbound, self._timeout, self._max_bytes = outbound, timeout, max_bytes

    async def get(self, url: str) -> Download:
        """What stands there. Raises WebError."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._followed(url)
        except Blocked as blocked:
            raise WebError(f"{_short(url)}: {blocked}") from blocked
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise WebError(unreachable(_short(url), error, self._timeout)) from error

    async def _followed(self, url: str) -> Download:
        for _ in range(MAX_REDIRECTS + 1):
            at = self._outbound.check(url)
            async with self._outbound.stream("GET", at, headers=HEADERS, timeout=self._timeout) as answer:
                if answer.has_redirect_location:
                    url = str(at.join(answer.headers["location"]))
                    continue
                if answer.status_code != 200:
                    raise WebError(f"{_short(str(at))} answered {answer.status_code} {answer.reason_phrase[:80]}.")
                kind = Message()
                kind["content-type"] = answer.headers.get("content-type") or "application/octet-stream"
                charset = (kind.get_content_charset() or "").strip()
                return Download(str(at), kind.get_content_type(), charset, await body(answer, self._max_bytes))
        raise WebError(f"{_short(url)} is where more than {MAX_REDIRECTS} redirects lead.")


async def body(answer: httpx.Response, limit: int) -> bytes:
    """The content of an answer, unpacked piece by piece, so that a small one cannot become more than ``limit`` bytes. Raises WebError."""
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise WebError(f"{answer.url.host} answered in an encoding that was not asked for: {encoding[:40]}.")
    pieces = answer.aiter_raw()
    if encoding not in ("identity", ""):
        pieces = _inflated(pieces, limit)
    data = bytearray()
    async for piece in pieces:
        data += piece
        if len(data) > limit:
            raise WebError(f"{answer.url.host} answered more than {limit >> 20} MB.")
    return bytes(data)


async def _inflated(pieces: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    unpacker = None
    try:
        async for piece in pieces:
            if not piece:
                continue
            # Of "deflate" there are two kinds; the usual one begins with 8 in the low half of its first byte.
            unpacker = unpacker or zlib.decompressobj(47 if piece[:1] == b"\x1f" or piece[0] & 15 == 8 else -15)
            yield unpacker.decompress(piece, limit + 1)
        if unpacker is not None and not unpacker.eof:
            raise zlib.error("its end is missing")
    except zlib.error as error:
        raise WebError("The answer is damaged: it cannot be unpacked.") from error


def unreachable(what: str, error: Exception, timeout: float) -> str:
    """Why an address or service could not be reached, and what to do."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return f"{what} did not answer within {timeout:g} seconds. Try another source."
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        return f"{what} cannot be trusted: its certificate is not valid."
    return f"{what} cannot be reached ({type(error).__name__}). Is the address right, and has this machine a network?"


def _short(url: str) -> str:
    return url if len(url) <= 200 else url[:199] + "…"
