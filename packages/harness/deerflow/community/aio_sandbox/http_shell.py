"""The HTTP contract of the "all-in-one" sandbox images, as far as it is needed: ready, and run a command."""

from __future__ import annotations

import secrets

import httpx

from deerflow.community.remote_http import ANSWER_GRACE, CONNECT_TIMEOUT, died, until_ready
from deerflow.sandbox.interface import SandboxRuntimeError


class HttpShell:
    """One sandbox at its address. To be used on one event loop."""

    def __init__(self, address: str, key: str) -> None:
        self.address, self.key = address, key
        headers = {"X-AIO-API-Key": key} if key else {}
        # Its address is one of the cluster's: no proxy of the environment's leads there.
        self._http = httpx.AsyncClient(base_url=address, headers=headers, timeout=30, trust_env=False)

    async def ready(self) -> None:
        """Wait until it answers. Raises SandboxRuntimeError after a minute."""
        await until_ready(self._http, "/v1/sandbox")

    async def run(self, command: str, *, timeout: float) -> str | None:
        """See ``RemoteShell``."""
        body = {"command": command, "id": f"deerflow-{secrets.token_hex(4)}", "async_mode": False}
        body["timeout"] = most = timeout + ANSWER_GRACE
        try:
            answer = await self._http.post(
                "/v1/shell/exec", json=body, timeout=httpx.Timeout(most, connect=CONNECT_TIMEOUT)
            )
            answer.raise_for_status()
            data = answer.json()
        except httpx.ReadTimeout:
            return None
        except httpx.TransportError as error:
            raise died(error) from error
        except (httpx.HTTPError, ValueError) as error:
            raise SandboxRuntimeError("The sandbox does not answer as it should.", reason=str(error)) from error
        if not isinstance(data, dict) or data.get("success") is False:
            raise SandboxRuntimeError("The sandbox refused.", reason=str(data)[:300])
        return str((data.get("data") or {}).get("output") or "")

    async def aclose(self) -> None:
        await self._http.aclose()
