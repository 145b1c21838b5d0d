"""Telling another service that a run has ended, without letting whoever names the service reach into our network."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
from sqlalchemy import Connection

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.sandbox.egress.policy import EgressPolicy
from deerflow.sandbox.interface import Network
from deerflow.tasks.job_rows import Job, enqueue
from deerflow.tasks.worker import HopelessError

WEBHOOK = "webhook"
"""The kind of job."""
TIMEOUT = 20.0
_TRY_AGAIN = {408, 409, 425, 429}

Describe = Callable[[Principal, str], Awaitable[Mapping[str, Any]]]


def check_webhook_url(url: str) -> str:
    """Return ``url`` if a webhook may have it, as far as can be told without looking up its host.

    Raises:
        InvalidRequestError: it is no absolute http(s) address, or holds a user name or password.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidRequestError(f"webhook is not a URL: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidRequestError("webhook must be an absolute URL that begins with http:// or https://.")
    if parsed.userinfo:
        raise InvalidRequestError("webhook must not hold a user name or password.")
    return url


def enqueue_webhook(connection: Connection, principal: Principal, run_id: str, url: str) -> None:
    """Ask for the call, in the transaction that ends the run."""
    enqueue(connection, WEBHOOK, run_id, {"user_id": principal.user_id, "url": url})


class WebhookJob:
    """Handler of ``webhook`` jobs: POSTs the run, as clients see it, to the address that its creator gave.

    Addresses are looked up once and the connection goes to the very address that was checked. Redirects and proxies are
    not followed. A run may be told more than once; ``Idempotency-Key`` is its id.

    Args:
        describe: the JSON-able body for owner and run id; NotFoundError if the run is gone.
        allow_nets: networks (CIDR) that may be called though they are not public.
    """

    def __init__(self, describe: Describe, *, allow_nets: tuple[str, ...] = ()) -> None:
        self._describe = describe
        self._policy = EgressPolicy(Network(mode="internet", allow_nets=allow_nets))

    async def __call__(self, job: Job) -> None:
        principal = Principal(job.payload["user_id"], source="internal")
        try:
            url = httpx.URL(check_webhook_url(job.payload["url"]))
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
        target = url.copy_with(host=await self._address(url))
        async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT) as client, asyncio.timeout(2 * TIMEOUT):
            extensions = {"sni_hostname": url.raw_host.decode()} if url.scheme == "https" else {}
            async with client.stream("POST", target, content=body, headers=headers, extensions=extensions) as answer:
                return answer.status_code

    async def _address(self, url: httpx.URL) -> str:
        """An address of the URL's host that may be called.

        Raises:
            HopelessError: the host leads to a private address, as some host's name may do only now.
            OSError: it cannot be looked up.
        """
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(url.raw_host.decode(), port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        for address in addresses:
            if not self._policy.address_ok(address):
                raise HopelessError(f"{url.host} leads to {address}, which is private or reserved.")
        return str(addresses[0])
