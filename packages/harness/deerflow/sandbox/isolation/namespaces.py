"""Providers that give every thread Linux namespaces of its own, started by bubblewrap or by our own launcher."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from deerflow.sandbox.interface import Isolation, Policy, ProbeReport, Problem, SandboxError, SandboxRuntimeError
from deerflow.sandbox.isolation.etc_tree import ensure_etc_tree
from deerflow.sandbox.isolation.plan import (
    SOCKET_DIRECTORY,
    SUPERVISOR,
    Bind,
    Features,
    Launcher,
    LaunchRequest,
    Recipe,
    build_arguments,
    ensure_directories,
    memory_descriptor,
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
    shorten,
    trial_policy,
)
from deerflow.sandbox.isolation.seccomp import UnsupportedArchitectureError, build_filter
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Launch

SYSTEM_PYTHON = "/usr/bin/python3"
SUPERVISOR_SOURCE = Path(__file__).parents[1] / "supervisor.py"
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
    home = next(
        (value.strip() for key, _, value in (line.partition("=") for line in lines) if key.strip() == "home"), ""
    )
    prefix = Path(home).resolve().parent if home else Path("/")
    if prefix == Path("/") or prefix.is_relative_to("/usr") or prefix.is_relative_to(tools):
        return None
    return str(prefix)


STAGE_CANDIDATES = ("/mnt", "/media", "/srv", "/opt")
"""Any directory will do that exists, is not needed by the launcher and may be covered in a private mount namespace."""

HERE = Path(__file__).parent
PYTHON_FLAGS = ("-I", "-S", "-B")


@dataclass(slots=True)
class _Sources:
    """Turns host directories into bind sources: descriptors, or names below the stage that root builds."""

    features: Features
    stage: str | None
    staged: list[str] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def bind(self, host: Path | str, target: str, *, read_only: bool = True) -> Bind:
        path = os.path.realpath(host)
        if self.stage is not None:
            self.staged.append(path)
            return Bind(f"{self.stage}/{len(self.staged) - 1}", target, read_only)
        if self.features.bind_fd:
            descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            self.descriptors.append(descriptor)
            return Bind(descriptor, target, read_only)
        return Bind(path, target, read_only)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class NamespaceLauncher:
    """Starts sandboxes by the namespace recipe. ``program`` is bwrap's path, or None for our own launcher."""

    program: str | None
    state_dir: Path
    interpreter: Interpreter
    features: Features = field(default_factory=Features)
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

    def prepare(self, request: LaunchRequest) -> Launch:
        ensure_directories(request.policy)
        host, inside = socket.socketpair()
        try:
            command = (self.interpreter.executable, *PYTHON_FLAGS, SUPERVISOR, str(inside.fileno()))
            argv, descriptors = self.arguments(request, command)
        except BaseException:
            host.close()
            inside.close()
            raise
        return Launch(argv, descriptors, start_message(request), control=inside, host_control=host)

    def arguments(self, request: LaunchRequest, command: tuple[str, ...]) -> tuple[list[str], list[int]]:
        """What to execute for ``command`` to run inside, and the descriptors that it needs."""
        if request.uid is None and os.geteuid() == 0:
            raise SandboxRuntimeError("Refusing to start a sandbox as root without a uid of its own.")
        stage = _stage_directory() if request.uid is not None and self.features.stage else None
        sources = _Sources(self.features, stage)
        try:
            recipe = Recipe(
                command=command,
                etc=sources.bind(ensure_etc_tree(self.state_dir, self.etc_extra), "/etc"),
                binds=tuple(self._binds(request, sources)),
                share_network=request.policy.network.mode == "host",
                features=self.features,
            )
            for name, content in (
                ("supervisor_fd", self.interpreter.supervisor),
                ("seccomp_fd", build_filter()),
            ):
                descriptor = memory_descriptor(name, content)
                sources.descriptors.append(descriptor)
                recipe = replace(recipe, **{name: descriptor})
        except BaseException:
            sources.close()
            raise
        return self._launch_command(request.uid, sources, build_arguments(recipe)), sources.descriptors

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

    def _launch_command(self, uid: int | None, sources: _Sources, arguments: list[str]) -> list[str]:
        own_launcher = str(HERE / "userns_launcher.py")
        if uid is None:
            program = [self.program] if self.program else [sys.executable, *PYTHON_FLAGS, own_launcher]
            return [*program, *arguments]
        module, program = ("", [self.program]) if self.program else (own_launcher, [])
        options = [str(uid), sources.stage or "", module, *sources.staged, "--", *program]
        return [sys.executable, *PYTHON_FLAGS, str(HERE / "root_launcher.py"), *options, *arguments]


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
        sentence = f"{cause.sentence} It said: {shorten(complaint)}" if cause is UNKNOWN else cause.sentence
        problems.append(Problem(cause.code, sentence, cause.fix))
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
    except (OSError, subprocess.SubprocessError, SandboxError, UnsupportedArchitectureError, ValueError) as error:
        return str(error)
    return None if (run.returncode, run.stdout) == (0, "ok\n") else run.stderr.strip() or f"exit code {run.returncode}"


def _stage_directory() -> str:
    for candidate in STAGE_CANDIDATES:
        if Path(candidate).is_dir() and not Path(candidate).is_symlink():
            return candidate
    raise SandboxRuntimeError("The sandbox needs an empty directory /mnt on this machine. Create it: mkdir /mnt")
