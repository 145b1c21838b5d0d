"""What all isolating providers share: one sandbox per thread, a bounded number of sessions, idle ones ended."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from deerflow.config.confinement import etc_path
from deerflow.identity import check_id
from deerflow.sandbox.egress import EgressProxy
from deerflow.sandbox.interface import (
    UPLOADS,
    Isolation,
    Limits,
    Policy,
    ProbeReport,
    Sandbox,
    SandboxProvider,
    SandboxRuntimeError,
    SandboxUnavailableError,
    sandbox_id,
)
from deerflow.sandbox.isolated import IsolatedSandbox
from deerflow.sandbox.isolation.plan import (
    PROXY_SOCKET,
    Launcher,
    LaunchRequest,
    adopt,
    ensure_directories,
    range_of,
    thread_uid,
    writable_directories,
)
from deerflow.sandbox.session import Launch, Session, Shell
from deerflow.sandbox.spawner import Spawner, process_tree

REAP_INTERVAL = 5.0
WARM_SESSIONS = 6
"""Idle shells beyond these are put to sleep after ``CROWDED_SLEEP_AFTER`` seconds: each holds some MB."""
CROWDED_SLEEP_AFTER = 15.0
MAX_REMEMBERED = 2000
"""Sandboxes without a session whose working directory and environment are remembered."""

log = logging.getLogger(__name__)


class IsolatingProvider(SandboxProvider):
    """Base of the providers that confine commands with the kernel's help. Thread-safe."""

    name: str
    sandbox_class: type[IsolatedSandbox] = IsolatedSandbox
    _no_commands = "Commands are not available."
    sockets_dir: Path | None = None
    """Holds the sockets of egress proxies, a directory each; None: the system's temporary directory."""

    def __init__(
        self,
        data_dir: Path,
        *,
        max_sessions: int = 40,
        sleep_after: float = 120,
        idle_timeout: float = 900,
        etc_extra: Sequence[str] = (),
    ) -> None:
        """
        Args:
            data_dir: where threads' directories lie; the provider keeps its own files in ``data_dir/sandbox``.
            max_sessions: shells that may be up at once.
            sleep_after: seconds after which an unused shell is ended unless it runs background processes, 0 for never.
            idle_timeout: seconds after which an unused shell is ended with its background processes, 0 for never.
            etc_extra: further paths below /etc that sandboxes may read.

        Raises:
            ValueError: such a path is not below /etc: no weaker isolation may be chosen because of it.
        """
        self.spawner = Spawner()
        self.state_dir = data_dir.absolute() / "sandbox"
        self.etc_extra = tuple(map(etc_path, etc_extra))
        self._max_sessions = max_sessions
        self._sleep_after = sleep_after
        self._idle_timeout = idle_timeout
        self._sandboxes: dict[str, IsolatedSandbox] = {}
        self._sandboxes_lock = threading.Lock()
        self._examined: tuple[ProbeReport, Launcher | None] | None = None
        self._examining = threading.Lock()
        self._starting = 0
        self._room = asyncio.Lock()
        self._reaper: asyncio.Task[None] | None = None
        self._watches: set[asyncio.Task[None]] = set()
        self._unfinished: set[asyncio.Future[Any]] = set()
        """Sessions' beginnings, and ends that nobody awaits."""
        self._ending = False

    @abstractmethod
    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        """Try the real thing; a launcher if it works. Blocks."""

    @property
    def drops_root(self) -> bool:
        """Whether sandboxes run under uids of their own because this process is root."""
        return os.geteuid() == 0

    @property
    def alive(self) -> int:
        return sum(sandbox.live for sandbox in list(self._sandboxes.values()))

    def probe(self) -> ProbeReport:
        return self._examination()[0]

    async def acquire(self, thread_id: str, *, user_id: str, policy: Policy) -> Sandbox:
        key = sandbox_id(check_id(thread_id, "thread id"), check_id(user_id, "user id"))
        known = self._sandboxes.get(key)
        if known is None or known.policy != policy:
            return await asyncio.to_thread(self._acquire, key, policy)
        known.last_used = time.monotonic()
        if known.uid is not None:
            await asyncio.to_thread(_adopt_uploads, known, known.uid)
        return known

    def get(self, sandbox_id: str) -> Sandbox | None:
        return self._sandboxes.get(sandbox_id)

    async def release(self, sandbox_id: str, *, destroy: bool = False) -> None:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        sandbox.last_used = time.monotonic()
        if destroy:
            with self._sandboxes_lock:
                self._sandboxes.pop(sandbox_id, None)
            await self.spawner.call(sandbox.end())

    def confine(self, owner: str, policy: Policy, argv: Sequence[str]) -> tuple[Launch, Isolation]:
        """Everything up to the fork of one program that is no thread's shell, and what confines it. Blocks.

        Args:
            owner: whose user id it gets on the host, where this process is root.
            policy: what it may see.
            argv: the program, as it is found inside.

        Raises:
            SandboxUnavailableError: nothing confines programs here.
        """
        report, launcher = self._examination()
        if launcher is None:
            raise SandboxUnavailableError(explain(report))
        request = LaunchRequest(policy, self._uid(owner) if self.drops_root else None)
        return launcher.prepare_program(request, argv), launcher.isolation(policy)

    async def shutdown(self) -> None:
        with self._sandboxes_lock:
            sandboxes, self._sandboxes = list(self._sandboxes.values()), {}
        if sandboxes or self.spawner.running:
            with contextlib.suppress(SandboxRuntimeError):  # shut down before
                await self.spawner.call(self._end_all(sandboxes))
        self.spawner.close()

    # sessions, on the sandbox loop ----------------------------------------------------------------------------------

    async def start_session(self, sandbox: IsolatedSandbox, shell: Shell, *, counted: bool) -> Session:
        """A new session for ``sandbox``. A cancelled caller leaves no half-started one behind.

        Raises:
            SandboxRuntimeError: every place is taken by a busy sandbox, or the sandbox does not start.
        """
        if self._ending:
            raise SandboxRuntimeError("The sandbox provider was shut down.")
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.create_task(self._reap())
        starting = asyncio.create_task(self._start(sandbox, shell, counted))
        self._finish(starting)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._discard)
            raise

    async def _start(self, sandbox: IsolatedSandbox, shell: Shell, counted: bool) -> Session:
        report, launcher = self._examined or await asyncio.to_thread(self._examination)
        if launcher is None:
            raise SandboxUnavailableError(explain(report))
        request = LaunchRequest(sandbox.policy, sandbox.uid, shell, for_one_command=not counted)
        if not counted:
            return await self._start_with(launcher, sandbox, request)
        async with self._room:
            await self._make_room(sandbox)
            self._starting += 1
        try:
            return await self._start_with(launcher, sandbox, request)
        finally:
            self._starting -= 1

    async def _start_with(self, launcher: Launcher, sandbox: IsolatedSandbox, request: LaunchRequest) -> Session:
        async with contextlib.AsyncExitStack() as proxy:
            if sandbox.isolation.network in ("allowlist", "internet"):
                directory = await asyncio.to_thread(_socket_directory, sandbox.uid, self.sockets_dir)
                proxy.push_async_callback(asyncio.to_thread, shutil.rmtree, directory, ignore_errors=True)
                record = partial(log.info, "sandbox network %s: %s", sandbox.id)
                server = EgressProxy(sandbox.policy.network, log=record, gate=sandbox.admit)
                proxy.push_async_callback(server.close)
                await server.start(directory / PROXY_SOCKET)
                request = replace(request, proxy_directory=directory)
            session = await self._open_session(launcher, sandbox.id, request)
            session.cleanup = proxy.pop_all()
        watch = asyncio.create_task(self._watch(sandbox, session, request.policy))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return session

    async def _open_session(self, launcher: Launcher, sandbox_id: str, request: LaunchRequest) -> Session:
        return await Session.start(partial(_launch, launcher, request), self.spawner)

    async def _watch(self, sandbox: IsolatedSandbox, session: Session, policy: Policy) -> None:
        directories = writable_directories(policy)
        count_processes = "nproc" not in sandbox.isolation.limits
        try:
            await Watch(session, policy.limits, directories, count_processes=count_processes).run()
        except SandboxRuntimeError as error:
            log.info("A sandbox ended while it was watched: %s", error)
        except FileNotFoundError:
            log.info("The sandbox %s ends: its directories are gone.", sandbox.id)
            with self._sandboxes_lock:
                if self._sandboxes.get(sandbox.id) is sandbox:
                    del self._sandboxes[sandbox.id]
            await sandbox.end()

    def _discard(self, starting: asyncio.Task[Session]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._finish(asyncio.create_task(starting.result().close()))

    def _finish(self, task: asyncio.Task[Any]) -> None:
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)

    async def _make_room(self, newcomer: IsolatedSandbox) -> None:
        while True:
            live = [one for one in list(self._sandboxes.values()) if one.live and one is not newcomer]
            if len(live) + self._starting < self._max_sessions:
                return
            idle = [one for one in live if not one.busy]
            if not idle:
                raise SandboxRuntimeError(
                    f"All {self._max_sessions} sandboxes are busy. Try again later, or raise sandbox.max_sessions."
                )
            await min(idle, key=lambda one: one.last_used).retire()

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(REAP_INTERVAL)
            try:
                await self.reap(time.monotonic())
            except Exception:
                log.exception("Ending idle sandboxes failed")

    async def reap(self, now: float) -> None:
        """End the sessions that have been idle at ``now`` (monotonic seconds) for too long."""
        idle = [sandbox for sandbox in self._sandboxes.values() if not sandbox.busy]
        warm = 0
        for sandbox in sorted(idle, key=lambda one: one.last_used, reverse=True):
            unused = now - sandbox.last_used
            warm += sandbox.live
            sleep_after = self._sleep_after if warm <= WARM_SESSIONS else min(self._sleep_after, CROWDED_SLEEP_AFTER)
            expired = 0 < self._idle_timeout <= unused
            if expired or 0 < sleep_after <= unused:
                await sandbox.retire(spare_background=not expired)
                await sandbox.close_files()
        with self._sandboxes_lock:
            asleep = [one for one in self._sandboxes.values() if not one.live and not one.busy]
            excess = max(0, len(self._sandboxes) - MAX_REMEMBERED)
            for sandbox in sorted(asleep, key=lambda one: one.last_used)[:excess]:
                del self._sandboxes[sandbox.id]

    async def _end_all(self, sandboxes: Sequence[IsolatedSandbox]) -> None:
        self._ending = True
        if self._reaper is not None:
            self._reaper.cancel()
        # What starts now would begin to be watched when nobody ends watches any more.
        while self._unfinished:
            await asyncio.gather(*self._unfinished, return_exceptions=True)
        await asyncio.gather(*(sandbox.end() for sandbox in sandboxes), return_exceptions=True)
        for watch in list(self._watches):
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    # blocking -------------------------------------------------------------------------------------------------------

    def _examination(self) -> tuple[ProbeReport, Launcher | None]:
        with self._examining:
            if self._examined is None:
                self._examined = self._examine()
            return self._examined

    def _acquire(self, sandbox_id: str, policy: Policy) -> Sandbox:
        launcher = self._examination()[1]
        ensure_directories(policy)
        # Without a launcher nothing runs, and a user of its own may be the very thing that is missing.
        uid = self._uid(policy.owner or sandbox_id) if self.drops_root and launcher is not None else None
        if uid is not None:
            for directory in writable_directories(policy):
                adopt(directory, uid)
        with self._sandboxes_lock:
            sandbox = self._sandboxes.get(sandbox_id)
            if sandbox is None:
                kind = self.sandbox_class if launcher is not None else IsolatedSandbox
                sandbox = kind(sandbox_id, policy, self._isolation(launcher, policy), uid, self)
                self._sandboxes[sandbox_id] = sandbox
            elif sandbox.policy != policy:
                sandbox.adapt(policy, self._isolation(launcher, policy))
            sandbox.uploads_seen = _modified(policy)
            sandbox.last_used = time.monotonic()
            return sandbox

    def _uid(self, sandbox_id: str) -> int:
        return thread_uid(self.state_dir / "identities.db", sandbox_id, range_of(self.state_dir))

    def _isolation(self, launcher: Launcher | None, policy: Policy) -> Isolation:
        if launcher is not None:
            return launcher.isolation(policy)
        return Isolation("none", real_paths=False, network="none", pid=False, warnings=(self._no_commands,))


def _adopt_uploads(sandbox: IsolatedSandbox, uid: int) -> None:
    """Give the thread's uid what the host has added to uploads since."""
    ensure_directories(sandbox.policy)
    modified = _modified(sandbox.policy)
    if modified != sandbox.uploads_seen:
        for mount in sandbox.policy.mounts:
            if mount.path == UPLOADS and not mount.read_only:
                adopt(mount.host, uid)
        sandbox.uploads_seen = modified


def _modified(policy: Policy) -> int:
    """When something was last put into uploads, in nanoseconds."""
    return max((mount.host.stat().st_mtime_ns for mount in policy.mounts if mount.path == UPLOADS), default=0)


def explain(report: ProbeReport) -> str:
    """Why there is no shell, and what to do, for the model and whoever reads along."""
    reasons = " ".join(f"{problem.sentence} {problem.fix}" for problem in report.problems)
    return f"Commands cannot be run here, because this machine offers no sandbox for them. {reasons} File tools work."


def _launch(launcher: Launcher, request: LaunchRequest, control: int) -> Launch:
    ensure_directories(request.policy)
    return launcher.prepare(request, control)


def _socket_directory(uid: int | None, parent: Path | None) -> Path:
    # Rather not below the data directory: a socket's path may have 107 bytes only (unix(7)).
    directory = Path(tempfile.mkdtemp(prefix="deerflow-", dir=parent))
    if uid is not None:
        os.chown(directory, uid, uid)
    return directory


# What the kernel does not limit by itself is watched from the host: memory of all processes together, disk, and where it
# must be the number of processes.

MEMORY_INTERVAL = 1.0
PROCESS_INTERVAL = 0.2
"""Between two counts, where the kernel does not limit the number of processes."""
DISK_INTERVAL = 5.0
GROWTH_SLACK = 1 << 20
"""A command over the limit may go on while it frees space."""
FLOOR_GROWTH = 64 << 20
"""How much a sandbox must have written to be blamed for a disk that is full for everybody."""
DU_TIMEOUT = 60
MANY_FILES = 100_000
"""How many files a sandbox must hold to be blamed for a file system that has no room for further ones."""
LEAST_FREE_FILES = 0.02
"""Share of a file system's inodes that is left to others."""


class Watch:
    """Watches one session until it ends."""

    def __init__(
        self, session: Session, limits: Limits, directories: Sequence[Path], *, count_processes: bool = False
    ) -> None:
        self._session = session
        self._limits = limits
        self._directories = directories
        self._used: int | None = None
        self._free: int | None = None
        self._files: int | None = None
        self._checked = self._memory_checked = 0.0
        self._most = limits.processes + session.idle_processes if count_processes and limits.processes else None

    async def run(self) -> None:
        """Loop until the session ends.

        Raises:
            FileNotFoundError: a directory was removed or moved away, by whatever process: the thread is deleted.
        """
        places = await asyncio.to_thread(self._places)
        while self._session.alive:
            now, processes = await asyncio.to_thread(self._look)
            if now != places:
                raise FileNotFoundError(errno.ENOENT, "Replaced by another directory", str(self._directories[0]))
            # For a moment after a command's end there are more, too.
            active = self._session.busy or processes > self._session.idle_processes
            if self._most is not None and processes > self._most:
                await self._session.kill_all("processes")
            if active and self._limits.memory_mb and time.monotonic() - self._memory_checked >= MEMORY_INTERVAL:
                self._memory_checked = time.monotonic()
                limit, spared = self._limits.memory_mb << 20, self._session.idle_processes
                if await asyncio.to_thread(kill_largest_over, self._session.pid, limit, spared):
                    self._session.blame("memory")
            if time.monotonic() - self._checked >= DISK_INTERVAL and (
                active or self._session.last_used > self._checked
            ):
                await self._check_disk(active)
            await asyncio.sleep(PROCESS_INTERVAL if active and self._most is not None else MEMORY_INTERVAL)

    def _look(self) -> tuple[list[tuple[int, int]], int]:
        """The places of the directories, and the number of processes."""
        return self._places(), len(process_tree(self._session.pid, self._most))

    def _places(self) -> list[tuple[int, int]]:
        found = [directory.stat() for directory in self._directories]
        return [(status.st_dev, status.st_ino) for status in found]

    async def _check_disk(self, active: bool) -> None:
        self._checked = time.monotonic()
        if await asyncio.to_thread(self._full) and active:
            self._session.kill_commands("disk")
            await self._session.reset(forget=False)

    def _full(self) -> bool:
        before, used = self._used, disk_usage(self._directories)
        free_before, self._free = self._free, min(map(free_space, self._directories), default=0)
        floor = self._limits.min_free_disk_mb << 20
        if used is None:
            # More files than can be counted: they must not hide what is written besides.
            return free_before is not None and self._free < floor and free_before - self._free > GROWTH_SLACK
        self._used = used
        if before is None:
            return False
        limit = self._limits.disk_mb << 20
        if limit and used > limit and used - before > GROWTH_SLACK:
            return True
        if floor and any(map(files_run_out, self._directories)):
            files_before, self._files = self._files, disk_usage(self._directories, count_files=True)
            return self._files is None or (files_before is not None and self._files > max(files_before, MANY_FILES))
        return used - before > FLOOR_GROWTH and self._free < floor


def kill_largest_over(pid: int, limit: int, spared: int = 1) -> bool:
    """Kill the largest process below ``pid`` if all together hold more than ``limit`` bytes; whether one was killed.

    The first ``spared`` processes of the tree are the sandbox itself.
    """
    pids = process_tree(pid)
    # Resident sizes count shared pages once per process: an upper bound that is cheap to read.
    if sum(map(_resident, pids)) <= limit:
        return False
    sizes = {candidate: _proportional(candidate) for candidate in pids}
    if sum(sizes.values()) <= limit:
        return False
    victim = max(pids[spared:], key=lambda one: sizes[one], default=None)
    return victim is not None and _kill_below(pid, victim)


def disk_usage(directories: Sequence[Path], *, count_files: bool = False) -> int | None:
    """Bytes on disk below ``directories``, or the number of files; None if counting takes longer than ``DU_TIMEOUT``.

    ``du`` copes with trees of any depth and follows no link.
    """
    present = [str(directory) for directory in directories if directory.is_dir()]
    if not present:
        return 0
    try:
        run = subprocess.run(
            ["du", "-sx", "--inodes" if count_files else "-k", "--", *present],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DU_TIMEOUT,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    sizes = [line.split("\t")[0] for line in run.stdout.splitlines()]
    return sum(int(size) for size in sizes if size.isdigit()) << (0 if count_files else 10)


def free_space(directory: Path) -> int:
    """Bytes that are free for an ordinary user."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def files_run_out(directory: Path) -> bool:
    """Whether the file system has hardly any inode left for an ordinary user; some have no fixed number of them."""
    status = os.statvfs(directory)
    return status.f_files > 0 and status.f_favail < status.f_files * LEAST_FREE_FILES


def _resident(pid: int) -> int:
    return _sum_fields(f"/proc/{pid}/status", ("RssAnon", "RssShmem"))


def _proportional(pid: int) -> int:
    return _sum_fields(f"/proc/{pid}/smaps_rollup", ("Pss_Anon", "Pss_Shmem")) or _resident(pid)


def _sum_fields(file: str, names: Sequence[str]) -> int:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return 0
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    return sum(int(values[name].split()[0]) << 10 for name in names if name in values)


def _kill_below(root: int, pid: int) -> bool:
    """Kill ``pid`` unless its number has come to belong to somebody outside of the tree."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if pid not in process_tree(root):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
