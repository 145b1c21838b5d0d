"""From a policy to what a sandbox needs at its start: environment, limits, bind mounts, descriptors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from deerflow.sandbox.interface import WORKSPACE, Isolation, Limits, Mount, Policy
from deerflow.sandbox.session import Launch, Shell

HOME = "/home/agent"
RUN = "/run"
SUPERVISOR = "/run/agent.pyc"
SOCKET_DIRECTORY = "/run/sbx"
SANDBOX_ID = 1000
"""uid and gid inside."""

SHM_BYTES = 64 << 20
RUN_BYTES = 1 << 20
SCRATCH_BYTES = 256 << 20
"""Size of /tmp and of the home directory where the policy gives no directory on disk for them."""

SYSTEM_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
HOST_NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")


@dataclass(frozen=True, slots=True)
class Features:
    """What this machine grants; found by the probe."""

    fresh_proc: bool = True
    disable_userns: bool = True
    bind_fd: bool = True
    stage: bool = False
    """As root: bind sources are staged in a private mount namespace before the uid is dropped."""


@dataclass(frozen=True, slots=True)
class Bind:
    """One bind mount. ``source`` is a path, or a descriptor opened with O_PATH, which no rename can redirect."""

    source: str | int
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class Recipe:
    """One sandbox to be built."""

    command: tuple[str, ...]
    etc: Bind
    binds: tuple[Bind, ...] = ()
    supervisor_fd: int | None = None
    seccomp_fd: int | None = None
    share_network: bool = False
    features: Features = Features()


def build_arguments(recipe: Recipe) -> list[str]:
    """The launcher's arguments without the launcher itself: ``bwrap`` and ``userns_launcher`` take the same ones."""
    features = recipe.features
    arguments = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not recipe.share_network:
        arguments += ["--unshare-net"]
    if features.disable_userns:
        arguments += ["--disable-userns"]
    arguments += ["--uid", str(SANDBOX_ID), "--gid", str(SANDBOX_ID), "--hostname", "sandbox", "--cap-drop", "ALL"]
    # The supervisor is pid 1: nothing inside can signal it, and /proc/1/cmdline shows no host path.
    arguments += ["--die-with-parent", "--new-session", "--clearenv", "--as-pid-1"]
    arguments += _system(recipe)
    arguments += _kernel_filesystems(recipe)
    targets = {bind.target for bind in recipe.binds}
    if "/tmp" not in targets:
        arguments += ["--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"]
    if HOME not in targets:
        arguments += ["--perms", "0700", "--size", str(SCRATCH_BYTES), "--tmpfs", HOME]
    arguments += ["--size", str(RUN_BYTES), "--tmpfs", RUN]
    # Outer directories first, so that a mount below another one is not covered by it.
    for bind in sorted(recipe.binds, key=lambda bind: bind.target.count("/")):
        arguments += _bind(bind)
    if recipe.supervisor_fd is not None:
        arguments += ["--perms", "0444", "--ro-bind-data", str(recipe.supervisor_fd), SUPERVISOR]
    # What the launcher itself created is tmpfs of half the RAM each; nobody shall fill it.
    for created in ("/dev", RUN, "/"):
        arguments += ["--remount-ro", created]
    arguments += ["--chdir", "/"]
    if recipe.seccomp_fd is not None:
        arguments += ["--seccomp", str(recipe.seccomp_fd)]
    return [*arguments, "--", *recipe.command]


def descriptors(recipe: Recipe) -> list[int]:
    """The descriptors that the launcher must inherit."""
    sources = [bind.source for bind in (recipe.etc, *recipe.binds) if isinstance(bind.source, int)]
    return sources + [fd for fd in (recipe.supervisor_fd, recipe.seccomp_fd) if fd is not None]


def _system(recipe: Recipe) -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM_DIRECTORIES:
        path = Path("/") / name
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()).lstrip("/"), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += _bind(recipe.etc)
    if recipe.share_network:
        for file in HOST_NETWORK_FILES:
            resolved = Path(file).resolve()
            if resolved.is_file():
                arguments += ["--ro-bind", str(resolved), file]
    return arguments


def _kernel_filesystems(recipe: Recipe) -> list[str]:
    arguments = ["--proc", "/proc"] if recipe.features.fresh_proc else ["--ro-bind", "/proc", "/proc"]
    return [*arguments, "--dev", "/dev", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"]


def _bind(bind: Bind) -> Sequence[str]:
    option = "--ro-bind" if bind.read_only else "--bind"
    if isinstance(bind.source, int):
        return (option + "-fd", str(bind.source), bind.target)
    return (option, bind.source, bind.target)


PROXY_PORT = 3128
PROXY_SOCKET = "proxy.sock"
LEAST_OPEN_FILES = 256
"""The supervisor hands the shell its script and state by descriptors near 200, out of a command's way."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

BASE_ENVIRONMENT = {
    "HOME": HOME,
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "MPLBACKEND": "Agg",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One sandbox to be started."""

    policy: Policy
    uid: int | None = None
    """Host uid and gid to run as; None: this process's own."""
    shell: Shell = field(default_factory=Shell)
    for_one_command: bool = False
    """Beside the thread's session, which it must not disturb."""
    proxy_directory: Path | None = None
    """Holds the egress proxy's socket; None: no proxy."""


class Launcher(Protocol):
    """How one kind of sandbox is started."""

    def isolation(self, policy: Policy) -> Isolation:
        """What a sandbox of this policy will be confined by."""
        ...

    def prepare(self, request: LaunchRequest) -> Launch:
        """Everything up to the fork. Blocks. Raises SandboxRuntimeError or OSError."""
        ...


def thread_mounts(policy: Policy) -> tuple[Mount, ...]:
    """The policy's mounts with the home and temporary directories."""
    own = [(policy.home, HOME), (policy.tmp, "/tmp")]
    return policy.mounts + tuple(Mount(host, path) for host, path in own if host is not None)


def writable_directories(policy: Policy) -> list[Path]:
    """The host directories that the sandbox may fill."""
    return [mount.host for mount in thread_mounts(policy) if not mount.read_only]


def ensure_directories(policy: Policy) -> None:
    """Make the writable directories that do not exist yet."""
    for directory in writable_directories(policy):
        if not directory.is_dir():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def start_message(
    request: LaunchRequest, *, home: str = WORKSPACE, overrides: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The supervisor's first message. Nothing of it appears in an argument list or in /proc.

    Args:
        home: the directory that commands begin in, as the sandbox sees it.
        overrides: environment variables that differ where paths are not virtual.
    """
    policy = request.policy
    environment = BASE_ENVIRONMENT | {"PATH": _search_path(policy)} | dict(overrides or {})
    message: dict[str, Any] = {
        "home": home,
        "cwd": request.shell.cwd,
        "state": request.shell.state,
        "limits": _resource_limits(policy.limits),
    }
    if policy.tools_dir is not None:
        message["venv"] = {"path": f"{environment['HOME']}/venv", "tools": str(policy.tools_dir)}
    if request.proxy_directory is not None:
        environment |= _proxy_environment()
        message["proxy"] = {"port": PROXY_PORT, "socket": f"{SOCKET_DIRECTORY}/{PROXY_SOCKET}"}
    message["environment"] = environment | dict(policy.environment)
    return message


def memory_descriptor(name: str, content: bytes) -> int:
    """An anonymous file holding ``content``, to be handed to a child."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _search_path(policy: Policy) -> str:
    if policy.tools_dir is None:
        return SYSTEM_PATH
    return f"{HOME}/venv/bin:{policy.tools_dir}/bin:{SYSTEM_PATH}"


def _resource_limits(limits: Limits) -> dict[str, int]:
    """By the names of ``RLIMIT_*``. DATA rather than AS, which breaks programs that only reserve addresses."""
    wanted = {
        "FSIZE": limits.file_size_mb << 20,
        "NPROC": limits.processes,
        "NOFILE": max(limits.open_files, LEAST_OPEN_FILES) if limits.open_files else 0,
        "DATA": limits.memory_mb << 20,
        "CPU": limits.cpu_seconds,
    }
    return {"CORE": 0} | {name: value for name, value in wanted.items() if value}


def _proxy_environment() -> dict[str, str]:
    url = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    own = "localhost,127.0.0.1,::1"
    return dict.fromkeys(names, url) | {"NO_PROXY": own, "no_proxy": own}
