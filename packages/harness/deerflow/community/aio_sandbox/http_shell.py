"""The HTTP contract of the "all-in-one" sandbox images, as far as it is needed: ready, run a command, write a file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx

from deerflow.sandbox.interface import SandboxRuntimeError
from deerflow.sandbox.session import SessionDiedError

READY_TIMEOUT = 60.0
READY_INTERVAL = 1.0
CONNECT_TIMEOUT = 10.0
ANSWER_GRACE = 15.0
"""Seconds beyond a command's own that its answer may take."""


@dataclass(frozen=True, slots=True)
class ShellAnswer:
    """The end of one command."""

    output: str
    exit_code: int | None
    completed: bool
    """False: it took too long, and may run on."""


class HttpShell:
    """One sandbox at its address. To be used on one event loop."""

    def __init__(self, address: str, key: str) -> None:
        self.address, self.key = address, key
        headers = {"X-AIO-API-Key": key} if key else {}
        # Its address is one of the cluster's: no proxy of the environment's leads there.
        self._http = httpx.AsyncClient(base_url=address, headers=headers, timeout=30, trust_env=False)

    async def ready(self) -> None:
        """Wait until it answers. Raises SandboxRuntimeError after a minute."""
        try:
            async with asyncio.timeout(READY_TIMEOUT):
                while not await self._answers():  # noqa: ASYNC110 - it can only be asked
                    await asyncio.sleep(READY_INTERVAL)
        except TimeoutError:
            raise SandboxRuntimeError(f"The sandbox did not answer within {READY_TIMEOUT:.0f} s.") from None

    async def run(self, command: str, *, session: str, timeout: float) -> ShellAnswer:
        """Run a command in a shell of the sandbox's. Raises SandboxRuntimeError; SessionDiedError if it is gone."""
        body = {"command": command, "id": session, "async_mode": False, "timeout": timeout}
        try:
            data = await self._post("/v1/shell/exec", body, timeout + ANSWER_GRACE)
        except httpx.ReadTimeout:
            return ShellAnswer("", None, completed=False)
        code = data.get("exit_code")
        completed = data.get("status", "completed") == "completed" and type(code) is int
        return ShellAnswer(str(data.get("output") or ""), code if completed else None, completed)

    async def write(self, path: str, content: str) -> None:
        """Write a text file of the sandbox's own. Raises SandboxRuntimeError."""
        await self._post("/v1/file/write", {"file": path, "content": content}, 30)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _answers(self) -> bool:
        try:
            return (await self._http.get("/v1/sandbox", timeout=5)).is_success
        except httpx.TransportError:
            return False

    async def _post(self, path: str, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        try:
            answer = await self._http.post(path, json=body, timeout=httpx.Timeout(timeout, connect=CONNECT_TIMEOUT))
            answer.raise_for_status()
            data = answer.json()
        except httpx.ReadTimeout:
            raise
        except httpx.TransportError as error:
            raise SessionDiedError(
                "The sandbox ended unexpectedly. The next command starts a new one; files are kept.", reason=str(error)
            ) from error
        except (httpx.HTTPError, ValueError) as error:
            raise SandboxRuntimeError("The sandbox does not answer as it should.", reason=str(error)) from error
        if not isinstance(data, dict) or data.get("success") is False:
            raise SandboxRuntimeError("The sandbox refused.", reason=str(data)[:300])
        return data.get("data") or {}
