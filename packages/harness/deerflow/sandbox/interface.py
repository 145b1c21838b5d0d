"""What a sandbox is: the contract that every provider keeps and ``tests/contracts/sandbox`` checks.

Paths are virtual paths as the model sees them (``/mnt/user-data/workspace/...``). Times are seconds unless a name says
otherwise, sizes are bytes. Every coroutine may be awaited from any event loop.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal
from weakref import WeakValueDictionary

from deerflow.security.addresses import Network as Network
from deerflow.security.addresses import NetworkMode

WORKSPACE = "/mnt/user-data/workspace"
UPLOADS = "/mnt/user-data/uploads"
OUTPUTS = "/mnt/user-data/outputs"
PAGES = f"{WORKSPACE}/.web"
"""Pages of the web as they were read."""
SKILLS = "/mnt/skills"
ACP_WORKSPACE = "/mnt/acp-workspace"


class SandboxError(Exception):
    """Something in the sandbox failed. ``str()`` is fit to be shown to the model; ``details`` are for the log."""

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.details = details

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={value}" for key, value in self.details.items())
        return f"{self.args[0]} ({shown})" if shown else str(self.args[0])


class SandboxNotFoundError(SandboxError):
    """No sandbox with this id."""


class SandboxRuntimeError(SandboxError):
    """The sandbox could not be started or died."""


class SandboxUnavailableError(SandboxRuntimeError):
    """This machine offers no isolation that the configuration accepts. The message says what to do."""


class SandboxCommandError(SandboxError):
    """A command could not be run at all (as opposed to: ran and returned non-zero)."""


class SandboxFileError(SandboxError):
    """A file operation failed."""


class SandboxPermissionError(SandboxFileError):
    """The path is outside of the sandbox or read-only."""


class SandboxFileNotFoundError(SandboxFileError):
    """No such file or directory."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """How well a sandbox is confined; shown by ``deerflow doctor`` and in the UI."""

    level: Literal["namespaces", "namespaces-no-proc", "landlock", "container", "remote", "none"]
    real_paths: bool
    """The virtual paths exist inside, so no path is ever rewritten."""
    network: NetworkMode
    pid: bool
    limits: frozenset[str] = frozenset()
    """Which limits are enforced: nproc, fsize, data, memory-watch, disk-watch, process-watch, cgroup-memory, cgroup-pids."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a provider cannot work here, in words, with its remedy.

    ``values``: of the sentence, for a page that words it by its code; ``said`` is what a program, a service or the system said.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    code: str
    sentence: str
    fix: str
    values: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What a provider's probe found on this machine."""

    provider: str
    ok: bool
    isolation: Isolation | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The end of one command."""

    exit_code: int | None
    """None when the command did not end by itself (``timed_out`` or ``killed_for``)."""
    output: str
    """stdout and stderr as they came, decoded as UTF-8 with replacement; head and tail when ``truncated``."""
    timed_out: bool = False
    killed_for: Literal["flood", "disk", "memory", "processes", "host-clock", "cancelled"] | None = None
    truncated: bool = False
    total_bytes: int = 0
    duration_ms: float = 0.0
    cwd: str = WORKSPACE
    moved: bool = False
    """Whether the session's directory is another one than before."""
    kept: bool = False
    """Whether the whole output is in the file given as ``keep_output``."""
    notice: str = ""
    """A sentence for the model about the session, e.g. that it was restarted and background processes are gone."""


@dataclass(frozen=True, slots=True)
class Process:
    """A background process started with ``start_process``."""

    id: str
    command: str
    running: bool
    exit_code: int | None = None
    output: str = ""
    """What was written since the last ``read_process``."""
    dropped_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory entry. ``kind``: file, directory, link, other."""

    path: str
    kind: Literal["file", "directory", "link", "other"]
    size: int = 0
    modified: float = 0.0
    changed: float = 0.0
    """When it got its content, its name or its rights (ctime); no program in the sandbox can set it."""


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """One matching line. ``line_number`` is 1-based; ``line`` is cut to 500 characters around the match.

    Number 0: the file was not searched, and ``line`` says why.
    """

    path: str
    line_number: int
    line: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a sandbox; 0 means no limit."""

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    processes: int = 512
    memory_mb: int = 4096
    file_size_mb: int = 2048
    disk_mb: int = 10240
    min_free_disk_mb: int = 512
    open_files: int = 1024
    cpu_seconds: int = 3600


@dataclass(frozen=True, slots=True)
class Mount:
    """A host directory bound at a virtual path."""

    host: Path
    path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that shapes a sandbox besides whose it is."""

    mounts: tuple[Mount, ...] = ()
    """workspace, uploads and outputs (rw), skills and acp-workspace (ro), configured extras."""
    home: Path | None = None
    tmp: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    network: Network = field(default_factory=Network)
    limits: Limits = Limits()
    tools_dir: Path | None = None
    """The tool image, bound read-only at the same path."""
    owner: str = ""
    """The id of another sandbox, whose user on the host this one runs as, since its directories are that one's; empty: a user of its own."""


BLOCKED = "Blocked by sandbox network policy"
"""Reason phrase of the proxy's refusals, which programs print."""
OnOutput = Callable[[str], Awaitable[None] | None]
Gate = Callable[[str], Awaitable[str | None]]
"""Host to the sentence that refuses it, or None. Awaited on any event loop, before the host is connected to or its name resolved."""
MOST_REFUSED = 5
"""Refused hosts that are kept for the person: a program may try any number of them."""


@dataclass(slots=True)
class SeenFiles:
    """What an agent has seen of each file, so that it never overwrites what it does not know.

    Stamps of files as last read or written by the agent, and a lock per path for read-modify-write.
    """

    _stamps: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary[str, asyncio.Lock])

    def remember(self, path: str, modified: float, size: int) -> None:
        self._stamps[path] = (modified, size)

    def knows(self, path: str) -> bool:
        """Whether the agent has read or written the file."""
        return path in self._stamps

    def changed(self, path: str, modified: float, size: int) -> bool:
        """Whether the file differs from what the agent saw. A file never seen has not changed."""
        return self._stamps.get(path, (modified, size)) != (modified, size)

    def lock(self, path: str) -> asyncio.Lock:
        """The lock of ``path``; it lives as long as someone holds a reference to it."""
        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock


class Sandbox(ABC):
    """One thread's sandbox: a shell session, background processes and files."""

    id: str
    isolation: Isolation
    gate: Gate | None = None
    """Judges the hosts that commands reach through the egress proxy: that of the newest run, also when the run has ended."""

    @cached_property
    def _refused(self) -> dict[str, str]:
        return {}

    async def admit(self, host: str) -> str | None:
        """Return the sentence with which the gate refuses ``host``, and keep it for :meth:`take_refused`; None if it may be reached."""
        why = await self.gate(host) if self.gate is not None else None
        if why is not None and (host in self._refused or len(self._refused) < MOST_REFUSED):
            self._refused[host] = why
        return why

    def take_refused(self) -> dict[str, str]:
        """Return the hosts that were refused since the last call, each with the gate's sentence."""
        taken: list[tuple[str, str]] = []
        while self._refused:  # one by one: the proxy adds to them on another thread
            taken.append(self._refused.popitem())
        return dict(reversed(taken))

    @cached_property
    def seen_files(self) -> SeenFiles:
        """What the agent knows of this sandbox's files, kept as long as the sandbox object lives."""
        return SeenFiles()

    # commands -------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def exec(
        self,
        command: str,
        *,
        timeout: float = 120,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        max_output: int = 1 << 20,
        keep_output: str | None = None,
        keep_after: int = 0,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run ``command`` with bash in the thread's session: cwd, exported variables and functions carry over to the next call.

        With ``env`` the command runs once outside of the session, so that secrets in it never reach another command.
        An output of more than ``keep_after`` bytes goes to the file ``keep_output`` as a whole.
        Cancelling the awaiting task kills the command's whole process tree.

        Raises:
            SandboxUnavailableError: no shell can be had here.
            SandboxCommandError: ``env`` names a forbidden variable, or the command holds a NUL byte.
            SandboxRuntimeError: the sandbox died and could not be restarted.
        """

    @abstractmethod
    async def run(
        self, argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> ExecResult:
        """Run a program beside the session, without a shell: no function, variable, trap or alias of the session reaches it.

        Exit code 127: there is no such program. Raises as ``exec``.
        """

    @property
    @abstractmethod
    def awake(self) -> bool:
        """Whether the session runs, so that a command needs no start."""

    @abstractmethod
    async def start_process(self, command: str, *, cwd: str | None = None) -> Process:
        """Start ``command`` in the background of the session and return at once."""

    @abstractmethod
    async def read_process(self, process_id: str) -> Process:
        """What the process wrote since the last read, and whether it still runs. Raises SandboxNotFoundError."""

    @abstractmethod
    async def kill_process(self, process_id: str) -> Process:
        """Kill the process and everything it started. Raises SandboxNotFoundError."""

    @abstractmethod
    async def list_processes(self) -> list[Process]: ...

    @abstractmethod
    async def reset(self) -> None:
        """Kill every process of the sandbox and forget cwd and environment. Files stay."""

    # files ----------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def read(self, path: str, *, offset: int = 0, limit: int = 50 << 20) -> tuple[bytes, int]:
        """Bytes of a regular file and its whole size. Raises SandboxFileError and its kinds."""

    @abstractmethod
    async def write(self, path: str, data: bytes, *, append: bool = False) -> None:
        """Write a file atomically (temp file and rename), or append to it; parents are made. Raises SandboxFileError and its kinds."""

    @abstractmethod
    async def stat(self, path: str) -> Entry | None:
        """The entry at ``path`` after following links inside the sandbox, or None."""

    @abstractmethod
    async def list(self, path: str, *, depth: int = 2, cap: int = 1000) -> tuple[list[Entry], bool]:
        """Entries below a directory, sorted by path, and whether ``cap`` cut the list."""

    @abstractmethod
    async def fingerprint(self, path: str) -> str | None:
        """A digest of the names, sizes and times of all files below a directory, but for those that programs make.

        None: there are too many.
        """

    @abstractmethod
    async def remove(self, path: str) -> None:
        """Remove a file or a whole directory tree without following links."""

    @abstractmethod
    async def glob(
        self, root: str, pattern: str, *, include_dirs: bool = False, cap: int = 200
    ) -> tuple[list[str], bool]:
        """Paths under ``root`` whose relative path matches ``pattern`` (``**`` spans directories), and whether ``cap`` cut them."""

    @abstractmethod
    async def grep(
        self,
        root: str,
        pattern: str,
        *,
        glob: str | None = None,
        literal: bool = False,
        case_sensitive: bool = False,
        cap: int = 100,
    ) -> tuple[list[GrepMatch], bool]:
        """Lines that match a regular expression (RE2-like, linear time where ripgrep is present). Raises SandboxCommandError for a bad pattern."""


def sandbox_id(thread_id: str, user_id: str) -> str:
    """The id of a thread's sandbox, with every provider."""
    return f"{user_id}:{thread_id}"


class SandboxProvider(ABC):
    """Hands out one sandbox per thread, with :func:`sandbox_id` as its id."""

    @property
    def alive(self) -> int:
        """The number of sandboxes whose shell is up, as far as the provider knows."""
        return 0

    @abstractmethod
    def probe(self) -> ProbeReport:
        """Try the real recipe and report. May take a second; the result is cached."""

    @abstractmethod
    async def acquire(self, thread_id: str, *, user_id: str, policy: Policy) -> Sandbox:
        """The thread's sandbox, made if need be. Idempotent; cheap: the shell starts with the first command."""

    @abstractmethod
    def get(self, sandbox_id: str) -> Sandbox | None:
        """A sandbox handed out before and not destroyed since."""

    @abstractmethod
    async def release(self, sandbox_id: str, *, destroy: bool = False) -> None:
        """The holder is done. Idle, not destroyed, unless ``destroy``, which also ends every process."""

    @abstractmethod
    async def shutdown(self) -> None:
        """End every sandbox. Idempotent."""
