"""The provider for machines that refuse namespaces, such as containers with Docker's default profile.

Landlock confines files (and TCP, signals), a system-call filter the rest. What it cannot give: virtual paths, a pid
namespace, a network of one's own. So commands see host paths, which are replaced in their text, and no network.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deerflow.sandbox.interface import Isolation, Policy, ProbeReport, Problem
from deerflow.sandbox.isolation.host_paths import HostPathsSandbox, host_start_message
from deerflow.sandbox.isolation.plan import (
    SUPERVISOR_SOURCE,
    SYSTEM_DIRECTORIES,
    Launcher,
    LaunchRequest,
    curated_entries,
    launcher_command,
    refuse_root,
    writable_directories,
)
from deerflow.sandbox.isolation.probe import NOT_LINUX, PROBE_UID, classify, run_trial, trial_policy
from deerflow.sandbox.isolation.seccomp import AF_UNIX, NAMESPACED_FAMILIES, UnsupportedArchitectureError, build_filter
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Launch
from deerflow.sandbox.supervisor import memory_file

ABI_FOR_OWN_UID = 3
"""With a uid of its own the sandbox needs Landlock for files only; version 3 covers truncation."""
ABI_FOR_SHARED_UID = 6
"""Under the user's own uid commands could signal the user's processes before version 6 (Linux 6.12)."""
HOST_FILES = ("passwd", "group", "hosts", "nsswitch.conf", "resolv.conf")
"""Of /etc: here nothing can stand in for them."""
CREATE_RULESET, VERSION_FLAG = 444, 1

WARNINGS = (
    "Commands see host paths: virtual paths are replaced in a command's text, not in files it writes.",
    "Names and command lines of other processes are visible in the sandbox.",
    "Owner, mode and times of files outside may be changed where the sandbox's user owns them.",
)


WATCHED_PROCESSES = (
    "The kernel does not limit the number of processes: a command that starts too many is ended within about a second."
)


@dataclass(frozen=True, slots=True)
class LandlockLauncher:
    """Starts the supervisor below a Landlock domain."""

    state_dir: Path
    etc_extra: tuple[str, ...] = ()
    own_uid: bool = False

    @property
    def least_abi(self) -> int:
        return ABI_FOR_OWN_UID if self.own_uid else ABI_FOR_SHARED_UID

    def isolation(self, policy: Policy) -> Isolation:
        warnings: list[str] = [*WARNINGS]
        network = "host" if policy.network.mode == "host" else "none"
        if policy.network.mode != network:
            warnings.append(f"Network mode {policy.network.mode!r} needs namespaces: commands have no network.")
        if network == "host":
            warnings.append("The sandbox shares the host's network: local services and cloud metadata are reachable.")
        limits = {"fsize", "data", "memory-watch", "disk-watch"} | {"nproc" if self.own_uid else "process-watch"}
        if not self.own_uid:
            warnings.append(WATCHED_PROCESSES)
        return Isolation("landlock", False, network, pid=False, limits=frozenset(limits), warnings=tuple(warnings))

    def prepare(self, request: LaunchRequest, control: int) -> Launch:
        argv, descriptors = self.arguments(request, control=control)
        uid = None if request.for_one_command else request.uid
        start = host_start_message(request, count_processes=self.own_uid)
        return Launch(argv, descriptors, start, pid_namespace=False, uid=uid)

    def prepare_program(self, request: LaunchRequest, argv: Sequence[str]) -> Launch:
        return Launch(*self.arguments(request, command=argv), {}, pid_namespace=False, uid=request.uid)

    def arguments(
        self, request: LaunchRequest, *, control: int | None = None, command: Sequence[str] = ()
    ) -> tuple[list[str], list[int]]:
        """What to execute for the supervisor, or ``command``, to run confined; and the descriptors that it needs."""
        refuse_root(request)
        policy = request.policy
        open_network = policy.network.mode == "host"
        families = NAMESPACED_FAMILIES if open_network else ()
        descriptor = memory_file(build_filter(socket_families=families, pair_families=(AF_UNIX,), namespaces=False))
        config = json.dumps(
            {
                "writable": [os.path.realpath(path) for path in writable_directories(policy)],
                "readable": [*self._readable(policy)],
                "least_abi": self.least_abi,
                "open_network": open_network,
                "filter": descriptor,
                "supervisor": str(SUPERVISOR_SOURCE),
                "control": control,
                "command": list(command),
            }
        )
        return launcher_command("landlock_launcher.py", [config], request.uid), [descriptor]

    def _readable(self, policy: Policy) -> list[str]:
        system = ["/usr", *(f"/{name}" for name in SYSTEM_DIRECTORIES), "/proc"]
        etc = map(str, curated_entries(Path("/etc"), HOST_FILES))
        mounts = [str(mount.host) for mount in policy.mounts if mount.read_only]
        tools = [str(policy.tools_dir)] if policy.tools_dir is not None else []
        return [*system, *etc, *filter(_is_of_the_system, self.etc_extra), *mounts, *tools]


class LandlockSandboxProvider(IsolatingProvider):
    """Landlock and a system-call filter, without namespaces."""

    name = "landlock"
    sandbox_class = HostPathsSandbox

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        if sys.platform != "linux":
            return ProbeReport(self.name, ok=False, problems=(NOT_LINUX,)), None
        launcher = LandlockLauncher(self.state_dir, self.etc_extra, own_uid=self.drops_root)
        problem = _too_old(launcher.least_abi) or _try(launcher, PROBE_UID if self.drops_root else None)
        if problem is not None:
            return ProbeReport(self.name, ok=False, problems=(problem,)), None
        return ProbeReport(self.name, ok=True, isolation=launcher.isolation(Policy())), launcher


def _is_of_the_system(path: str) -> bool:
    """Return whether a path of /etc does not lead by a link to what only the host may read."""
    return os.path.realpath(path).startswith(("/etc/", "/usr/"))


def landlock_abi() -> int:
    """The kernel's Landlock version; 0 if it has none or refuses the question."""
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, 0, VERSION_FLAG))


def _too_old(least: int) -> Problem | None:
    version = landlock_abi()
    if version >= least:
        return None
    if version == 0:
        return Problem("landlock-missing", "This kernel has no Landlock.", "Use Linux 6.12 or newer with lsm=landlock.")
    sentence = f"This kernel has Landlock {version}; {least} is needed to confine signals under your own user."
    return Problem(
        "landlock-too-old",
        sentence,
        "Use Linux 6.12 or newer, or run the gateway as root, which gives every thread a user of its own.",
        {"version": str(version), "least": str(least)},
    )


def _try(launcher: LandlockLauncher, uid: int | None) -> Problem | None:
    """None if a confined shell could write where it may and nowhere else."""
    try:
        with trial_policy(launcher.state_dir, uid) as policy:
            workspace = policy.mounts[0].host
            script = f"echo ok >'{workspace}/probe' && cat '{workspace}/probe'; echo no 2>/dev/null >'{workspace.parent}/probe'"
            argv, descriptors = launcher.arguments(LaunchRequest(policy, uid), command=("/bin/sh", "-c", script))
            run = run_trial(argv, descriptors)
            escaped = (workspace.parent / "probe").exists()
    except (OSError, subprocess.SubprocessError, UnsupportedArchitectureError) as error:
        return classify(str(error)).problem()
    if run.stdout == "ok\n" and not escaped:
        return None
    return classify(run.stderr).problem(run.stderr)
