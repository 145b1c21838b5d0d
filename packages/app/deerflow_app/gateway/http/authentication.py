"""Admit requests to the API with a credential, except to public routes; refuse our cookies when pages of other sites send them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from deerflow.errors import ForbiddenError, UnauthenticatedError
from deerflow_app.gateway.auth import Authenticator, Credential

PUBLIC = frozenset(
    {
        "/api/ok",
        "/api/info",
        "/api/v1/auth/login/local",
        "/api/v1/auth/register",
        "/api/v1/auth/logout",
        "/api/v1/auth/setup-status",
        "/api/v1/auth/initialize",
    }
)
"""Paths of the API that need no credential. What is not under /api (health, documentation, web pages) is public, too."""

_SIGNED = re.compile(r"/api/(webhooks/github|channels/bots/[^/]+/events)")
"""Paths for platforms, which sign what they send instead."""

_SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass
class Authentication:
    """Puts a Credential into ``scope["state"]["credential"]``, or refuses."""

    app: ASGIApp
    authenticator: Authenticator
    enabled: bool
    """False where everyone is the local user; then no page but our own may send anything."""
    origins: Collection[str]
    """Of other pages that may use the gateway, e.g. ``https://app.example.com``."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (scope["path"] + "/").startswith("/api/"):
            connection = HTTPConnection(scope)
            credential = await self._credential(connection)
            self._check_page(connection, credential)
            if credential:
                scope.setdefault("state", {})["credential"] = credential
        await self.app(scope, receive, send)

    async def _credential(self, connection: HTTPConnection) -> Credential | None:
        try:
            return await self.authenticator.authenticate(connection)
        except UnauthenticatedError:
            if is_public(connection.scope["path"]):
                return None
            raise

    def _check_page(self, connection: HTTPConnection, credential: Credential | None) -> None:
        """A browser adds cookies to what any page sends, and shows in headers which page it was."""
        by_itself = credential is None or credential.session_id is not None or not self.enabled
        if not by_itself or (self.enabled and _is_safe(connection)):
            return
        self._check_origin(connection)
        if (
            credential
            and credential.session_id
            and not is_public(connection.scope["path"])
            and connection.scope["type"] == "http"
        ):
            self.authenticator.cookies.check_csrf(connection, credential.session_id)

    def _check_origin(self, connection: HTTPConnection) -> None:
        origin = connection.headers.get("origin")
        if origin is not None:
            if origin.lower() in self.origins or _same_host(origin, connection.headers.get("host", "")):
                return
        elif connection.headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
            return
        elif _is_safe(connection) and connection.headers.get("sec-fetch-mode") == "navigate":
            return  # someone followed a link to us; the page that holds it sees nothing of the answer
        raise ForbiddenError(
            "The request comes from a page of another site. If that site is yours, list its address in "
            "DEER_FLOW_TRUSTED_ORIGINS (reached through a proxy) or GATEWAY_CORS_ORIGINS (another site).",
            code="origin_not_allowed",
        )


def is_public(path: str) -> bool:
    """Return whether a path of the API needs no credential."""
    return path in PUBLIC or _SIGNED.fullmatch(path) is not None


def _is_safe(connection: HTTPConnection) -> bool:
    return connection.scope.get("method") in _SAFE  # a WebSocket has none


def _same_host(origin: str, host: str) -> bool:
    """The scheme does not matter: behind a proxy that is not trusted we do not know it."""
    try:
        parts = urlsplit(origin.lower())
        default = {"https": 443, "http": 80}.get(parts.scheme)
        here = urlsplit(f"//{host.lower()}")
        same_port = (parts.port or default) == (here.port or default)
        return parts.hostname is not None and parts.hostname == here.hostname and same_port
    except ValueError:
        return False
