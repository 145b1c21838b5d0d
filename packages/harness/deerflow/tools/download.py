"""Loading of addresses of the web, by rules of the network that they may be in."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message

import httpx
from langchain_core.tools import ToolException

from deerflow.config.schema import AppConfig
from deerflow.sandbox.interface import PAGES
from deerflow.security.addresses import Blocked, Network
from deerflow.security.outbound import Outbound
from deerflow.security.text import inline

HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; DeerFlow)",
    "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.8",
    "Accept-Language": "en,*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
MAX_REDIRECTS = 5
MAX_BYTES = 20 << 20


class WebError(ToolException):
    """Raised if an address cannot be loaded. ``str()`` is a sentence for the model."""


@dataclass(frozen=True, slots=True)
class Download:
    """The content of ``url``, to which redirects led. ``charset``: the one that the server names, in lower case."""

    url: str
    media_type: str
    charset: str
    data: bytes


def network_of(config: AppConfig) -> Network:
    """Return the part of the web that is open to agents and people, with or without a network for commands."""
    network = config.sandbox.network
    mode = "allowlist" if network.mode == "allowlist" else "internet"
    return Network(mode, network.allow, network.deny, network.ports, network.allow_nets)


async def fetch(outbound: Outbound, url: str, *, timeout: float = 20, max_bytes: int = MAX_BYTES) -> Download:
    """Load an address. Each one that a redirect leads to is checked like the first. Raises WebError.

    Args:
        outbound: which addresses may be called.
        timeout: seconds for all of it.
        max_bytes: of the content, unpacked.
    """
    start = inline(url)
    try:
        async with reached(start, timeout):
            for _ in range(MAX_REDIRECTS + 1):
                at = outbound.check(url)
                async with outbound.stream("GET", at, headers=HEADERS, timeout=timeout) as answer:
                    if answer.has_redirect_location:
                        url = str(at.join(answer.headers["location"]))
                        continue
                    if answer.status_code != 200:
                        raise WebError(f"{inline(str(at))} answered {answer.status_code} {answer.reason_phrase[:80]}.")
                    kind = Message()
                    kind["content-type"] = answer.headers.get("content-type") or "application/octet-stream"
                    charset = (kind.get_content_charset() or "").strip()
                    return Download(str(at), kind.get_content_type(), charset, await body(answer, max_bytes))
    except Blocked as blocked:
        raise WebError(f"{start}: {blocked}") from blocked
    raise WebError(f"{inline(url)} is where more than {MAX_REDIRECTS} redirects lead.")


@asynccontextmanager
async def reached(what: str, timeout: float) -> AsyncIterator[None]:
    """For an exchange with an address or service. Raises WebError, which says why it could not be reached, and what to do."""
    try:
        async with asyncio.timeout(timeout):
            yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise WebError(f"{what} did not answer within {timeout:g} seconds. Try another source.") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise WebError(f"{what} cannot be trusted: its certificate is not valid.") from error
        advice = "Is the address right, and has this machine a network?"
        raise WebError(f"{what} cannot be reached ({type(error).__name__}). {advice}") from error


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


def kept_path(data: bytes, url: str, ending: str) -> str:
    """Return the path at which a thread keeps the content of an address: a name that people recognise, another one when it has changed."""
    digest = hashlib.sha256(url.encode() + b"\0" + data).hexdigest()[:10]
    name = re.sub(r"[^A-Za-z0-9.]+", "-", re.sub(r"^https?://(?:www\.)?", "", url.partition("?")[0]))[:60].strip("-.")
    return f"{PAGES}/{name}-{digest}{ending}"
