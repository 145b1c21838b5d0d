"""``deerflow.community.opensandbox:OpenSandboxProvider``: a sandbox of OpenSandbox for each thread, with a closed network.

https://github.com/opensandbox-group/OpenSandbox/blob/main/specs/sandbox-lifecycle.yml
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deerflow.community.opensandbox.execd import PORT, ExecdShell
from deerflow.community.remote_http import READY_TIMEOUT, RemoteService, ServiceRefusal
from deerflow.community.remote_sandbox import LEASE, RemoteLauncher, RemoteProvider, RemoteSandbox, RemoteShell
from deerflow.config.paths import on_host
from deerflow.sandbox.interface import Mount, Policy, ProbeReport, Problem, SandboxRuntimeError
from deerflow.sandbox.isolation.plan import HOME, Launcher, ensure_directories, thread_mounts

log = logging.getLogger(__name__)

DEFAULT_IMAGE = "deerflow-sandbox"
CLOSED = {"defaultAction": "deny", "egress": []}
"""Its network policy. Without one, or with an empty one, everything is allowed."""
ENTRYPOINT = ("tail", "-f", "/dev/null")
CPU = "1"
POLL_INTERVAL = 0.5
RUNNING, ENDED = "Running", ("Stopping", "Terminated", "Failed")
WARNING = (
    "Confined by the OpenSandbox service: a closed network is asked for, and whether it is closed is the service's to enforce; "
    "sandbox.network does not open it."
)


class OpenSandboxProvider(RemoteProvider):
    """Sandboxes by the lifecycle API. Each belongs to the process that has asked for it, and ends when that is gone for ``LEASE``."""

    name = "opensandbox"

    def __init__(
        self,
        data_dir: Path,
        *,
        max_sessions: int = 40,
        idle_timeout: float = 900,
        image: str = DEFAULT_IMAGE,
        host_paths: Mapping[Path, Path] | None = None,
        opensandbox_url: str = "",
        opensandbox_key: str = "",
        opensandbox_volume: str = "",
    ) -> None:
        """
        Args:
            data_dir, max_sessions, idle_timeout: see ``RemoteProvider``.
            image: has bash and Python 3.9 or newer, and a user that may write the thread's directories.
            host_paths: directories of ours, and where the service's machine has them.
            opensandbox_url, opensandbox_key: the service's address, and the key that it asks for.
            opensandbox_volume: the claim or named volume that is our data directory; without, directories are mounted by their paths.
        """
        super().__init__(data_dir, max_sessions=max_sessions, idle_timeout=idle_timeout)
        self._data_dir, self._image, self._volume = data_dir, image, opensandbox_volume
        self._host_paths = {here.resolve(): there for here, there in (host_paths or {}).items()}
        url = f"{opensandbox_url.rstrip('/').removesuffix('/v1')}/v1"
        headers = {"OPEN-SANDBOX-API-KEY": opensandbox_key} if opensandbox_key else {}
        self._service = RemoteService("OpenSandbox service", url, headers, complaint="message")
        self._ids: dict[str, str] = {}
        """Their sandboxes by ours."""

    async def _ask_for(self, sandbox: RemoteSandbox, known: RemoteShell | None) -> RemoteShell:
        if known is not None:
            try:
                await self.renew(sandbox.id)
                return known
            except ServiceRefusal as refusal:
                if refusal.status != 404:
                    return known  # it is used on while the service is away
        await self._give_up(sandbox.id, None)  # one that did not answer any more
        await asyncio.to_thread(ensure_directories, sandbox.policy)
        made = await self._service.ask("POST", "/sandboxes", await asyncio.to_thread(self.body, sandbox.policy))
        self._ids[sandbox.id] = made["id"]
        shell: ExecdShell | None = None
        try:
            await self._until_running(made)
            endpoint = await self._service.ask("GET", f"/sandboxes/{made['id']}/endpoints/{PORT}")
            shell = ExecdShell(self._address(endpoint["endpoint"]), endpoint.get("headers") or {})
            await shell.ready()
            return shell
        except BaseException:
            await asyncio.shield(self._give_up(sandbox.id, shell))
            raise

    async def renew(self, sandbox_id: str) -> None:
        until = datetime.now(UTC) + timedelta(seconds=LEASE)
        body = {"expiresAt": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
        await self._service.ask("POST", f"/sandboxes/{self._ids[sandbox_id]}/renew-expiration", body)

    async def remove(self, sandbox_id: str) -> None:
        if (theirs := self._ids.pop(sandbox_id, None)) is not None:
            await self._service.ask("DELETE", f"/sandboxes/{theirs}")

    def body(self, policy: Policy) -> dict[str, Any]:
        """Return the sandbox as the service is asked to make it. Blocks."""
        limits = {"cpu": CPU} | ({"memory": f"{policy.limits.memory_mb}Mi"} if policy.limits.memory_mb else {})
        mounts = [one for one in thread_mounts(policy) if one.host.is_dir()]
        return {
            "image": {"uri": self._image},
            "entrypoint": list(ENTRYPOINT),
            "timeout": LEASE,
            "resourceLimits": limits,
            "env": {"HOME": HOME, **policy.environment},
            "metadata": {"app": "deerflow"},
            "networkPolicy": CLOSED,
            "volumes": [self._mounted(number, mount) for number, mount in enumerate(mounts)],
        }

    def _mounted(self, number: int, mount: Mount) -> dict[str, Any]:
        place = mount.host.resolve()
        volume: dict[str, Any] = {"name": f"m{number}", "mountPath": mount.path, "readOnly": mount.read_only}
        root = self._data_dir.resolve()
        if self._volume and place.is_relative_to(root):
            claim = {"claimName": self._volume, "createIfNotExists": False}
            return volume | {"pvc": claim, "subPath": str(place.relative_to(root))}
        return volume | {"host": {"path": str(on_host(place, self._host_paths))}}

    async def _until_running(self, found: dict[str, Any]) -> None:
        """Wait for a sandbox that was asked for. Raises SandboxRuntimeError."""
        try:
            async with asyncio.timeout(READY_TIMEOUT):
                while (status := found["status"])["state"] != RUNNING:
                    if status["state"] in ENDED:
                        said = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
                        raise SandboxRuntimeError(f"The OpenSandbox service cannot start the sandbox. {said}".strip())
                    await asyncio.sleep(POLL_INTERVAL)
                    found = await self._service.ask("GET", f"/sandboxes/{found['id']}")
        except TimeoutError:
            raise SandboxRuntimeError(f"The sandbox did not start within {READY_TIMEOUT:.0f} s.") from None

    def _address(self, endpoint: str) -> str:
        return endpoint if "://" in endpoint else f"{urlsplit(self._service.url).scheme}://{endpoint}"

    async def _give_up(self, sandbox_id: str, shell: ExecdShell | None) -> None:
        if shell is not None:
            await shell.aclose()
        try:
            await self.remove(sandbox_id)
        except SandboxRuntimeError as error:
            log.warning("A sandbox that could not be used is left to end by itself: %s", error)

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        if said := self._service.probe("/sandboxes?pageSize=1"):
            sentence = f"The OpenSandbox service at {self._service.url} does not serve us: {said}."
            fix = "Start it, or correct sandbox.opensandbox_url and sandbox.opensandbox_key."
            problem = Problem("opensandbox-missing", sentence, fix, {"url": self._service.url, "said": said})
            return ProbeReport(self.name, ok=False, problems=(problem,)), None
        launcher = RemoteLauncher(WARNING)
        return ProbeReport(self.name, ok=True, isolation=launcher.isolation(Policy())), launcher
