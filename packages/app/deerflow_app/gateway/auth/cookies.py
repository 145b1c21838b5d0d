"""The two cookies of a session: the signed one that scripts cannot read, and the one they have to show with each write;
and the one by which a browser is known that has signed in before."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt
from starlette.requests import HTTPConnection
from starlette.responses import Response

from deerflow.errors import ForbiddenError, UnauthenticatedError
from deerflow.storage.tables import utc_now

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

    def encode(self, claims: Claims) -> str:
        now = utc_now()
        payload = {"sub": claims.user_id, "sid": claims.session_id, "ver": claims.version}
        return jwt.encode(payload | {"iat": now, "exp": now + self._lifetime}, self._secret, algorithm=_ALGORITHM)

    def decode(self, value: str) -> Claims:
        """Raises UnauthenticatedError."""
        try:
            # A clock that was set back makes a session no less valid.
            options: Any = {"require": ["sub", "sid", "ver", "exp"], "verify_iat": False}
            payload = jwt.decode(value, self._secret, algorithms=[_ALGORITHM], options=options)
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
            payload = jwt.decode(
                shown, self._secret, algorithms=[_ALGORITHM], options={"require": ["dev", "acc", "exp"]}
            )
        except jwt.InvalidTokenError:
            return None
        return Device(str(payload["dev"]), str(payload["acc"]))

    def set_device(self, request: HTTPConnection, response: Response, device: Device) -> None:
        """It stays when its owner signs out."""
        payload = {"dev": device.id, "acc": device.account, "exp": utc_now() + _DEVICE_LIFETIME}
        response.set_cookie(
            DEVICE_COOKIE,
            jwt.encode(payload, self._secret, algorithm=_ALGORITHM),
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
            self.encode(claims),
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

    def _csrf_token(self, session_id: str) -> str:
        """Of this session alone: a cookie planted by a neighbouring site does not fit."""
        return hmac.new(self._secret.encode(), b"csrf:" + session_id.encode(), hashlib.sha256).hexdigest()


def _is_secure(request: HTTPConnection) -> bool:
    """As judged with trusted proxies only."""
    return request.url.scheme == "https"
