"""Commands in a sandbox of OpenSandbox, by the session API of its daemon execd.

https://github.com/opensandbox-group/OpenSandbox/blob/main/specs/execd-api.yaml
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping

import httpx

from deerflow.community.remote_http import ANSWER_GRACE, CONNECT_TIMEOUT, died, until_ready
from deerflow.sandbox.interface import SandboxRuntimeError

PORT = 44772
LONGEST_ANSWER = 64 << 20
"""Characters of what a command's runner may print."""
ENDS = ("execution_complete", "error")


class ExecdShell:
    """One sandbox at its endpoint. To be used on one event loop."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self._http = httpx.AsyncClient(base_url=address, headers=headers, timeout=30, trust_env=False)

    async def ready(self) -> None:
        """Wait until it answers. Raises SandboxRuntimeError after a minute."""
        await until_ready(self._http, "/ping")

    async def run(self, command: str, *, timeout: float) -> str | None:
        """See ``RemoteShell``."""
        # A session of its own for each: what breaks it breaks nothing else, and commands run beside each other.
        session = ""
        try:
            async with asyncio.timeout(timeout + ANSWER_GRACE):
                made = (await self._http.post("/session", json={})).raise_for_status().json()
                session = str(made["session_id"])
                return await self._output(session, command, timeout + ANSWER_GRACE)
        except TimeoutError:
            return None
        except httpx.TransportError as error:
            raise died(error) from error
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise SandboxRuntimeError("The sandbox does not answer as it should.", reason=str(error)) from error
        finally:
            if session:
                with contextlib.suppress(httpx.HTTPError):  # it ends with its sandbox
                    await asyncio.shield(self._http.delete(f"/session/{session}"))

    async def _output(self, session: str, command: str, timeout: float) -> str:
        body = {"command": command, "timeout": round(timeout * 1000)}
        limits = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
        said, size = list[str](), 0
        async with self._http.stream("POST", f"/session/{session}/run", json=body, timeout=limits) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                # The specification calls them server-sent events; what is sent are lines of JSON, with or without that mark.
                text = line.removeprefix("data:").strip()
                if not text.startswith("{"):
                    continue
                event = json.loads(text)
                if event["type"] == "stdout":
                    said.append(str(event.get("text") or ""))
                    size += len(said[-1])
                if size > LONGEST_ANSWER:
                    raise ValueError("its answer is too long")
                if event["type"] in ENDS:
                    break
        return "".join(said)

    async def aclose(self) -> None:
        await self._http.aclose()
