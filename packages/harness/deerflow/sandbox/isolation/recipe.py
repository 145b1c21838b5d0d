"""The namespace recipe: everything that a sandboxed process sees is named here, flag by flag.

``build_arguments`` is pure. The reasons for each flag are in docs/sandbox.md; the short form stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
