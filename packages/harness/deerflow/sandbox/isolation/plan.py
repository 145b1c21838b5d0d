"""From a policy to what a sandbox needs at its start: environment, limits, bind mounts, descriptors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from deerflow.sandbox.interface import WORKSPACE, Isolation, Limits, Mount, Policy
from deerflow.sandbox.isolation.recipe import HOME, SOCKET_DIRECTORY
from deerflow.sandbox.session import Launch, Shell

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
