"""Telling another service that a run has ended, without letting whoever names the service reach into our network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
from sqlalchemy import Connection

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.security.addresses import Blocked, Network
from deerflow.security.outbound import Outbound
from deerflow.tasks.jobs import HopelessError, Job, enqueue

WEBHOOK = "webhook"
"""The kind of job."""
TIMEOUT = 20.0
_TRY_AGAIN = {408, 409, 425, 429}

Describe = Callable[[Principal, str], Awaitable[Mapping[str, Any]]]


class WebhookPolicy(Outbound):
    """Which addresses webhooks may call: public ones.

    Args:
        allow_nets: networks (CIDR) that may be called, on any port, though they are not public.
    """

    def __init__(self, allow_nets: tuple[str, ...] = ()) -> None:
        super().__init__(Network("internet", allow_nets=allow_nets), "runs.webhook_allow_nets")

    def check(self, url: str) -> httpx.URL:
        """As of :class:`Outbound`. Raises InvalidRequestError."""
        try:
            return super().check(url)
        except Blocked as blocked:
            raise InvalidRequestError(f"webhook: {blocked}") from blocked


def enqueue_webhook(
    connection: Connection, principal: Principal, run_id: str, url: str, *, undone: Mapping[str, Any] | None = None
) -> None:
    """Ask for the call, in the transaction that ends the run. ``undone``: the run as clients see it, if its row goes."""
    enqueue(
        connection, WEBHOOK, run_id, {"user_id": principal.user_id, "url": url} | ({"run": undone} if undone else {})
    )


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
            run = job.payload.get("run") or await self._describe(principal, job.key)
        except (InvalidRequestError, NotFoundError) as error:
            raise HopelessError(str(error)) from error
        body = orjson.dumps({**run, "webhook_sent_at": datetime.now(UTC).isoformat()}, option=orjson.OPT_NON_STR_KEYS)
        status = await self._post(url, job.key, body)
        if status in _TRY_AGAIN or status >= 500:
            raise OSError(f"{url.host} answered {status}.")
        if not 200 <= status < 300:
            raise HopelessError(f"{url.host} answered {status}.")

    async def _post(self, url: httpx.URL, run_id: str, body: bytes) -> int:
        headers = {"Content-Type": "application/json", "Idempotency-Key": run_id}
        try:
            async with (
                asyncio.timeout(2 * TIMEOUT),
                self._policy.stream("POST", url, content=body, headers=headers, timeout=TIMEOUT) as answer,
            ):
                return answer.status_code
        except Blocked as blocked:
            raise HopelessError(str(blocked)) from None
