"""A container of its own for each thread, by an engine on this machine: Docker or Podman."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from deerflow.community.aio_sandbox.container import LABEL_OF_DATA, SUPERVISOR, ContainerLauncher
from deerflow.community.aio_sandbox.engine import ContainerEngine, EngineError
from deerflow.sandbox.interface import WORKSPACE, Policy, ProbeReport, Problem
from deerflow.sandbox.isolated import IsolatedSandbox
from deerflow.sandbox.isolation.plan import Launcher, LaunchRequest
from deerflow.sandbox.isolation.probe import PROBE_UID, shorten, trial_policy
from deerflow.sandbox.isolation.seccomp import UnsupportedArchitectureError, build_filter
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Session

DEFAULT_IMAGE = "deerflow-sandbox"
DEFAULT_SOCKET = Path("/var/run/docker.sock")
ABANDONED = 120.0
"""Seconds after which a container that was made and not started is nobody's."""
TRIAL = f"""
import os, sys
open({SUPERVISOR!r}).close()
fit = sys.version_info[0] == 3 and os.path.exists("/bin/bash") and os.access({WORKSPACE!r}, os.W_OK)
sys.exit(sys.version_info[1] if fit else 1)
"""
OLDEST_MINOR = 9
UNFIT = 400
"""As an engine says that a request cannot be met."""
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
"""Names of engines for a machine, and the kernel's."""


class ContainerProvider(IsolatingProvider):
    """Each thread's commands in a container of its own, kept while it is used and among the latest ``replicas``."""

    name = "container"

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
    ) -> None:
        """
        Args:
            data_dir, max_sessions, idle_timeout: see ``IsolatingProvider``.
            image: has bash and Python 3.9 or newer.
            replicas: containers that are up before the longest unused one is ended for another; busy ones go beyond.
            container_prefix: what containers' names begin with.
            docker_socket: the engine's.
            host_paths: directories of ours, and where the engine's machine has them, if we are in a container ourselves.
        """
        # A container takes longer to wake than a namespace and costs next to nothing while it waits: it is not put to sleep.
        super().__init__(data_dir, max_sessions=max_sessions, sleep_after=0, idle_timeout=idle_timeout)
        self._image, self._prefix, self._replicas = image, container_prefix, replicas
        self._engine = ContainerEngine(docker_socket)
        self._host_paths = {here.resolve(): there for here, there in (host_paths or {}).items()}
        if self._host_paths:
            self.sockets_dir = data_dir
        # The engine does one thing after the other: more at once only make each of them late.
        self._starts = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def _open_session(self, launcher: Launcher, sandbox_id: str, request: LaunchRequest) -> Session:
        assert isinstance(launcher, ContainerLauncher)
        async with self._starts:
            return await launcher.open(request, sandbox_id)

    async def _make_room(self, newcomer: IsolatedSandbox) -> None:
        live = [one for one in list(self._sandboxes.values()) if one.live and one is not newcomer]
        idle = sorted((one for one in live if not one.busy), key=lambda one: one.last_used)
        for one in idle[: max(0, len(live) + self._starting + 1 - self._replicas)]:
            await one.retire()
        await super()._make_room(newcomer)

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        try:
            launcher = self._tried()
        except (EngineError, OSError, UnsupportedArchitectureError) as error:
            return ProbeReport(self.name, ok=False, problems=(self._problem(error),)), None
        return ProbeReport(self.name, ok=True, isolation=launcher.isolation(Policy())), launcher

    def _tried(self) -> ContainerLauncher:
        """The launcher, after a container of the image ran as a sandbox's will. Raises EngineError, OSError."""
        info = self._engine.info()
        machine = MACHINES.get(info.get("Architecture") or "", "")
        rootless = any("rootless" in option for option in info.get("SecurityOptions") or ())
        launcher = ContainerLauncher(
            self._engine, self._image, self._prefix, self.state_dir, self._host_paths, machine, rootless
        )
        build_filter(machine or None)
        for container, made in self._engine.never_started(f"{LABEL_OF_DATA}={self.state_dir}"):
            if time.time() - made > ABANDONED:
                self._engine.remove(container)
        uid = PROBE_UID if self.drops_root else None
        with trial_policy(self.state_dir, uid) as policy:
            minor = launcher.try_out(LaunchRequest(policy, uid), TRIAL)
        if minor < OLDEST_MINOR or minor >= 100:
            raise EngineError(f"a container of {self._image} cannot work: exit code {minor}", UNFIT)
        return replace(launcher, python=f"python3.{minor}")

    def _problem(self, error: Exception) -> Problem:
        status = error.status if isinstance(error, EngineError) else None
        said = shorten(str(error))
        if status == 0:
            return Problem(
                "engine-missing",
                f"No container engine answers at {self._engine.socket}: {said}.",
                "Start Docker or Podman, allow this user to use its socket, or name it: DOCKER_HOST=unix:///path.",
                {"socket": str(self._engine.socket), "said": said},
            )
        if status == 404:
            return Problem(
                "image-missing",
                f"The engine does not have the image {self._image}.",
                "Build ours with `make docker-sandbox`, or pull yours with `docker pull`, and name it in sandbox.image.",
                {"image": self._image},
            )
        if "does not exist" in said:
            return Problem(
                "host-path-unknown",
                f"The engine's machine does not have our directories where we have them: {said}.",
                "In a container, set DEER_FLOW_HOST_BASE_DIR to where the machine keeps the data directory.",
                {"said": said},
            )
        return Problem(
            "container-failed",
            f"A container cannot be a sandbox: {said}.",
            "The image needs bash and Python 3.9 or newer, and the engine a plain bind mount of the data directory.",
            {"said": said},
        )
