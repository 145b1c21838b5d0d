"""Telling another service that a run has ended, without letting whoever names the service reach into our network."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
from sqlalchemy import Connection

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.sandbox.egress.policy import Address, Blocked, EgressPolicy
from deerflow.sandbox.interface import Network
from deerflow.tasks.job_rows import Job, enqueue
from deerflow.tasks.worker import HopelessError

WEBHOOK = "webhook"
"""The kind of job."""
TIMEOUT = 20.0
_TRY_AGAIN = {408, 409, 425, 429}

Describe = Callable[[Principal, str], Awaitable[Mapping[str, Any]]]


class WebhookPolicy:
    """Which addresses webhooks may call: those that a sandbox with the network on may.

    Args:
        allow_nets: networks (CIDR) that may be called, on any port, though they are not public.
    """

    def __init__(self, allow_nets: tuple[str, ...] = ()) -> None:
        self._network = Network(mode="internet", allow_nets=allow_nets)
        self._policy = EgressPolicy(self._network)

    def check(self, url: str) -> httpx.URL:
        """The parsed ``url`` if a webhook may have it, as far as can be told without looking up its host.

        Raises:
            InvalidRequestError: it is no absolute http(s) address, holds a user name or password, or leads to a private
                address or another port than 80 and 443.
        """
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise InvalidRequestError(f"webhook is not a URL: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InvalidRequestError("webhook must be an absolute URL that begins with http:// or https://.")
        if parsed.userinfo:
            raise InvalidRequestError("webhook must not hold a user name or password.")
        literal = _literal(parsed.host)
        if literal or not self._network.allow_nets:  # an internal name is known by its addresses alone
            try:
                self._check(parsed, [literal] if literal else [])
            except Blocked as blocked:
                raise InvalidRequestError(f"webhook: {blocked}") from None
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

    def _check(self, url: httpx.URL, addresses: Sequence[Address]) -> None:
        for address in addresses:
            if not self._policy.address_ok(address) or (not self._policy.exempt(address) and _is_ourselves(address)):
                raise Blocked(
                    f"{url.host} leads to {address}, which is private or reserved. List its network in "
                    "runs.webhook_allow_nets to call it."
                )
        exempt = bool(addresses) and all(self._policy.exempt(address) for address in addresses)
        if not exempt and _port(url) not in self._network.ports:
            raise Blocked(f"Port {_port(url)} of {url.host} may not be called. Use {self._network.ports}.")


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _literal(host: str) -> Address | None:
    """The address that ``host`` is, also as a number or with parts left out, or as this machine's own name."""
    if host == "localhost" or host.endswith(".localhost"):
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host)) if host[0].isdigit() else None
    except (OSError, ValueError):
        return None


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


def enqueue_webhook(connection: Connection, principal: Principal, run_id: str, url: str) -> None:
    """Ask for the call, in the transaction that ends the run."""
    enqueue(connection, WEBHOOK, run_id, {"user_id": principal.user_id, "url": url})


class WebhookJob:
    """Handler of ``webhook`` jobs: POSTs the run, as clients see it, to the address that its creator gave.

    Addresses are looked up once and the connection goes to the very address that was checked. Redirects and proxies are
    not followed. A run may be told more than once; ``Idempotency-Key`` is its id.

    Args:
        describe: the JSON-able body for owner and run id; NotFoundError if the run is gone.
    """

    def __init__(self, describe: Describe, policy: WebhookPolicy) -> None:
        self._describe = describe
        self._policy = policy

    async def __call__(self, job: Job) -> None:
        principal = Principal(job.payload["user_id"], source="internal")
        try:
            url = self._policy.check(job.payload["url"])
            run = await self._describe(principal, job.key)
        except (InvalidRequestError, NotFoundError) as error:
            raise HopelessError(str(error)) from error
        body = orjson.dumps({**run, "webhook_sent_at": datetime.now(UTC).isoformat()}, option=orjson.OPT_NON_STR_KEYS)
        status = await self._post(url, job.key, body)
        if status in _TRY_AGAIN or status >= 500:
            raise OSError(f"{url.host} answered {status}.")
        if not 200 <= status < 300:
            raise HopelessError(f"{url.host} answered {status}.")

    async def _post(self, url: httpx.URL, run_id: str, body: bytes) -> int:
        # The name stays in the Host header and in the TLS handshake; the connection goes to the address.
        headers = {"Host": url.netloc.decode(), "Content-Type": "application/json", "Idempotency-Key": run_id}
        try:
            target = url.copy_with(host=str(await self._policy.address(url)))
        except Blocked as blocked:
            raise HopelessError(str(blocked)) from None
        async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT) as client, asyncio.timeout(2 * TIMEOUT):
            extensions = {"sni_hostname": url.raw_host.decode()} if url.scheme == "https" else {}
            async with client.stream("POST", target, content=body, headers=headers, extensions=extensions) as answer:
                return answer.status_code
