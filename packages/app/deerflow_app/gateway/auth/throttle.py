"""Slow down those who try passwords."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from starlette.requests import HTTPConnection

from deerflow.errors import TooManyRequestsError


class ThrottledError(TooManyRequestsError):
    """Too many attempts. ``retry_after``: seconds, at least 1."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(kw_only=True)
class Throttle:
    """Counts attempts per key within a window that begins with the first of them."""

    window: float = 300.0
    """Seconds."""
    capacity: int = 20_000
    """Keys that are remembered; those of which least was heard lately go first."""
    clock: Callable[[], float] = time.monotonic
    _counts: OrderedDict[str, tuple[float, int]] = field(default_factory=OrderedDict)

    def attempt(self, limits: dict[str, int]) -> None:
        """Count an attempt on all keys of ``limits`` (key to greatest number). Call it before the attempt is made, so that
        attempts at the same time count, too.

        Raises:
            ThrottledError: one key is used up; nothing was counted.
        """
        now = self.clock()
        waits: list[float] = []
        for key, limit in limits.items():
            ends, count = self._counts.get(key, (0.0, 0))
            if ends > now and count >= limit:
                waits.append(ends - now)
        if waits:
            raise ThrottledError("Too many attempts. Try again later.", max(1, round(max(waits))))
        for key in limits:
            ends, count = self._counts.pop(key, (0.0, 0))
            self._counts[key] = (ends, count + 1) if ends > now else (now + self.window, 1)
        while len(self._counts) > self.capacity:
            self._counts.popitem(last=False)

    def take_back(self, keys: list[str]) -> None:
        """The last attempt on ``keys`` was a good one and does not count."""
        for key in keys:
            ends, count = self._counts.get(key, (0.0, 0))
            if count > 1:
                self._counts[key] = (ends, count - 1)
            else:
                self._counts.pop(key, None)

    def forget(self, key: str) -> None:
        self._counts.pop(key, None)


_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Client:
    network: str
    """Its address; of IPv6 the first half, since an owner of one address has all that begin with it."""
    is_local: bool
    """It runs on this machine, and no proxy came before it."""


def client_of(connection: HTTPConnection) -> Client:
    """As judged with trusted proxies only."""
    host = connection.client.host if connection.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return Client(host or "unknown", is_local=False)
    address = (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
    is_local = address.is_loopback and not any(name in connection.headers for name in _FORWARDED)
    if isinstance(address, IPv6Address):
        return Client(f"{IPv6Address(int(address) >> 64 << 64)}/64", is_local)
    return Client(str(address), is_local)
