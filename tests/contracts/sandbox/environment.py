"""What a check of the sandbox contract works with: a sandbox, the host around it, and the baits laid out there.

A check raises AssertionError when the sandbox fails it and ``NotApplicable`` when this machine cannot tell. The numbers
are those of the table in docs/sandbox.md. Checks are independent of each other and of their order.
"""

from __future__ import annotations

import asyncio
import platform
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tests.contracts.sandbox.baits import Baits, set_baits

from deerflow.sandbox.interface import (
    OUTPUTS,
    SKILLS,
    UPLOADS,
    WORKSPACE,
    ExecResult,
    Isolation,
    Limits,
    Mount,
    Policy,
    Sandbox,
    SandboxProvider,
)
from deerflow.sandbox.isolation.seccomp import SYSCALLS

TIGHT = Limits(processes=128, memory_mb=1024, file_size_mb=64)
USER = "contract"
PRELUDE = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return 'ok' if result >= 0 else errno.errorcode.get(ctypes.get_errno(), 'unknown')
def attempt(action, *arguments):
    try:
        action(*arguments)
        return 'ok'
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
"""


class Need(Enum):
    """What a check asks of a sandbox's isolation."""

    CONFINED = "the sandbox is confined at all"
    NAMESPACES = "the sandbox has namespaces"
    OWN_PROC = "the sandbox has a /proc of its own"
    OWN_PIDS = "the sandbox has a pid namespace"
    OWN_NETWORK = "the sandbox has no network"
    SESSION = "the sandbox is one of our sessions"
    PROCESS_LIMIT = "the number of processes is limited"
    PROCESS_WATCH = "the number of processes is watched from the host"
    DATA_LIMIT = "the memory of a process is limited"
    FILE_LIMIT = "the size of a file is limited"

    def met(self, isolation: Isolation) -> bool:
        namespaces = isolation.level in ("namespaces", "namespaces-no-proc", "container")
        match self:
            case Need.CONFINED:
                return namespaces or isolation.level == "landlock"
            case Need.NAMESPACES:
                return namespaces
            case Need.OWN_PROC:
                return isolation.level in ("namespaces", "container")
            case Need.OWN_PIDS:
                return isolation.pid
            case Need.OWN_NETWORK:
                return isolation.network == "none"
            case Need.SESSION:
                return namespaces or isolation.level == "landlock"
            case Need.PROCESS_LIMIT:
                return "nproc" in isolation.limits
            case Need.PROCESS_WATCH:
                return "process-watch" in isolation.limits
            case Need.DATA_LIMIT:
                return "data" in isolation.limits
            case Need.FILE_LIMIT:
                return "fsize" in isolation.limits


class NotApplicable(Exception):
    """This machine cannot show whether the promise is kept; the message says why."""


@dataclass(slots=True)
class Environment:
    """A sandbox under examination and the host around it."""

    provider: SandboxProvider
    sandbox: Sandbox
    policy: Policy
    data_dir: Path
    baits: Baits
    _others: dict[str, Sandbox] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """The host directory behind /mnt/user-data/workspace."""
        return self.policy.mounts[0].host

    async def other(self, name: str) -> Sandbox:
        """A second sandbox of its own, for what ends or disturbs one."""
        if name not in self._others:
            policy = await asyncio.to_thread(thread_policy, self.data_dir, name)
            self._others[name] = await self.provider.acquire(name, user_id=USER, policy=policy)
        return self._others[name]

    async def sh(self, command: str, *, timeout: float = 30, sandbox: Sandbox | None = None) -> ExecResult:
        """Run a command in the sandbox."""
        return await (sandbox or self.sandbox).exec(command, timeout=timeout)

    async def python(
        self, code: str, *arguments: str, timeout: float = 30, sandbox: Sandbox | None = None
    ) -> list[str]:
        """The lines that a Python program prints inside. ``call`` and ``attempt`` are at hand in it."""
        words = " ".join(f"'{argument}'" for argument in arguments)
        program = f"python3 -I -S - {words} <<'END_OF_PROGRAM'\n{PRELUDE}\n{code}\nEND_OF_PROGRAM"
        result = await self.sh(program, timeout=timeout, sandbox=sandbox)
        assert result.exit_code == 0, f"the program failed: {result}"
        return result.output.splitlines()

    async def assert_bait_untouched(self) -> None:
        """The secret file is as it was laid out, and nothing lies beside it."""
        secret, names = await asyncio.to_thread(self.baits.look)
        assert secret == self.baits.secret, secret
        assert names == [self.baits.secret_file.name], names

    def new_name(self) -> str:
        """A name that no earlier run has left behind."""
        return f"c{secrets.token_hex(6)}"


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. ``run`` raises AssertionError if it is broken."""

    id: str
    title: str
    run: Callable[[Environment], Awaitable[None]]
    needs: frozenset[Need] = frozenset()

    def unmet(self, isolation: Isolation) -> str | None:
        """Why the check does not apply to a sandbox of this isolation."""
        missing = [need.value for need in sorted(self.needs, key=lambda need: need.name) if not need.met(isolation)]
        return f"does not hold: {', '.join(missing)}" if missing else None


class Checks:
    """Collects checks by decorator, in the order of their definition."""

    def __init__(self) -> None:
        self.all: list[Check] = []

    def __call__(
        self, id: str, title: str, *needs: Need
    ) -> Callable[[Callable[[Environment], Awaitable[None]]], Callable[[Environment], Awaitable[None]]]:
        def register(run: Callable[[Environment], Awaitable[None]]) -> Callable[[Environment], Awaitable[None]]:
            self.all.append(Check(id, title, run, frozenset(needs)))
            return run

        return register


def thread_policy(data_dir: Path, thread_id: str, limits: Limits = TIGHT) -> Policy:
    """A policy over new directories of a thread, with a read-only mount that holds one file."""
    root = data_dir / "threads" / thread_id
    skills = data_dir / "skills"
    for directory in (*(root / name for name in ("workspace", "uploads", "outputs", "home", "tmp")), skills):
        directory.mkdir(parents=True, exist_ok=True)
    (skills / "SKILL.md").write_text("a skill\n")
    (skills / "SKILL.md").chmod(0o644)
    skills.chmod(0o755)
    return Policy(
        mounts=(
            Mount(root / "workspace", WORKSPACE),
            Mount(root / "uploads", UPLOADS),
            Mount(root / "outputs", OUTPUTS),
            Mount(skills, SKILLS, read_only=True),
        ),
        home=root / "home",
        tmp=root / "tmp",
        limits=limits,
    )


@asynccontextmanager
async def open_environment(provider: SandboxProvider, data_dir: Path) -> AsyncIterator[Environment]:
    """A sandbox of ``provider`` with baits set around it. Blocks here and there. Shuts the provider down at the end.

    ``data_dir`` should not lie below /tmp, which inside is another directory and so would prove nothing.
    """
    with set_baits() as baits:
        policy = await asyncio.to_thread(thread_policy, data_dir, "main")
        try:
            sandbox = await provider.acquire("main", user_id=USER, policy=policy)
            yield Environment(provider, sandbox, policy, data_dir, baits)
        finally:
            await provider.shutdown()


def system_call(name: str) -> int:
    """The number of a system call here. Raises NotApplicable if this machine has no such call."""
    number = SYSCALLS.get(platform.machine(), {}).get(name)
    if number is None:
        raise NotApplicable(f"{platform.machine()} has no {name}")
    return number


def system_calls(names: Iterable[str]) -> dict[str, int]:
    """Numbers of those of ``names`` that exist here."""
    table = SYSCALLS.get(platform.machine(), {})
    return {name: table[name] for name in names if name in table}


def host_processes(marker: str) -> list[int]:
    """Processes of the whole host whose command line holds ``marker``. Blocks."""
    found: list[int] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found
