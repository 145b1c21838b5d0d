"""HTTP and WebSocket as adapters use them: every failure becomes one of the errors of ``deerflow.features.channels.types``."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from secrets import token_hex
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from deerflow.features.channels.types import Event, Later, OutFile, Refused, Uncertain, Unreachable
from deerflow.security.outbound import tls

logger = logging.getLogger(__name__)
AFTER = 5.0
"""Seconds to wait when a platform says "later" and not when."""
BURST = 100
"""Messages of a link that are read before they are handled, and stored in one commit."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SOCKETS = logging.getLogger(f"{__name__}.sockets")
_SOCKETS.setLevel(logging.WARNING)  # below that, websockets logs the address with its ticket and all headers


class Http:
    """A client of one platform. The first one reads certificates, so it is not made on an event loop.

    Args:
        base_url: paths of requests are relative to it; whole addresses are allowed too.
        secrets: never to be seen in an error or a log, although they stand in an address.
        timeout: seconds for an answer; a long poll passes its own.
    """

    def __init__(
        self,
        base_url: str,
        *,
        secrets: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
        timeout: float = 20.0,
    ) -> None:
        self._secrets = {form for one in secrets if one for form in _forms(one)}
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers=dict(headers or {}),
            timeout=httpx.Timeout(timeout, connect=10.0),
            event_hooks={"request": [self._hide], "response": [_read_refusal]},
            verify=tls(),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def request(self, method: str, path: str, *, repeatable: bool = False, **more: Any) -> httpx.Response:
        """Send one request, once.

        Args:
            repeatable: doing it twice is as doing it once, as a GET or an edit. A cut is then Unreachable, not Uncertain.

        Raises:
            Later: status 429. Uncertain: the answer did not come, or is a fault of the server (5xx). Unreachable: nothing was sent.
        """
        repeatable = repeatable or method == "GET"
        try:
            answer = await self._client.request(method, path, **more)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failure(error, repeatable) from None
        return self._checked(answer, repeatable)

    async def json(self, method: str, path: str, *, repeatable: bool = False, **more: Any) -> dict[str, Any]:
        """Send one request and return the JSON object that it answers, whatever the status below 500. Raises as :meth:`request`;
        an answer that is no JSON object (the page of a captive portal or a proxy) counts as none."""
        answer = await self.request(method, path, repeatable=repeatable, **more)
        if (found := object_of(answer.content)) is None:
            kind = answer.headers.get("content-type", "no type")
            why = f"{answer.url.host} answered {answer.status_code} with {kind} instead of JSON."
            raise Unreachable(why) if repeatable or method == "GET" else Uncertain(why)
        return found

    @asynccontextmanager
    async def stream(self, path: str, **more: Any) -> AsyncIterator[httpx.Response]:
        """GET what is too large to hold. Raises as :meth:`request`, and Refused for every other status than success."""
        try:
            async with self._client.stream("GET", path, **more) as answer:
                if not self._checked(answer, True).is_success:
                    raise Refused(f"{answer.url.host} answered {answer.status_code}.")
                yield answer
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failure(error, True) from None

    def scrubbed(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text

    async def _hide(self, request: httpx.Request) -> None:
        request.url = _Address(request.url, self.scrubbed)

    def _failure(self, error: Exception, repeatable: bool) -> Unreachable | Uncertain:
        why = self.scrubbed(f"{self._client.base_url.host} cannot be reached: {str(error) or type(error).__name__}")
        never_sent = isinstance(error, (*_NEVER_SENT, httpx.InvalidURL))
        return Unreachable(why) if repeatable or never_sent else Uncertain(why)

    def _checked(self, answer: httpx.Response, repeatable: bool) -> httpx.Response:
        if answer.status_code == 429:
            body = object_of(answer.content) or {}
            raise Later("The platform asks for a pause.", _pause(answer, body), everywhere=body.get("global") is True)
        if answer.status_code >= 500:
            why = f"{answer.url.host} answered {answer.status_code}."
            raise Unreachable(why) if repeatable else Uncertain(why)
        return answer


def _forms(secret: str) -> set[str]:
    """Return a secret as it may stand in a path, a query or a form."""
    in_path = quote(secret, safe="/:@!$&'()*+,;=~")
    return {secret, in_path, quote(secret), quote(secret, safe=""), quote_plus(secret)}


class _Address(httpx.URL):
    """An address that hides secrets when it is written out, as httpx does in its log."""

    def __init__(self, address: httpx.URL, scrub: Callable[[str], str]) -> None:
        super().__init__(address)
        self._scrub = scrub

    def __str__(self) -> str:
        return self._scrub(super().__str__())


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of ``Retry-After``, given as a number or a date."""
    said = headers.get("retry-after", "")
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(said)
    except (TypeError, ValueError):
        return AFTER
    return max(0.0, moment.timestamp() - time.time())


def _pause(answer: httpx.Response, body: Mapping[str, Any]) -> float:
    """Return the seconds that a 429 asks for; Telegram and Discord write them into the body."""
    inner = body.get("parameters")
    for source in (body, inner if isinstance(inner, dict) else {}):
        said = source.get("retry_after")
        if isinstance(said, int | float) and said >= 0:
            return float(said)
    return retry_after(answer.headers)


async def _read_refusal(answer: httpx.Response) -> None:
    """Read the reason of a refusal, also where a file was asked for."""
    if 400 <= answer.status_code < 500:
        await answer.aread()


def object_of(content: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object that this is, or None."""
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def parsed(message: str | bytes) -> dict[str, Any]:
    """Return the JSON object of a WebSocket's message. Raises Unreachable if it is none: the other side is not the platform."""
    if (found := object_of(message)) is None:
        raise Unreachable("The link carried something else than JSON.")
    return found


def allowed(name: str, size: int | None, limit: int) -> None:
    """Raise Refused if a file is larger than what its platform takes."""
    if size is not None and size > limit:
        raise Refused(f'The file "{name}" has {size:,} bytes; at most {limit:,} can be exchanged here.')


async def limited(pieces: AsyncIterator[bytes], name: str, limit: int) -> AsyncIterator[bytes]:
    """Yield the bytes of a file while they are within the limit, whatever size the platform named."""
    size = 0
    async for piece in pieces:
        size += len(piece)
        allowed(name, size, limit)
        yield piece


def multipart(fields: Mapping[str, str], name: str, file: OutFile) -> dict[str, Any]:
    """Return the arguments of a request that sends a form with one file, piece by piece and never whole in memory.

    Args:
        name: of the field that holds the file.
    """
    edge, shown = token_hex(16), name_of(file).replace('"', "%22")
    head = "".join(
        f'--{edge}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in fields.items()
    )
    head += f'--{edge}\r\nContent-Disposition: form-data; name="{name}"; filename="{shown}"\r\n'
    mime = file.mime if re.fullmatch(r"[\w.+-]+/[\w.+-]+", file.mime, re.ASCII) else "application/octet-stream"
    head += f"Content-Type: {mime}\r\n\r\n"
    tail = f"\r\n--{edge}--\r\n".encode()

    async def body() -> AsyncIterator[bytes]:
        yield head.encode()
        async for piece in whole(file):
            yield piece
        yield tail

    length = len(head.encode()) + file.size + len(tail)
    headers = {"content-type": f"multipart/form-data; boundary={edge}", "content-length": str(length)}
    return {"content": body(), "headers": headers}


async def whole(file: OutFile) -> AsyncIterator[bytes]:
    """Yield the bytes of a file to send. Raises Unreachable if they are not as many as it said: the platform sees no end then."""
    size = 0
    async for piece in file.open():
        size += len(piece)
        if size > file.size:
            break
        yield piece
    if size != file.size:
        raise Unreachable(f'The file "{name_of(file)}" changed while it was sent.')


def name_of(file: OutFile) -> str:
    """Return the name under which a file is sent: one line, and no path."""
    return "".join(letter if letter.isprintable() and letter not in "/\\" else "_" for letter in file.name) or "file"


def understood(read: Callable[[Any], Sequence[Event]], raw: Any, platform: str) -> Sequence[Event]:
    """Return the events of a delivery. One of an unknown shape is logged and passed over: it would come again for ever."""
    try:
        return read(_storable(raw))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        logger.warning("An event of %s has an unknown shape and was passed over: %r.", platform, error)
        return ()


def _storable(raw: Any) -> Any:
    """Return JSON whose texts a database takes: without NUL and without halves of a surrogate pair."""
    match raw:
        case str():
            return _UNSTORABLE.sub("\ufffd", raw)
        case list():
            return [_storable(one) for one in raw]
        case dict():
            return {key: _storable(value) for key, value in raw.items()}
    return raw


async def burst(link: ClientConnection) -> list[str | bytes]:
    """Return the next message and those that have arrived behind it, so that one commit stores them all."""
    return await and_behind(link, await link.recv())


async def and_behind(link: ClientConnection, first: str | bytes) -> list[str | bytes]:
    """Return a message and those that have arrived behind it."""
    got = [first]
    try:
        while len(got) < BURST:
            async with asyncio.timeout(0):
                got.append(await link.recv())
    except (TimeoutError, ConnectionClosed):
        pass  # nothing more is here; the next call says so again
    return got


@asynccontextmanager
async def socket(url: str, **more: Any) -> AsyncIterator[ClientConnection]:
    """Open a WebSocket. Raises Unreachable when it cannot be opened, or has ended; the errors of others pass as they are.

    Args:
        more: ``ping_interval`` and ``ping_timeout`` (seconds) say when a silent link counts as dead.
    """
    trust = await asyncio.to_thread(tls) if url.startswith("wss:") else None
    limits = {"max_size": 16 << 20, "max_queue": BURST, "open_timeout": 10, "close_timeout": 2}
    options = {**limits, "logger": _SOCKETS, "ssl": trust, **more}
    try:
        connection = await connect(url, **options)
    except (OSError, TimeoutError, WebSocketException) as error:
        raise _unreachable(error, url) from None
    try:
        async with connection:
            yield connection
    except WebSocketException as error:
        raise _unreachable(error, url) from None


def _unreachable(error: Exception, url: str) -> Unreachable:
    why = f"{type(error).__name__}: {error}".rstrip(": ").replace(url, "…")
    return Unreachable(why)
