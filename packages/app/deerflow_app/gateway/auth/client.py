"""Where a request comes from, as far as it matters to whether someone may try."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from starlette.requests import HTTPConnection

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Client:
    network: str
    """Its address; of IPv6 the first half, since whoever has one address has all that begin with it."""
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
