"""Who makes a request: session cookie, API token, internal token, or nobody."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.requests import HTTPConnection

from deerflow.accounts import PREFIX, Scope, SessionRepository, TokenRepository, User
from deerflow.errors import UnauthenticatedError
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.storage.database import Database
from deerflow_app.gateway.auth.cookies import SESSION_COOKIE, Cookies

INTERNAL_HEADER = "x-deerflow-internal-token"
CACHE_SECONDS = 1.0
_CAPACITY = 10_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Credential:
    """``user`` is None where nobody signs in (internal callers, authentication off); ``session_id`` only with a cookie."""

    principal: Principal
    scopes: frozenset[Scope] = frozenset(("read", "write", "admin"))
    user: User | None = None
    session_id: str | None = None

    @property
    def is_token(self) -> bool:
        return self.principal.source == "token"


LOCAL = Credential(LOCAL_PRINCIPAL)
"""Everyone, where authentication is off."""

INTERNAL = Credential(Principal(LOCAL_PRINCIPAL.user_id, role="admin", source="internal"))
"""A program of the operating-system user who runs the gateway."""


class Authenticator:
    """Args:
    enabled: False makes every request one of the local user.
    internal_token: what local programs show; None accepts none.
    """

    def __init__(self, database: Database, cookies: Cookies, *, enabled: bool, internal_token: str | None) -> None:
        self._cookies = cookies
        self._enabled = enabled
        self._internal_token = internal_token
        self._sessions = _Recent(SessionRepository(database).user_of)
        self._tokens = _Recent(TokenRepository(database).find)

    async def authenticate(self, connection: HTTPConnection) -> Credential:
        """Raises UnauthenticatedError."""
        if not self._enabled:
            return LOCAL
        if (shown := connection.headers.get(INTERNAL_HEADER)) is not None:
            return self._internal(shown)
        if (token := _api_token(connection)) is not None:
            return await self._token(token)
        if cookie := connection.cookies.get(SESSION_COOKIE):
            return await self._session(cookie)
        raise UnauthenticatedError("Authentication required. Sign in, or send an API token.")

    def forget(self) -> None:
        """Something about users, sessions or tokens has changed: look everything up anew."""
        self._sessions.forget()
        self._tokens.forget()

    def _internal(self, shown: str) -> Credential:
        if self._internal_token and hmac.compare_digest(shown.encode(), self._internal_token.encode()):
            return INTERNAL
        raise UnauthenticatedError("The internal token is not that of this gateway.", code="token_invalid")

    async def _session(self, cookie: str) -> Credential:
        claims = self._cookies.decode(cookie)
        user = await self._sessions.get(claims.session_id)
        if user is None or user.id != claims.user_id or user.token_version != claims.version:
            raise UnauthenticatedError("The session has ended. Sign in again.", code="token_invalid")
        principal = Principal(user.id, role=user.role, source="session")
        return Credential(principal, user=user, session_id=claims.session_id)

    async def _token(self, value: str) -> Credential:
        found = await self._tokens.get(value)
        if found is None:
            raise UnauthenticatedError("The API token is not valid, or not any more.", code="token_invalid")
        token, user = found
        role = user.role if "admin" in token.scopes else "user"
        return Credential(Principal(user.id, role=role, source="token"), frozenset(token.scopes), user)


def _api_token(connection: HTTPConnection) -> str | None:
    """Clients made for other servers send keys of theirs as x-api-key: those do not concern us."""
    scheme, _, value = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    key = connection.headers.get("x-api-key", "")
    return key if key.startswith(PREFIX) else None


class _Recent(Generic[T]):
    """What a look-up said in the last seconds. Only what was found is kept."""

    def __init__(self, look_up: Callable[[str], Awaitable[T | None]]) -> None:
        self._look_up = look_up
        self._known: dict[str, tuple[float, T]] = {}
        self._generation = 0

    async def get(self, key: str) -> T | None:
        now = time.monotonic()
        if (known := self._known.get(key)) and now - known[0] < CACHE_SECONDS:
            return known[1]
        generation = self._generation
        found = await self._look_up(key)
        if found is None:
            self._known.pop(key, None)
        elif generation == self._generation:  # what was read before a change must not be kept after it
            if len(self._known) >= _CAPACITY:
                self._known.clear()
            self._known[key] = (now, found)
        return found

    def forget(self) -> None:
        self._generation += 1
        self._known.clear()
