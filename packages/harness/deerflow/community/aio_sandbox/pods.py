"""A pod of its own for each thread, made by a provisioner: commands over HTTP, files on the volume that both mount."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from pathlib import Path

from deerflow.community.aio_sandbox.http_shell import HttpShell
from deerflow.community.remote_http import RemoteService
from deerflow.community.remote_sandbox import RemoteLauncher, RemoteProvider, RemoteSandbox, RemoteShell
from deerflow.config.paths import Paths
from deerflow.sandbox.interface import Policy, ProbeReport, Problem, SandboxRuntimeError
from deerflow.sandbox.isolation.plan import Launcher

log = logging.getLogger(__name__)

WARNING = "Network and limits are the cluster's to set; sandbox.network and sandbox.limits do not reach pods."


class PodProvider(RemoteProvider):
    """Pods by a provisioner's API: ``POST``, ``PUT``, ``DELETE /api/sandboxes``."""

    name = "remote"

    def __init__(
        self, data_dir: Path, url: str, token: str, *, max_sessions: int = 40, idle_timeout: float = 900
    ) -> None:
        """
        Args:
            data_dir, max_sessions, idle_timeout: see ``RemoteProvider``. The data directory is the root of a volume that pods mount.
            url, token: the provisioner's.
        """
        super().__init__(data_dir, max_sessions=max_sessions, idle_timeout=idle_timeout)
        self._paths = Paths(data_dir)
        self._owner = secrets.token_hex(8)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._service = RemoteService("provisioner", url.rstrip("/"), headers, complaint="detail")

    async def _ask_for(self, sandbox: RemoteSandbox, known: RemoteShell | None) -> RemoteShell:
        assert known is None or isinstance(known, HttpShell)
        user, _, thread = sandbox.id.partition(":")
        if known is None:
            # A pod mounts them by name: the cluster would make those that are missing, for its root alone.
            await asyncio.to_thread(self._paths.ensure_thread_dirs, thread, user)
            await asyncio.to_thread(self._paths.ensure_skills_dir, user)
        wanted = {"sandbox_id": pod_name(sandbox.id), "thread_id": thread, "user_id": user, "owner": self._owner}
        try:
            made = await self._service.ask("POST", "/api/sandboxes", wanted)
        except SandboxRuntimeError as error:
            if known is None:
                raise
            log.warning("The pod of %s is used on although it could not be claimed: %s", sandbox.id, error)
            return known
        shell = HttpShell(str(made["sandbox_url"]), str(made.get("api_key") or ""))
        if known is not None and (shell.address, shell.key) == (known.address, known.key):
            await shell.aclose()
            return known
        try:
            await shell.ready()
        except BaseException as error:
            await shell.aclose()
            if not isinstance(error, SandboxRuntimeError):
                raise
            raise SandboxRuntimeError(str(error), reason=await self._give_up(sandbox.id)) from error
        return shell

    async def renew(self, sandbox_id: str) -> None:
        await self._service.ask("PUT", f"/api/sandboxes/{pod_name(sandbox_id)}/lease?owner={self._owner}")

    async def remove(self, sandbox_id: str) -> None:
        await self._service.ask("DELETE", f"/api/sandboxes/{pod_name(sandbox_id)}?owner={self._owner}")

    async def _give_up(self, sandbox_id: str) -> str:
        """Remove a pod that does not answer, and return why it does not, if the provisioner knows."""
        try:
            found = await self._service.ask("GET", f"/api/sandboxes/{pod_name(sandbox_id)}")
            await self.remove(sandbox_id)
        except SandboxRuntimeError as error:
            return str(error)
        return f"Its pod is {found.get('status')}. {found.get('reason') or ''}".strip()

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        if said := self._service.probe("/health"):
            sentence = f"The provisioner at {self._service.url} does not answer: {said}."
            fix = "Start it, or correct sandbox.provisioner_url."
            problem = Problem("provisioner-missing", sentence, fix, {"url": self._service.url, "said": said})
            return ProbeReport(self.name, ok=False, problems=(problem,)), None
        launcher = RemoteLauncher(WARNING)
        return ProbeReport(self.name, ok=True, isolation=launcher.isolation(Policy())), launcher


def pod_name(sandbox_id: str) -> str:
    """The same for every gateway that asks for the thread's pod."""
    return hashlib.sha256(sandbox_id.encode()).hexdigest()[:16]
