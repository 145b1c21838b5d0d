"""What happens to each request before anything else sees it: it waits its turn, gets one path, may not be too large; who really asks,
and whom: trusted proxies are believed, foreign host names refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.errors import ForbiddenError, NotFoundError
from deerflow.event_loop import LoopTurns
from deerflow_app.gateway.settings import Network

_OWN_LIMITS = re.compile(r"/api/threads/[^/]+/uploads")
_OF_ACCOUNTS = 65_536
"""Bytes of requests that strangers may send, too."""
_DIGITS = 18  # more than any size; Python refuses to read numbers of thousands


@dataclass
class BodyLimit:
    """Counts while a route reads, and stops it. Uploads are left to their route, which writes them to disk as they come."""

    app: ASGIApp
    limit: int
    """Bytes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _OWN_LIMITS.fullmatch(scope["path"]):
            return await self.app(scope, receive, send)
        limit = min(self.limit, _OF_ACCOUNTS) if scope["path"].startswith("/api/v1/") else self.limit
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

        await self.app(scope, count, send)


def _too_large(limit: int) -> HTTPException:
    """FastAPI lets this kind through where it reads a body; of others it would make a 400."""
    return HTTPException(413, f"The request is larger than {limit:,} bytes. Upload large content as a file.")


@dataclass
class InTurn:
    """Each request takes a turn of the event loop before anything is done for it."""

    app: ASGIApp
    turns: LoopTurns = field(default_factory=LoopTurns)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.turns.take()
        await self.app(scope, receive, send)


_LANGGRAPH = "/api/langgraph"
_OPENAI = "/v1"
_BARE = ("/threads", "/runs", "/assistants", "/store", "/ok", "/info", "/mcp")


@dataclass
class Prefixes:
    """``/api/langgraph/X`` and ``/threads``, ``/runs`` … mean ``/api/X``, ``/api/threads`` …; ``/v1`` is that of OpenAI."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            path, raw = scope["path"], scope.get("raw_path")
            if path.endswith("\n"):  # routes end in `$`, which matches before it: two paths would be one
                raise NotFoundError("There is nothing at a path that ends in a line feed.")
            if _within(path, _LANGGRAPH):
                scope["path"] = "/api" + path[len(_LANGGRAPH) :]
                if raw and raw.startswith(_LANGGRAPH.encode()):
                    scope["raw_path"] = b"/api" + raw[len(_LANGGRAPH) :]
            elif _within(path, _OPENAI) or any(_within(path, bare) for bare in _BARE):
                base = "/api/openai" if _within(path, _OPENAI) else "/api"
                scope["path"] = base + path
                if raw:
                    scope["raw_path"] = base.encode() + raw
        await self.app(scope, receive, send)


def _within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")


Address = IPv4Address | IPv6Address


@dataclass
class TrustedProxies:
    """Corrects ``client``, ``scheme`` and the Host header of requests that come through one of ``networks``."""

    app: ASGIApp
    networks: Sequence[Network]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client") if scope["type"] in ("http", "websocket") else None
        if peer and self._is_trusted(_address(peer[0])):
            self._correct(scope)
        await self.app(scope, receive, send)

    def _correct(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if client := self._client(headers):
            scope["client"] = (str(client), 0)
        scheme = headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
        if scheme in ("http", "https"):
            secure = {"http": scheme, "websocket": "wss" if scheme == "https" else "ws"}
            scope["scheme"] = secure[scope["type"]]
        if host := headers.get("x-forwarded-host", "").split(",")[0].strip():
            MutableHeaders(scope=scope)["host"] = host

    def _client(self, headers: Headers) -> Address | None:
        """X-Forwarded-For is written from left to right: the last one that is no proxy of ours is the client."""
        hops = [_bracketed(hop) for hop in ",".join(headers.getlist("x-forwarded-for")).split(",") if hop.strip()]
        for hop in reversed(hops):
            if hop is None or not self._is_trusted(hop):
                return hop
        return _bracketed(headers.get("x-real-ip", "")) or (hops[0] if hops else None)

    def _is_trusted(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self.networks)


def _bracketed(text: str) -> Address | None:
    return _address(text.strip().strip("[]"))


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


@dataclass
class HostCheck:
    """Lets requests through that name ``localhost``, an address (which cannot be rebound) or one of ``allowed``."""

    app: ASGIApp
    allowed: Sequence[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            host = host_name(Headers(scope=scope).get("host", ""))
            if not (host in self.allowed or host == "localhost" or host.endswith(".localhost") or _address(host)):
                raise ForbiddenError(
                    f"This gateway does not answer to the host name {host!r}. "
                    "Use localhost, or list the name in GATEWAY_ALLOWED_HOSTS.",
                    code="host_not_allowed",
                )
        await self.app(scope, receive, send)


def host_name(host: str) -> str:
    """A Host header in lower case, without the port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].rstrip(".")
