"""What happens to each request before anything else sees it: it waits its turn, gets one path, and may not be too large."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.errors import NotFoundError
from deerflow.turns import Turns

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


class InTurn:
    """Each request takes a turn of the event loop before anything is done for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._turns.take()
        await self._app(scope, receive, send)


_LANGGRAPH = "/api/langgraph"
_BARE = ("/threads", "/runs", "/assistants", "/store", "/ok", "/info")


class Prefixes:
    """``/api/langgraph/X`` and ``/threads``, ``/runs`` … mean ``/api/X``, ``/api/threads`` …"""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            path, raw = scope["path"], scope.get("raw_path")
            if path.endswith("\n"):  # routes end in `$`, which matches before it: two paths would be one
                raise NotFoundError("There is nothing at a path that ends in a line feed.")
            if _within(path, _LANGGRAPH):
                scope["path"] = "/api" + path[len(_LANGGRAPH) :]
                if raw and raw.startswith(_LANGGRAPH.encode()):
                    scope["raw_path"] = b"/api" + raw[len(_LANGGRAPH) :]
            elif any(_within(path, bare) for bare in _BARE):
                scope["path"] = "/api" + path
                if raw:
                    scope["raw_path"] = b"/api" + raw
        await self._app(scope, receive, send)


def _within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")
