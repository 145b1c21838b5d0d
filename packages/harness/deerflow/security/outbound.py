"""Calling addresses that others name, without letting them reach into our network."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx

from deerflow.security.addresses import (
    Address,
    Blocked,
    EgressPolicy,
    Network,
    how_to_open,
    literal_address,
    normal_host,
)


class Outbound:
    """Which addresses this process calls for others: those that a sandbox with this network may.

    Args:
        network: public addresses are open, or the hosts of its list; ``allow_nets`` are open on any port, though not public.
        setting: where the operator lists such networks, for the message.
    """

    def __init__(self, network: Network, setting: str = "sandbox.network.allow_nets") -> None:
        self._network, self._setting = network, setting
        self._policy = EgressPolicy(network)

    def check(self, url: str) -> httpx.URL:
        """The parsed ``url`` if it may be called, as far as can be told without looking up its host.

        Raises:
            Blocked: it is no absolute http(s) address, holds a user name or password, or leads to a private address or a
                port or host that is not open.
        """
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError, UnicodeError) as error:
            raise Blocked(f"not a URL: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise Blocked("must be an absolute URL that begins with http:// or https://.")
        if parsed.userinfo:
            raise Blocked("must not hold a user name or password.")
        literal = _literal(parsed.host)
        if literal or not self._network.allow_nets:  # an internal name is known by its addresses alone
            self._check(parsed, [literal] if literal else [])
        if self._network.mode == "allowlist" or self._network.deny:
            try:
                self._policy.check_name(normal_host(parsed.host), _port(parsed))
            except ValueError as error:
                raise Blocked(str(error)) from error
        return parsed

    async def address(self, url: httpx.URL) -> Address:
        """An address of the URL's host that may be called.

        Raises:
            Blocked: the port or one of the addresses may not be called; a host's name may lead to a private one only now.
            OSError: it cannot be looked up.
        """
        host, port = url.raw_host.decode(), _port(url)
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        self._check(url, addresses)
        return addresses[0]

    async def pinned(self, url: str) -> tuple[str, str]:
        """For another program: the URL as this one reads it, and ``host:port:address`` to connect to, as curl writes it.

        Raises as :meth:`check` and :meth:`address`.
        """
        parsed = self.check(url)
        address = await self.address(parsed)
        shown = f"[{address}]" if address.version == 6 else address
        return str(parsed), f"{parsed.raw_host.decode()}:{_port(parsed)}:{shown}"

    @asynccontextmanager
    async def stream(
        self, method: str, url: httpx.URL, *, headers: dict[str, str], timeout: float, content: bytes | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The answer of the very address that was checked. Redirects and proxies are not followed.

        Args:
            timeout: seconds for each step.

        Raises:
            Blocked: see :meth:`address`.
            OSError, httpx.HTTPError: it cannot be reached.
        """
        target = url.copy_with(host=str(await self.address(url)), fragment=None)
        # The name stays in the Host header and in the TLS handshake; the connection goes to the address.
        extensions: dict[str, Any] = {"sni_hostname": url.raw_host.decode()} if url.scheme == "https" else {}
        async with (
            httpx.AsyncClient(trust_env=False, timeout=timeout, verify=await asyncio.to_thread(tls)) as client,
            client.stream(
                method,
                target,
                content=content,
                headers={"Host": url.netloc.decode(), **headers},
                extensions=extensions,
            ) as answer,
        ):
            yield answer

    def _check(self, url: httpx.URL, addresses: Sequence[Address]) -> None:
        for address in addresses:
            if not self._policy.address_ok(address) or (not self._policy.exempt(address) and _is_ourselves(address)):
                advice = how_to_open([address], f"List its network in {self._setting} to call it.")
                raise Blocked(f"{url.host} leads to {address}, which is private or reserved. {advice}")
        exempt = bool(addresses) and all(self._policy.exempt(address) for address in addresses)
        if not exempt and _port(url) not in self._network.ports:
            ports = " and ".join(map(str, self._network.ports))
            remedy = (
                "Add it to sandbox.network.ports in config.yaml"
                if self._setting.startswith("sandbox.")
                else f"List its network in {self._setting}"
            )
            raise Blocked(f"Port {_port(url)} of {url.host} is not open, {ports} are. {remedy} to call it.")


@cache
def tls() -> ssl.SSLContext:
    """Whom to trust, also by ``SSL_CERT_FILE``. Made once: it reads many certificates, so not on an event loop."""
    return httpx.create_ssl_context()


def _port(url: httpx.URL) -> int:
    return (443 if url.scheme == "https" else 80) if url.port is None else url.port


def _literal(host: str) -> Address | None:
    """The address that ``host`` is, also as a number or with parts left out, or as this machine's own name."""
    if host == "localhost" or host.endswith(".localhost"):
        return ipaddress.IPv4Address("127.0.0.1")
    return literal_address(host)


def _is_ourselves(address: Address) -> bool:
    """A public address of this machine: local services behind its firewall would take us for a neighbour. Sends nothing."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.setblocking(False)
            probe.connect((str(address), 9))
            return probe.getsockname()[0] == str(address)
    except OSError:
        return False
