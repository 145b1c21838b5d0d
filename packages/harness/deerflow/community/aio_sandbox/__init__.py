"""``deerflow.community.aio_sandbox:AioSandboxProvider``: containers by an engine on this machine, or pods by a provisioner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deerflow.community.aio_sandbox.containers import DEFAULT_IMAGE, DEFAULT_SOCKET, ContainerProvider
from deerflow.community.aio_sandbox.pods import PodProvider
from deerflow.sandbox.interface import Policy, ProbeReport, Sandbox, SandboxProvider


class AioSandboxProvider(SandboxProvider):
    """Gives each thread a container, or with a ``provisioner_url`` a pod."""

    def __init__(
        self,
        data_dir: Path,
        *,
        max_sessions: int = 40,
        idle_timeout: float = 900,
        image: str = DEFAULT_IMAGE,
        replicas: int = 3,
        container_prefix: str = "deer-flow-sandbox",
        docker_socket: Path = DEFAULT_SOCKET,
        host_paths: Mapping[Path, Path] | None = None,
        provisioner_url: str = "",
        provisioner_token: str = "",
    ) -> None:
        """
        Args:
            provisioner_url, provisioner_token: of the service that makes pods; see ``PodProvider``. Without: ``ContainerProvider``.
        """
        self.backend: ContainerProvider | PodProvider
        if provisioner_url:
            self.backend = PodProvider(
                data_dir, provisioner_url, provisioner_token, max_sessions=max_sessions, idle_timeout=idle_timeout
            )
        else:
            self.backend = ContainerProvider(
                data_dir,
                max_sessions=max_sessions,
                idle_timeout=idle_timeout,
                image=image,
                replicas=replicas,
                container_prefix=container_prefix,
                docker_socket=docker_socket,
                host_paths=host_paths,
            )

    @property
    def alive(self) -> int:
        return self.backend.alive

    def probe(self) -> ProbeReport:
        return self.backend.probe()

    async def acquire(self, thread_id: str, *, user_id: str, policy: Policy) -> Sandbox:
        return await self.backend.acquire(thread_id, user_id=user_id, policy=policy)

    def get(self, sandbox_id: str) -> Sandbox | None:
        return self.backend.get(sandbox_id)

    async def release(self, sandbox_id: str, *, destroy: bool = False) -> None:
        await self.backend.release(sandbox_id, destroy=destroy)

    async def shutdown(self) -> None:
        await self.backend.shutdown()
