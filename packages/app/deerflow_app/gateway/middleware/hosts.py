"""Against DNS rebinding: a page that points its own name at this machine must not reach a gateway that serves only it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from deerflow.errors import ForbiddenError


class HostCheck:
    """Lets requests through that name ``localhost``, an address (which cannot be rebound) or one of ``allowed``."""

    def __init__(self, app: ASGIApp, allowed: Sequence[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            host = host_name(Headers(scope=scope).get("host", ""))
            if not (host in self._allowed or host == "localhost" or host.endswith(".localhost") or _is_address(host)):
                raise ForbiddenError(
                    f"This gateway does not answer to the host name {host!r}. "
                    "Use localhost, or list the name in GATEWAY_ALLOWED_HOSTS.",
                    code="host_not_allowed",
                )
        await self._app(scope, receive, send)


def host_name(host: str) -> str:
    """A Host header in lower case, without the port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
