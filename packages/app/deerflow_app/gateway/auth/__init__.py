"""Who makes a request: session cookie, API token, internal token, or nobody; and the cookies of a session: the signed one that scripts
cannot read, the one they have to show with each write, and the one by which a browser is known that has signed in before."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

import jwt
from starlette.requests import HTTPConnection
from starlette.responses import Response

from deerflow.accounts import PREFIX, Scope, SessionRepository, TokenRepository, User
from deerflow.errors import ForbiddenError, UnauthenticatedError
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now
from deerflow_app.gateway.settings import GatewaySettings

INTERNAL_HEADER = "x-deerflow-internal-token"
CACHE_SECONDS = 1.0
_CAPACITY = 10_000
T = TypeVar("T")
SESSION_COOKIE, CSRF_COOKIE, CSRF_HEADER = "access_token", "csrf_token", "x-csrf-token"
DEVICE_COOKIE, _DEVICE_PATH, _DEVICE_LIFETIME = "known_device", "/api/v1/auth", timedelta(days=365)
_ALGORITHM = "HS256"


@dataclass(frozen=True, slots=True)
class Claims:
    """What the session cookie says: ``version`` is the user's token version when it was signed."""

    user_id: str
    session_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Device:
    """A browser in which somebody has signed in to ``account``, an e-mail address in lower case."""

    id: str
    account: str


class Cookies:
    """Args:
    secret: the same in all processes of a site.
    """

    def __init__(self, secret: str, lifetime: timedelta) -> None:
        self._secret = secret
        self._lifetime = lifetime

    @property
    def max_age(self) -> int:
        """Seconds."""
        return int(self._lifetime.total_seconds())

    def decode(self, value: str) -> Claims:
        """Raises UnauthenticatedError."""
        try:
            payload = self._read(value, "sub", "sid", "ver")
            return Claims(str(payload["sub"]), str(payload["sid"]), int(payload["ver"]))
        except jwt.ExpiredSignatureError:
            raise UnauthenticatedError("The session has expired. Sign in again.", code="token_expired") from None
        except (jwt.InvalidTokenError, ValueError, TypeError):
            raise UnauthenticatedError("The session is not valid. Sign in again.", code="token_invalid") from None

    def device(self, connection: HTTPConnection) -> Device | None:
        """None for a browser that is not known."""
        shown = connection.cookies.get(DEVICE_COOKIE)
        if not shown:
            return None
        try:
            payload = self._read(shown, "dev", "acc")
        except jwt.InvalidTokenError:
            return None
        return Device(str(payload["dev"]), str(payload["acc"]))

    def set_device(self, request: HTTPConnection, response: Response, device: Device) -> None:
        """It stays when its owner signs out."""
        response.set_cookie(
            DEVICE_COOKIE,
            self._sign(_DEVICE_LIFETIME, dev=device.id, acc=device.account),
            max_age=int(_DEVICE_LIFETIME.total_seconds()),
            path=_DEVICE_PATH,
            httponly=True,
            samesite="strict",
            secure=_is_secure(request),
        )

    def set(self, request: HTTPConnection, response: Response, claims: Claims) -> None:
        """Both live as long as the session."""
        response.set_cookie(
            SESSION_COOKIE,
            self._sign(self._lifetime, sub=claims.user_id, sid=claims.session_id, ver=claims.version),
            max_age=self.max_age,
            httponly=True,
            samesite="lax",
            secure=_is_secure(request),
        )
        self.set_csrf(request, response, claims.session_id)

    def set_csrf(self, request: HTTPConnection, response: Response, session_id: str) -> None:
        response.set_cookie(
            CSRF_COOKIE,
            self._csrf_token(session_id),
            max_age=self.max_age,
            samesite="strict",
            secure=_is_secure(request),
        )

    def clear(self, request: HTTPConnection, response: Response) -> None:
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax", secure=_is_secure(request))
        response.delete_cookie(CSRF_COOKIE, samesite="strict", secure=_is_secure(request))

    def check_csrf(self, connection: HTTPConnection, session_id: str) -> None:
        """The header must hold what only a page that can read the site's cookies knows. Raises ForbiddenError."""
        shown = connection.headers.get(CSRF_HEADER)
        if not shown:
            raise ForbiddenError("CSRF token missing. Include X-CSRF-Token header.", code="csrf_missing")
        if not hmac.compare_digest(shown.encode(), self._csrf_token(session_id).encode()):
            raise ForbiddenError("CSRF token mismatch.", code="csrf_mismatch")

    def has_csrf(self, connection: HTTPConnection, session_id: str) -> bool:
        return connection.cookies.get(CSRF_COOKIE) == self._csrf_token(session_id)

    def _sign(self, lifetime: timedelta, **claims: Any) -> str:
        now = utc_now()
        return jwt.encode(claims | {"iat": now, "exp": now + lifetime}, self._secret, algorithm=_ALGORITHM)

    def _read(self, value: str, *claims: str) -> dict[str, Any]:
        """Raises jwt.InvalidTokenError."""
        # A clock that was set back makes a session no less valid.
        options: Any = {"require": [*claims, "exp"], "verify_iat": False}
        return jwt.decode(value, self._secret, algorithms=[_ALGORITHM], options=options)

    def _csrf_token(self, session_id: str) -> str:
        """Of this session alone: a cookie planted by a neighbouring site does not fit."""
        return hmac.new(self._secret.encode(), b"csrf:" + session_id.encode(), hashlib.sha256).hexdigest()


def _is_secure(request: HTTPConnection) -> bool:
    """As judged with trusted proxies only."""
    return request.url.scheme == "https"


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
    def __init__(self, database: Database, settings: GatewaySettings) -> None:
        self.cookies = Cookies(settings.auth_secret, settings.session_lifetime)
        self._settings = settings
        self._sessions = _Recent(SessionRepository(database).user_of)
        self._tokens = _Recent(TokenRepository(database).find)

    async def authenticate(self, connection: HTTPConnection) -> Credential:
        """Raises UnauthenticatedError."""
        if not self._settings.authentication:
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
        token = self._settings.internal_token
        if token and hmac.compare_digest(shown.encode(), token.encode()):
            return INTERNAL
        raise UnauthenticatedError("The internal token is not that of this gateway.", code="token_invalid")

    async def _session(self, cookie: str) -> Credential:
        claims = self.cookies.decode(cookie)
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
