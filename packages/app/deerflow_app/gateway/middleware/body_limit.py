"""A request may not be larger than we say, whatever its headers say."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OWN_LIMITS = re.compile(r"/api/threads/[^/]+/uploads")
_OF_ACCOUNTS = 65_536
"""Bytes of requests that strangers may send, too."""
_DIGITS = 18  # more than any size; Python refuses to read numbers of thousands


class BodyLimit:
    """Counts while a route reads, and stops it. Uploads are left to their route, which writes them to disk as they come.

    Args:
        limit: bytes.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _OWN_LIMITS.fullmatch(scope["path"]):
            return await self._app(scope, receive, send)
        limit = min(self._limit, _OF_ACCOUNTS) if scope["path"].startswith("/api/v1/") else self._limit
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdigit() and int(announced[:_DIGITS]) > limit:
            raise _too_large(limit)
        read = 0

        async def count() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > limit:
                    raise _too_large(limit)
            return message

        await self._app(scope, count, send)


def _too_large(limit: int) -> HTTPException:
    """FastAPI lets this kind through where it reads a body; of others it would make a 400."""
    return HTTPException(413, f"The request is larger than {limit:,} bytes. Upload large content as a file.")
