"""Hash and check passwords."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets

import bcrypt
from anyio import CapacityLimiter

from deerflow.errors import InvalidRequestError
from deerflow_app.gateway.auth.throttle import ThrottledError

_PREFIX, _OLD_PREFIX = "$dfv2$", "$dfv1$"
_MINIMUM, _MAXIMUM = 8, 1024
_AT_ONCE = 2
_WAITING = 20
_RETRY_SECONDS = 5
_COMMON_TEXT = """\
    password password1 password12 password123 passw0rd p@ssw0rd p@ssword 12345678 123456789 1234567890 0123456789
    87654321 11111111 00000000 88888888 12341234 123123123 qwertyui qwertyuiop qwerty123 1q2w3e4r 1qaz2wsx asdfghjk
    asdfghjkl zxcvbnm1 abcd1234 abc12345 iloveyou iloveyou1 sunshine princess football baseball superman
    trustno1 welcome1 welcome123 letmein1 letmein123 admin123 admin1234 administrator changeme changeme1 changeme123
    deerflow deerflow1 deerflow123 default123 secret123 test1234 testtest"""
_COMMON = frozenset(_COMMON_TEXT.split())


class Passwords:
    """Hashes on threads, two at a time: whoever tries many passwords does not starve other work. Those who are known (by a session
    or a device) have a lane of their own; ThrottledError where 20 wait in one already.

    Args:
        rounds: work factor of bcrypt.
    """

    def __init__(self, rounds: int = 12) -> None:
        self._rounds = rounds
        self._lanes = {known: CapacityLimiter(_AT_ONCE) for known in (True, False)}
        self._nobody: str | None = None

    async def hash(self, password: str, *, known: bool = True) -> str:
        async with self._lane(known):
            return await asyncio.to_thread(self._hash, password)

    async def verify(self, password: str, hashed: str | None, *, known: bool = True) -> bool:
        """Whether it is the one. Takes as long for an account that does not exist (None)."""
        async with self._lane(known):
            if hashed is None:
                if self._nobody is None:
                    self._nobody = await asyncio.to_thread(self._hash, secrets.token_hex(16))
                await asyncio.to_thread(_verify, password, self._nobody)
                return False
            return await asyncio.to_thread(_verify, password, hashed)

    def _lane(self, known: bool) -> CapacityLimiter:
        lane = self._lanes[known]
        if lane.statistics().tasks_waiting >= _WAITING:
            raise ThrottledError("Too many people are signing in. Try again in a few seconds.", _RETRY_SECONDS)
        return lane

    def _hash(self, password: str) -> str:
        return _PREFIX + bcrypt.hashpw(_digest(password), bcrypt.gensalt(self._rounds)).decode()


def is_outdated(hashed: str) -> bool:
    """In a format that is no longer written."""
    return not hashed.startswith(_PREFIX)


def check_password(password: str) -> str:
    """``password`` if it may be used. Raises InvalidRequestError."""
    if len(password) < _MINIMUM:
        text = f"The password needs at least {_MINIMUM} characters."
        raise InvalidRequestError(text, code="weak_password", reason="password_short", count=_MINIMUM)
    if len(password) > _MAXIMUM:
        text = f"The password may have at most {_MAXIMUM} characters."
        raise InvalidRequestError(text, code="weak_password", reason="password_long", count=_MAXIMUM)
    if password.lower() in _COMMON or len(set(password)) < 3:
        text = "Password is too common; choose a stronger password."
        raise InvalidRequestError(text, code="weak_password", reason="common_password")
    return password


def _verify(password: str, hashed: str) -> bool:
    try:
        if hashed.startswith(_PREFIX):
            return bcrypt.checkpw(_digest(password), hashed.removeprefix(_PREFIX).encode())
        # As older versions did it, which used the first 72 bytes; bcrypt itself refuses more now.
        return bcrypt.checkpw(password.encode(errors="replace")[:72], hashed.removeprefix(_OLD_PREFIX).encode())
    except ValueError:
        return False


def _digest(password: str) -> bytes:
    """bcrypt sees 72 bytes and stops at a NUL: it gets a digest, in text, of the whole."""
    return base64.b64encode(hashlib.sha256(password.encode(errors="replace")).digest())
