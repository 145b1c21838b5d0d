"""Parts of the wire that remote sandboxes share: the service that gives them, and waiting for one of them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from deerflow.sandbox.interface import SandboxRuntimeError
from deerflow.sandbox.isolation.probe import shorten
from deerflow.sandbox.session import SessionDiedError

SERVICE_TIMEOUT = 30.0
PROBE_TIMEOUT = 10.0
READY_TIMEOUT = 60.0
READY_INTERVAL = 1.0
CONNECT_TIMEOUT = 10.0
ANSWER_GRACE = 15.0
"""Seconds beyond a command's own that its answer may take."""


class RemoteService:
    """The API of a service that gives sandboxes."""

    def __init__(self, name: str, url: str, headers: dict[str, str], *, complaint: str) -> None:
        """
        Args:
            name: what messages call it.
            url: what its paths are appended to.
            headers: of each request.
            complaint: the field of a refusal that says why.
        """
        self.name, self.url = name, url
        self._headers, self._complaint = headers, complaint

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer, empty if it has no body or there is nothing to delete. Raises SandboxRuntimeError, with the ``status``."""
        try:
            async with httpx.AsyncClient(headers=self._headers, timeout=SERVICE_TIMEOUT) as http:
                answer = await http.request(method, f"{self.url}{path}", json=body)
            if answer.status_code == 404 and method == "DELETE":
                return {}
            if not answer.is_success:
                raise ServiceRefusal(self.name, self._reason(answer), answer.status_code)
            return answer.json() if answer.content else {}
        except (httpx.HTTPError, ValueError) as error:
            raise ServiceRefusal(self.name, shorten(str(error)), 0) from error

    def probe(self, path: str) -> str:
        """Return why it does not serve us, or "". Blocks."""
        try:
            answer = httpx.get(f"{self.url}{path}", headers=self._headers, timeout=PROBE_TIMEOUT)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return shorten(str(error))
        return "" if answer.is_success else self._reason(answer)

    def _reason(self, answer: httpx.Response) -> str:
        try:
            return shorten(str(answer.json()[self._complaint]))
        except (ValueError, KeyError, TypeError):
            return f"{answer.status_code} {answer.reason_phrase}"


class ServiceRefusal(SandboxRuntimeError):
    """A service does not do as it was asked. ``status`` is that of HTTP, 0 if it did not answer."""

    def __init__(self, name: str, reason: str, status: int) -> None:
        super().__init__(f"The {name} does not give a sandbox.", reason=reason)
        self.status = status


async def until_ready(http: httpx.AsyncClient, path: str) -> None:
    """Wait until a sandbox answers. Raises SandboxRuntimeError after a minute."""
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            while not await _answers(http, path):  # noqa: ASYNC110 - it can only be asked
                await asyncio.sleep(READY_INTERVAL)
    except TimeoutError:
        raise SandboxRuntimeError(f"The sandbox did not answer within {READY_TIMEOUT:.0f} s.") from None


async def _answers(http: httpx.AsyncClient, path: str) -> bool:
    try:
        return (await http.get(path, timeout=5)).is_success
    except httpx.TransportError:
        return False


def died(error: Exception) -> SessionDiedError:
    """Return what a command ends with whose sandbox is gone."""
    return SessionDiedError(
        "The sandbox ended unexpectedly. The next command starts a new one; files are kept.", reason=str(error)
    )
