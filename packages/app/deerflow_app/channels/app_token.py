"""The token that an app gets for its secret, where it must be renewed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

_EARLY = 300.0
"""Seconds before its end from which on a token is not used."""


class AppToken:
    """Args:
    get: asks for a token instead of the one that it is given; returns it and the seconds for which it holds.
    """

    def __init__(self, get: Callable[[str], Awaitable[tuple[str, float]]]) -> None:
        self._get = get
        self._token, self._until, self._renewing = "", 0.0, asyncio.Lock()

    async def current(self, refused: str = "") -> str:
        """Return a token that holds, and is not ``refused``."""
        async with self._renewing:
            if self._token in ("", refused) or time.monotonic() >= self._until:
                self._token, seconds = await self._get(self._token)
                self._until = time.monotonic() + seconds - _EARLY
            return self._token

    async def renew(self) -> None:
        await self.current(self._token)
