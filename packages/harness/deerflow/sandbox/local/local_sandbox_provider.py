"""Hands out ``LocalSandbox``: commands of the agent run as the user who started the server, on the host."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from pathlib import Path
from threading import Lock

from deerflow.identity import check_id
from deerflow.sandbox.interface import Isolation, Policy, ProbeReport, Problem, Sandbox, SandboxProvider, sandbox_id
from deerflow.sandbox.isolation.plan import ensure_directories
from deerflow.sandbox.local.local_sandbox import NO_BASH, NO_COMMANDS, LocalSandbox

log = logging.getLogger(__name__)

WARNING = (
    "No isolation: the agent's commands run on the host as the server's user. They can read and change every file of "
    "that user, reach the network, and read-only directories are not protected from them."
)
_SHELL_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")


class LocalSandboxProvider(SandboxProvider):
    """One sandbox per thread, none of them confined. For machines without a better one, and only on request."""

    def __init__(self, *, allow_host_bash: bool = False) -> None:
        """``allow_host_bash``: let the agent run commands; without it only the file tools work."""
        self._allowed = allow_host_bash
        self._sandboxes: dict[str, LocalSandbox] = {}
        self._lock = Lock()
        if allow_host_bash:
            log.warning("%s Set sandbox.use to auto in config.yaml to isolate them.", WARNING)

    def probe(self) -> ProbeReport:
        bash = self._find_bash()
        if self._allowed and bash is None:
            problem = Problem("no-bash", "bash was not found on PATH.", "Install bash, or use a container sandbox.")
            return ProbeReport("local", False, self._isolation(bash), (problem,))
        return ProbeReport("local", True, self._isolation(bash))

    async def acquire(self, thread_id: str, *, user_id: str, policy: Policy) -> Sandbox:
        key = sandbox_id(check_id(thread_id, "thread id"), check_id(user_id, "user id"))
        known = self._sandboxes.get(key)
        if known is not None and known.policy == policy:
            return known
        return await asyncio.to_thread(self._acquire, key, policy)

    def get(self, sandbox_id: str) -> Sandbox | None:
        return self._sandboxes.get(sandbox_id)

    async def release(self, sandbox_id: str, *, destroy: bool = False) -> None:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        if destroy:
            self._sandboxes.pop(sandbox_id, None)
            await asyncio.to_thread(sandbox.end)
        else:
            await asyncio.to_thread(sandbox.rest)

    async def shutdown(self) -> None:
        with self._lock:
            sandboxes, self._sandboxes = list(self._sandboxes.values()), {}
        await asyncio.gather(*(asyncio.to_thread(sandbox.end) for sandbox in sandboxes))

    def _acquire(self, sandbox_id: str, policy: Policy) -> Sandbox:
        ensure_directories(policy)
        with self._lock:
            known = self._sandboxes.get(sandbox_id)
            if known is not None and known.policy == policy:
                return known
            if known is not None:
                # New settings: other mounts need another view of the files. Files stay where they are.
                known.end()
            bash, refusal = self._find_bash(), NO_BASH if self._allowed else NO_COMMANDS
            sandbox = LocalSandbox(sandbox_id, policy, self._isolation(bash), _private_directory(), bash, refusal)
            self._sandboxes[sandbox_id] = sandbox
            return sandbox

    def _find_bash(self) -> str | None:
        return shutil.which("bash") if self._allowed else None

    def _isolation(self, bash: str | None) -> Isolation:
        if bash is None:
            warning = NO_BASH if self._allowed else NO_COMMANDS
            return Isolation("none", real_paths=False, network="none", pid=False, warnings=(warning,))
        return Isolation(
            "none",
            real_paths=False,
            network="host",
            pid=False,
            limits=frozenset({"fsize", "data"}),
            warnings=(WARNING,),
        )


def _private_directory() -> Path:
    """A new directory whose path means the same quoted and unquoted."""
    parent = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="deerflow-", dir=parent if set(parent) <= _SHELL_SAFE else "/tmp"))
