"""Commands on the host itself, without any isolation: an explicit choice for machines that offer none."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deerflow.sandbox.interface import Isolation, Policy, ProbeReport, Problem
from deerflow.sandbox.isolation.host_paths import HostPathsSandbox, host_start_message
from deerflow.sandbox.isolation.plan import PYTHON_FLAGS, SUPERVISOR_SOURCE, Launcher, LaunchRequest
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Launch

log = logging.getLogger(__name__)

FURTHER_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/opt/homebrew/bin"
WARNING = (
    "No isolation: the agent's commands run on the host as the server's user. They can read and change every file of "
    "that user, reach the network, and read-only directories are not protected from them."
)
NO_COMMANDS = Problem(
    "host-bash-off",
    "Commands are off: this sandbox would run them on the host without isolation.",
    "Set sandbox.allow_host_bash to true in config.yaml if you trust everything the agent reads.",
)
NO_BASH = Problem("no-bash", "bash was not found on PATH.", "Install bash, or use a container sandbox.")


@dataclass(frozen=True, slots=True)
class HostLauncher:
    """Starts the supervisor as an ordinary process of this user."""

    bash: str

    def isolation(self, policy: Policy) -> Isolation:
        limits = frozenset({"fsize", "data", "memory-watch", "disk-watch", "process-watch"})
        return Isolation("none", real_paths=False, network="host", pid=False, limits=limits, warnings=(WARNING,))

    def prepare(self, request: LaunchRequest, control: int) -> Launch:
        start = host_start_message(request, count_processes=False)
        start["bash"] = self.bash
        start["environment"]["PATH"] += f":{FURTHER_PATH}"
        argv = [sys.executable, *PYTHON_FLAGS, str(SUPERVISOR_SOURCE), str(control)]
        return Launch(argv, [], start, pid_namespace=False)

    def prepare_program(self, request: LaunchRequest, argv: Sequence[str]) -> Launch:
        return Launch([*argv], [], {}, pid_namespace=False)


class LocalSandboxProvider(IsolatingProvider):
    """One sandbox per thread, none of them confined. For machines without a better one, and only on request."""

    name = "local"
    sandbox_class = HostPathsSandbox

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        max_sessions: int = 40,
        idle_timeout: float = 900,
        allow_host_bash: bool = False,
    ) -> None:
        """
        Args:
            data_dir, max_sessions, idle_timeout: see ``IsolatingProvider``.
            allow_host_bash: let the agent run commands; without it only the file tools work.
        """
        directory = data_dir or Path(tempfile.gettempdir())
        super().__init__(directory, max_sessions=max_sessions, idle_timeout=idle_timeout)
        self._allowed = allow_host_bash
        self._problem = NO_BASH if allow_host_bash else NO_COMMANDS
        self._no_commands = f"{self._problem.sentence} {self._problem.fix}"
        if allow_host_bash:
            log.warning("%s Set sandbox.use to auto in config.yaml to isolate them.", WARNING)

    @property
    def drops_root(self) -> bool:
        return False

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        bash = shutil.which("bash")
        if self._allowed and bash:
            launcher = HostLauncher(bash)
            return ProbeReport(self.name, True, launcher.isolation(Policy())), launcher
        return ProbeReport(self.name, not self._allowed, self._isolation(None, Policy()), (self._problem,)), None
