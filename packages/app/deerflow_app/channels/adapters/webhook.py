"""Signed webhooks both ways: any program is a channel. https://www.standardwebhooks.com"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx

from deerflow.features.channels.types import (
    Accept,
    Author,
    Caps,
    Event,
    FileRef,
    HttpAdapter,
    Inbound,
    Later,
    Me,
    Misconfigured,
    Part,
    Place,
    Ref,
    Refused,
    Uncertain,
    Unreachable,
)
from deerflow.security.addresses import Blocked
from deerflow.security.outbound import Outbound
from deerflow_app.channels.wire import retry_after, understood

TOLERANCE = 300
"""Seconds between a message's time stamp and our clock."""
FILE_LIMIT = 20 << 20
_TIMEOUT = 20.0
_PREFIX = "whsec_"
_SETTING = "Set channels.webhook.secret to whsec_ and 24 to 64 random bytes as base64, for example from: openssl rand -base64 32"


class Webhook(HttpAdapter):
    """A program that sends signed messages to a route of ours, and takes answers at an address of its own.

    Args:
        secret: ``whsec_`` and the key as base64; several, separated by spaces, while one replaces another: the first signs.
        url: where answers go; empty if messages are only taken.
        outbound: which addresses may be called.
    """

    def __init__(self, secret: str, url: str, outbound: Outbound) -> None:
        self.caps = Caps(dialect="github", edits=False, post_every=0.0, file_in=FILE_LIMIT)
        self._secrets = secret.split()
        self._url = url
        self._outbound = outbound

    async def identify(self) -> Me:
        if not self._secrets or not all(map(_key, self._secrets)):
            raise Misconfigured(_SETTING)
        if self._url:
            self._checked(self._url, Misconfigured)
        return Me("webhook", "Webhook")

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        connected()
        await asyncio.Event().wait()

    async def receive(self, headers: Mapping[str, str], body: bytes, accept: Accept) -> tuple[int, Mapping[str, Any]]:
        headers = {name.lower(): value for name, value in headers.items()}
        message, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not stamp.isdecimal() or abs(time.time() - int(stamp)) > TOLERANCE:
            return 401, {"error": f"webhook-timestamp must be within {TOLERANCE} seconds of now, in Unix seconds."}
        if not message or not self._is_signed(headers.get("webhook-signature", ""), message, stamp, body):
            return 401, {
                "error": "webhook-signature does not fit: sign webhook-id.webhook-timestamp.body with the secret."
            }
        try:
            found = understood(partial(_events, message, int(stamp)), json.loads(body), "a webhook")
        except ValueError:
            found = ()
        if not found:
            return 400, {
                "error": 'The body must be {"type": "message", "data": {"text": "…"}}, other fields as documented.'
            }
        await accept(found, None)
        return 202, {"id": message}

    def _is_signed(self, header: str, message: str, stamp: str, body: bytes) -> bool:
        known = [_signature(secret, message, stamp, body).encode() for secret in self._secrets]
        return any(hmac.compare_digest(one.encode(), good) for one in header.split() for good in known)

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        if not self._url:
            raise Refused("Set channels.webhook.url: there is no address to answer to.")
        data = {"chat": place.chat, "topic": place.topic, "text": part.text, "reply_to": wake.get("id", "")}
        sent_at = datetime.now(UTC)
        body = json.dumps({"type": "message", "timestamp": sent_at.isoformat(), "data": data}).encode()
        stamp = str(int(sent_at.timestamp()))
        await self._send(
            {
                "Content-Type": "application/json",
                "webhook-id": key,
                "webhook-timestamp": stamp,
                "webhook-signature": _signature(self._secrets[0], key, stamp, body),
            },
            body,
        )
        return {"id": key}

    async def _send(self, headers: dict[str, str], body: bytes) -> None:
        url = self._checked(self._url, Refused)
        try:
            async with self._outbound.stream("POST", url, headers=headers, timeout=_TIMEOUT, content=body) as answer:
                status, said = answer.status_code, answer.headers
        except Blocked as blocked:
            raise Refused(f"channels.webhook.url: {blocked}") from None
        except (httpx.ConnectError, httpx.ConnectTimeout, OSError) as error:
            raise Unreachable(f"{url.host}: {type(error).__name__}: {error}") from None
        except httpx.HTTPError as error:
            raise Uncertain(f"{url.host}: {type(error).__name__}") from None
        if status == 429:
            raise Later(f"{url.host} asks for a pause.", retry_after(said))
        if status >= 500:
            raise Uncertain(f"{url.host} answered {status}.")
        if not 200 <= status < 300:
            raise Refused(
                f"{url.host} answered {status}. Redirects are not followed: set channels.webhook.url to the last one."
            )

    def _checked(self, url: str, error: type[Misconfigured | Refused]) -> httpx.URL:
        try:
            return self._outbound.check(url)
        except Blocked as blocked:
            raise error(f"channels.webhook.url: {blocked}") from None

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        try:
            url = self._outbound.check(file.key["url"])
            async with self._outbound.stream("GET", url, headers={}, timeout=_TIMEOUT) as answer:
                if answer.status_code != 200:
                    raise Refused(f"{url.host} answered {answer.status_code} for {file.name}.")
                async for chunk in answer.aiter_bytes():
                    yield chunk
        except Blocked as blocked:
            raise Refused(f"{file.name}: {blocked}") from None
        except (httpx.HTTPError, OSError) as error:
            raise Unreachable(f"{file.name}: {type(error).__name__}") from None


def _events(message: str, stamp: int, body: Mapping[str, Any]) -> list[Event]:
    data = body["data"]
    text, author = _string(data, "text"), data.get("author", {})
    chat = _string(data, "chat") or "webhook"
    files = [FileRef(_string(one, "name") or "file", {"url": str(one["url"])}) for one in data.get("files", [])]
    if body.get("type") != "message" or not (text or files):
        raise ValueError("type must be message, with a text or files")
    return [
        Inbound(
            message,
            Place(chat, _string(data, "topic"), is_private=True),
            Author(_string(author, "id") or "webhook", name=_string(author, "name")),
            datetime.fromtimestamp(stamp, UTC),
            text,
            files=files,
            is_mention=True,
            reply_to=_string(data, "reply_to"),
            quoted=_string(data, "quoted"),
            wake={"id": message},
        )
    ]


def _string(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string")
    return value


def _key(secret: str) -> bytes:
    """Return the bytes of a secret; none if it is not base64."""
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        return b""


def _signature(secret: str, message: str, stamp: str, body: bytes) -> str:
    signed = f"{message}.{stamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(_key(secret), signed, "sha256")).decode()
