"""Providers that give every thread Linux namespaces of its own, started by bubblewrap or by our own launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from deerflow.sandbox.interface import Isolation, Policy, ProbeReport, Problem, SandboxError, SandboxRuntimeError
from deerflow.sandbox.isolation.plan import (
    HOME,
    PYTHON_FLAGS,
    SOCKET_DIRECTORY,
    SUPERVISOR_SOURCE,
    SYSTEM_DIRECTORIES,
    Launcher,
    LaunchRequest,
    ensure_etc_tree,
    launcher_command,
    refuse_root,
    start_message,
    thread_mounts,
)
from deerflow.sandbox.isolation.probe import (
    MAX_TRIALS,
    NO_BWRAP,
    NOT_LINUX,
    PROBE_UID,
    UNKNOWN,
    classify,
    run_trial,
    trial_policy,
)
from deerflow.sandbox.isolation.seccomp import UnsupportedArchitectureError, build_filter
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Launch
from deerflow.sandbox.supervisor import memory_file

RUN = "/run"
SUPERVISOR = "/run/agent.pyc"
SANDBOX_ID = 1000
"""uid and gid inside."""
SHM_BYTES = 64 << 20
RUN_BYTES = 1 << 20
SCRATCH_BYTES = 256 << 20
"""Size of /tmp and of the home directory where the policy gives no directory on disk for them."""
HOST_NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")

SYSTEM_PYTHON = "/usr/bin/python3"
# Bytecode starts faster than source, and leaves 2 MB less behind in every sandbox.
COMPILE = """
import sys
assert sys.version_info >= (3, 9)
import importlib.util, marshal
code = compile(sys.stdin.buffer.read(), "agent.py", "exec", dont_inherit=True, optimize=2)
sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An executable, the supervisor in its bytecode, and a directory outside of /usr that must be bound with it."""

    executable: str
    supervisor: bytes
    prefix: str | None = None


def find_interpreter(system_python: str = SYSTEM_PYTHON) -> Interpreter:
    """The interpreter to use. Blocks while it compiles the supervisor.

    A Python built for one prefix finds its libraries only there, so ours is bound at the path it has on the host.
    """
    with suppress(OSError, subprocess.SubprocessError):
        return Interpreter(system_python, _compiled_by(system_python))
    executable = os.path.realpath(sys.executable)
    prefix = None if executable.startswith("/usr/") else os.path.realpath(sys.base_prefix)
    return Interpreter(executable, _compiled_by(executable), prefix)


def _compiled_by(python: str) -> bytes:
    run = subprocess.run(
        [python, "-I", "-S", "-B", "-c", COMPILE], input=SUPERVISOR_SOURCE.read_bytes(), capture_output=True,
        timeout=20, env={}, check=True,
    )  # fmt: skip
    return run.stdout


def tool_image_prefix(tools: Path) -> str | None:
    """The directory of the Python that a tool image was made with, if it lies outside of /usr and the image."""
    try:
        lines = (tools / "pyvenv.cfg").read_text().splitlines()
    except OSError:
        return None
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    home = values.get("home")
    prefix = Path(home).resolve().parent if home else Path("/")
    if prefix == Path("/") or prefix.is_relative_to("/usr") or prefix.is_relative_to(tools):
        return None
    return str(prefix)


STAGE_CANDIDATES = ("/mnt", "/media", "/srv", "/opt")
"""Any directory will do that exists, is not needed by the launcher and may be covered in a private mount namespace."""


@dataclass(frozen=True, slots=True)
class KernelFeatures:
    """What this machine grants; found by the probe."""

    fresh_proc: bool = True
    disable_userns: bool = True
    bind_fd: bool = True
    stage: bool = False
    """As root: bind sources are staged in a private mount namespace before the uid is dropped."""


Bind = tuple[str, str, str]
"""The launcher's option for one bind mount, its source and its target.

The source is a path, or a descriptor opened with O_PATH, which no rename can redirect.
"""


def build_arguments(
    command: Sequence[str],
    etc: Bind,
    binds: Sequence[Bind] = (),
    *,
    supervisor: int,
    seccomp: int,
    features: KernelFeatures,
    share_network: bool,
) -> list[str]:
    """The launcher's arguments without the launcher itself: ``bwrap`` and ``userns_launcher`` take the same ones.

    Args:
        supervisor, seccomp: descriptors of its bytecode, and of the filter.
    """
    arguments = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not share_network:
        arguments += ["--unshare-net"]
    if features.disable_userns:
        arguments += ["--disable-userns"]
    arguments += ["--uid", str(SANDBOX_ID), "--gid", str(SANDBOX_ID), "--hostname", "sandbox", "--cap-drop", "ALL"]
    # The supervisor is pid 1: nothing inside can signal it, and /proc/1/cmdline shows no host path.
    arguments += ["--die-with-parent", "--new-session", "--clearenv", "--as-pid-1"]
    arguments += _system(etc, share_network)
    arguments += ["--proc", "/proc"] if features.fresh_proc else ["--ro-bind", "/proc", "/proc"]
    arguments += ["--dev", "/dev", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"]
    targets = {target for _, _, target in binds}
    if "/tmp" not in targets:
        arguments += ["--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"]
    if HOME not in targets:
        arguments += ["--perms", "0700", "--size", str(SCRATCH_BYTES), "--tmpfs", HOME]
    arguments += ["--size", str(RUN_BYTES), "--tmpfs", RUN]
    # Outer directories first, so that a mount below another one is not covered by it.
    for bind in sorted(binds, key=lambda bind: bind[2].count("/")):
        arguments += bind
    arguments += ["--perms", "0444", "--ro-bind-data", str(supervisor), SUPERVISOR]
    # What the launcher itself created is tmpfs of half the RAM each; nobody shall fill it.
    for created in ("/dev", RUN, "/"):
        arguments += ["--remount-ro", created]
    return [*arguments, "--chdir", "/", "--seccomp", str(seccomp), "--", *command]


def _system(etc: Bind, share_network: bool) -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM_DIRECTORIES:
        path = Path("/") / name
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()).lstrip("/"), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += etc
    if share_network:
        for file in HOST_NETWORK_FILES:
            resolved = Path(file).resolve()
            if resolved.is_file():
                arguments += ["--ro-bind", str(resolved), file]
    return arguments


@dataclass(slots=True)
class _Sources:
    """Turns host directories into bind sources: descriptors, or names below the stage that root builds."""

    bind_fd: bool
    stage: str
    staged: list[str] = field(default_factory=list[str])
    descriptors: list[int] = field(default_factory=list[int])

    def bind(self, host: Path | str, target: str, *, read_only: bool = True) -> Bind:
        option, path = "--ro-bind" if read_only else "--bind", os.path.realpath(host)
        if self.stage:
            self.staged.append(path)
            return option, f"{self.stage}/{len(self.staged) - 1}", target
        if self.bind_fd:
            descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            self.descriptors.append(descriptor)
            return f"{option}-fd", str(descriptor), target
        return option, path, target

    def in_memory(self, content: bytes) -> int:
        self.descriptors.append(os.open(f"/proc/self/fd/{_kept(content)}", os.O_RDONLY | os.O_CLOEXEC))
        return self.descriptors[-1]

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


@cache
def _kept(content: bytes) -> int:
    """A file in memory, written once a process: the supervisor has 60 kB."""
    return memory_file(content)


@dataclass(frozen=True, slots=True)
class NamespaceLauncher:
    """Starts sandboxes by the namespace recipe. ``program`` is bwrap's path, or None for our own launcher."""

    program: str | None
    state_dir: Path
    interpreter: Interpreter
    features: KernelFeatures = field(default_factory=KernelFeatures)
    etc_extra: tuple[str, ...] = ()

    def isolation(self, policy: Policy) -> Isolation:
        warnings: list[str] = []
        if not self.features.fresh_proc:
            warnings.append("Names and command lines of processes outside are visible in the sandbox.")
        if policy.network.mode == "host":
            warnings.append("The sandbox shares the host's network: local services and cloud metadata are reachable.")
        return Isolation(
            level="namespaces" if self.features.fresh_proc else "namespaces-no-proc",
            real_paths=True,
            network=policy.network.mode,
            pid=True,
            limits=frozenset({"nproc", "fsize", "data", "memory-watch", "disk-watch"}),
            warnings=tuple(warnings),
        )

    def prepare(self, request: LaunchRequest, control: int) -> Launch:
        command = (self.interpreter.executable, *PYTHON_FLAGS, SUPERVISOR, str(control))
        argv, descriptors = self.arguments(request, command)
        return Launch(argv, descriptors, start_message(request))

    def prepare_program(self, request: LaunchRequest, argv: Sequence[str]) -> Launch:
        return Launch(*self.arguments(request, argv), {})

    def arguments(self, request: LaunchRequest, command: Sequence[str]) -> tuple[list[str], list[int]]:
        """What to execute for ``command`` to run inside, and the descriptors that it needs."""
        refuse_root(request)
        staging = request.uid is not None and self.features.stage
        sources = _Sources(self.features.bind_fd, _stage_directory() if staging else "")
        try:
            arguments = build_arguments(
                command,
                sources.bind(ensure_etc_tree(self.state_dir, self.etc_extra), "/etc"),
                self._binds(request, sources),
                supervisor=sources.in_memory(self.interpreter.supervisor),
                seccomp=sources.in_memory(build_filter()),
                features=self.features,
                share_network=request.policy.network.mode == "host",
            )
        except BaseException:
            sources.close()
            raise
        stage = [sources.stage, *sources.staged]
        return launcher_command("userns_launcher.py", arguments, request.uid, self.program, stage), sources.descriptors

    def _binds(self, request: LaunchRequest, sources: _Sources) -> list[Bind]:
        policy = request.policy
        binds = [
            sources.bind(mount.host, mount.path, read_only=mount.read_only)
            for mount in thread_mounts(policy)
            if mount.host.is_dir() or not mount.read_only
        ]
        prefixes = {self.interpreter.prefix}
        if policy.tools_dir is not None:
            binds.append(sources.bind(policy.tools_dir, str(policy.tools_dir)))
            prefixes.add(tool_image_prefix(policy.tools_dir))
        binds += [sources.bind(prefix, prefix) for prefix in sorted(filter(None, prefixes))]
        if request.proxy_directory is not None:
            binds.append(sources.bind(request.proxy_directory, SOCKET_DIRECTORY))
        return binds


class BwrapSandboxProvider(IsolatingProvider):
    """Namespaces by bubblewrap: the default."""

    name = "bwrap"

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        return examine_namespaces(self.name, self._launcher(shutil.which("bwrap")), self.drops_root)

    def _launcher(self, program: str | None) -> NamespaceLauncher:
        return NamespaceLauncher(program, self.state_dir, find_interpreter(), etc_extra=self.etc_extra)


class UsernsSandboxProvider(BwrapSandboxProvider):
    """The same namespaces without bubblewrap, for machines where it is not installed."""

    name = "userns"

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        return examine_namespaces(self.name, self._launcher(None), self.drops_root)


def examine_namespaces(
    name: str, launcher: NamespaceLauncher, drops_root: bool
) -> tuple[ProbeReport, NamespaceLauncher | None]:
    """Find the features with which ``launcher`` works. Blocks for some hundred milliseconds.

    Args:
        name: the provider's, for the report.
        drops_root: this process is root, so the trial runs under a uid of its own.
    """
    if sys.platform != "linux":
        return ProbeReport(name, ok=False, problems=(NOT_LINUX,)), None
    if name == "bwrap" and launcher.program is None:
        return ProbeReport(name, ok=False, problems=(NO_BWRAP,)), None
    launcher = replace(launcher, features=replace(launcher.features, stage=drops_root))
    problems: list[Problem] = []
    for _ in range(MAX_TRIALS):
        complaint = _try(launcher, PROBE_UID if drops_root else None)
        if complaint is None:
            report = ProbeReport(name, ok=True, isolation=launcher.isolation(Policy()), problems=tuple(problems))
            return report, launcher
        cause = classify(complaint)
        problems.append(cause.problem(complaint if cause is UNKNOWN else ""))
        if not cause.without or not getattr(launcher.features, cause.without):
            break
        launcher = replace(launcher, features=replace(launcher.features, **{cause.without: False}))
    return ProbeReport(name, ok=False, problems=tuple(problems)), None


def _try(launcher: NamespaceLauncher, uid: int | None) -> str | None:
    """None if a program ran inside of a complete sandbox, else what went wrong."""
    try:
        with trial_policy(launcher.state_dir, uid) as policy:
            greeting = (launcher.interpreter.executable, "-I", "-S", "-c", "print('ok')")
            argv, descriptors = launcher.arguments(LaunchRequest(policy, uid), greeting)
            run = run_trial(argv, descriptors)
    except (OSError, subprocess.SubprocessError, SandboxError, UnsupportedArchitectureError) as error:
        return str(error)
    return None if (run.returncode, run.stdout) == (0, "ok\n") else run.stderr.strip() or f"exit code {run.returncode}"


def _stage_directory() -> str:
    for candidate in STAGE_CANDIDATES:
        if Path(candidate).is_dir() and not Path(candidate).is_symlink():
            return candidate
    raise SandboxRuntimeError("The sandbox needs an empty directory /mnt on this machine. Create it: mkdir /mnt")
