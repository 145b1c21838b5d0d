"""Where others may make us connect to: host names, ports and addresses. Pure decisions, no sockets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from socket import inet_aton
from typing import Literal

NetworkMode = Literal["none", "allowlist", "internet", "host"]
Address = IPv4Address | IPv6Address

_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NAMED = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://(?:[^\s/@]*@)?)?(?P<host>\[[0-9a-f:.%]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::\d{1,5}\b)?"
    r"(?:/(?:[^\s'\"<>()]*[^\s'\"<>().,;:])?)?",
    re.IGNORECASE,
)
_INNER_NAMES = (".internal", ".local", ".lan", ".home", ".corp", ".intranet", ".localdomain")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_SPECIAL = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # protocol assignments; some clouds serve metadata here
            "192.88.99.0/24",  # relays of 6to4
            "168.63.129.16/32",  # public by the registry, yet answered by Azure's own host
            "2001::/32",  # Teredo: an IPv4 address inside
            "3fff::/20",  # documentation
        ),
    )
)
"""Not public, whatever this version of Python thinks of them."""


_KEYS_OF_MACHINES = tuple(
    map(
        ip_network,
        (
            "169.254.0.0/16",
            "fe80::/10",
            "192.0.0.192/32",
            "168.63.129.16/32",
            "100.100.100.200/32",
            "fd00:ec2::254/128",
        ),
    )
)
"""Addresses at which clouds serve the keys of a machine to whatever runs on it. No message says how to open these."""


@dataclass(frozen=True, slots=True)
class Network:
    """Network policy. ``allow``/``deny`` hold host names or ``*.example.org``; ``allow_nets`` CIDRs exempt from the public-address rule."""

    mode: NetworkMode = "none"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ports: tuple[int, ...] = (80, 443)
    allow_nets: tuple[str, ...] = ()


class Blocked(Exception):
    """The policy forbids this connection. ``str()`` says why and what to change."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of the proxy, for the log."""

    allowed: bool
    method: str
    host: str
    port: int
    address: str = ""
    reason: str = ""


class EgressPolicy:
    """What ``Network`` means, connection by connection."""

    def __init__(self, network: Network) -> None:
        """Raises ValueError for an entry that is neither a host name nor a CIDR."""
        self._mode = network.mode
        self._ports = frozenset(network.ports)
        self._allow = [_pattern(entry) for entry in network.allow]
        self._deny = [_pattern(entry) for entry in network.deny if not _is_network(entry)]
        self._deny_nets = [ip_network(entry, strict=False) for entry in network.deny if _is_network(entry)]
        self._allow_nets = [ip_network(entry, strict=False) for entry in network.allow_nets]

    def check_name(self, host: str, port: int) -> None:
        """Raises Blocked if this host (normalised) or port is not allowed, as far as can be told before the host is looked up."""
        if self._mode == "none":
            raise Blocked("The network is off. Set sandbox.network.mode in config.yaml to allow it.")
        literal = literal_address(host)
        if literal is not None and not self.exempt(literal) and (closed := how_to_open([literal], "")):
            raise Blocked(f"{host} cannot be opened. {closed}")
        if not (self._allow_nets if literal is None else self.exempt(literal)):
            self._check_port(port)
        if self._mode == "internet" and self._deny and literal is not None and not self.exempt(literal):
            raise Blocked(f"{host} is an address: where sandbox.network.deny names hosts, only names can be reached.")
        if any(_matches(host, pattern) for pattern in self._deny):
            raise Blocked(f"{host} is on the deny list (sandbox.network.deny).")
        if self._mode == "allowlist" and not any(_matches(host, pattern) for pattern in self._allow):
            raise Blocked(f"{host} is not on the allow list (sandbox.network.allow). Allowed: {_listed(self._allow)}.")

    def _check_port(self, port: int) -> None:
        if port not in self._ports:
            raise Blocked(
                f"Port {port} is not allowed. Allowed: {_listed(sorted(self._ports))} (sandbox.network.ports)."
            )

    def permitted(self, addresses: Iterable[str], host: str, port: int) -> list[Address]:
        """Return the addresses among those that ``host`` resolved to that may be dialled, those of ``allow_nets`` on any port.

        Raises Blocked if none may.
        """
        found = [_parsed(address) for address in addresses]
        usable = [address for address in found if address is not None and self.address_ok(address)]
        if not usable:
            raise Blocked(
                f"{host} leads to an address that is private, reserved or denied. "
                + how_to_open(found, "An internal network must be listed in sandbox.network.allow_nets.")
            )
        if exempt := [address for address in usable if self.exempt(address)]:
            return exempt if port not in self._ports else usable
        self._check_port(port)
        return usable

    def address_ok(self, address: Address) -> bool:
        """Whether this address may be dialled, whatever name led to it."""
        address = _unwrapped(address)
        if any(address in net for net in self._deny_nets):
            return False
        return self.exempt(address) or _is_public(address)

    def exempt(self, address: Address) -> bool:
        """Whether the operator listed this address in ``allow_nets``."""
        return any(_unwrapped(address) in net for net in self._allow_nets)


def how_to_open(addresses: Iterable[Address | None], advice: str) -> str:
    """Return ``advice`` about addresses that are closed; of those that serve keys, that they stay closed."""
    unwrapped = [_unwrapped(address) for address in addresses if address is not None]
    if any(address in net for address in unwrapped for net in _KEYS_OF_MACHINES):
        return "Clouds serve the keys of a machine there: it stays closed."
    return advice


def in_hosts(host: str, entries: Iterable[str]) -> bool:
    """Return whether ``host`` is one of ``entries``: host names, or ``*.example.org``."""
    try:
        name = normal_host(host)
    except ValueError:
        return False
    return any(_matches(name, _pattern(entry)) for entry in entries)


def normal_host(host: str) -> str:
    """Lower case, ASCII, without brackets and final dot. Raises ValueError if it cannot be a host."""
    host = host.lower().removesuffix(".")
    if host.startswith("[") and host.endswith("]"):
        return str(IPv6Address(host[1:-1].partition("%")[0]))
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise ValueError(f"not a host name: {host[:100]!r}")
    return host


def without_inner_addresses(text: str) -> str:
    """Return ``text`` with ``[address]`` in place of hosts, ports and paths of a network that is not public."""

    def shown(found: re.Match[str]) -> str:
        host, is_named = found["host"].lower(), bool(found["scheme"]) or text[: found.start()].endswith("host ")
        address = _parsed(host.strip("[]"))
        if address is not None:
            inner = not _is_public(_unwrapped(address))
        else:
            inner = host == "localhost" or host.endswith(_INNER_NAMES) or (is_named and "." not in host)
        return "[address]" if inner else found[0]

    return _NAMED.sub(shown, text)


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast or any(address in net for net in _SPECIAL):
        return False
    # Of IPv6 only global unicast: site-local, IPv4-compatible and other relics count as global for Python.
    return isinstance(address, IPv4Address) or address in _GLOBAL_UNICAST


def _unwrapped(address: Address) -> Address:
    """The IPv4 address inside a mapped, 6to4 or NAT64 one: that is where the packets would go."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def literal_address(host: str) -> Address | None:
    """The address that a host is, also where it is written as one number or with fewer dots; None for a name."""
    with suppress(OSError, ValueError):
        return IPv4Address(inet_aton(host))
    return _parsed(host)


def _parsed(address: str) -> Address | None:
    try:
        return ip_address(address.partition("%")[0])
    except ValueError:
        return None


def _is_network(entry: str) -> bool:
    try:
        ip_network(entry, strict=False)
    except ValueError:
        return False
    return True


def _pattern(entry: str) -> str:
    entry = entry.strip()
    if entry == "*" or _is_network(entry):
        return entry
    return "*." + normal_host(entry[2:]) if entry.startswith("*.") else normal_host(entry)


def _matches(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    if pattern == "*" or host == pattern:
        return True
    address = _parsed(host)
    return address is not None and _is_network(pattern) and address in ip_network(pattern, strict=False)


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items)) or "nothing"
