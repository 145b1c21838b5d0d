"""What all isolating providers share: one sandbox per thread, a bounded number of sessions, idle ones ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
import zlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from deerflow.identity import check_id
from deerflow.sandbox.egress import EgressProxy
from deerflow.sandbox.interface import (
    UPLOADS,
    Isolation,
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
    ensure_directories,
    writable_directories,
)
from deerflow.sandbox.session import Launch, Session, Shell
from deerflow.sandbox.spawner import Spawner
from deerflow.sandbox.watch import Watch

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
        """
        self.spawner = Spawner()
        self.state_dir = data_dir.absolute() / "sandbox"
        self.etc_extra = tuple(etc_extra)
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

    def probe(self) -> ProbeReport:
        return self._examination()[0]

    async def acquire(self, thread_id: str, *, user_id: str, policy: Policy) -> Sandbox:
        key = sandbox_id(check_id(thread_id, "thread id"), check_id(user_id, "user id"))
        known = self._sandboxes.get(key)
        if known is not None and not self.drops_root and known.policy == policy:
            known.last_used = time.monotonic()
            return known
        return await asyncio.to_thread(self._acquire, key, policy)

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
        report, launcher = await asyncio.to_thread(self._examination)
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
                directory = await asyncio.to_thread(_socket_directory, sandbox.uid)
                proxy.push_async_callback(asyncio.to_thread, shutil.rmtree, directory, ignore_errors=True)
                record = partial(log.info, "sandbox network %s: %s", sandbox.id)
                server = EgressProxy(sandbox.policy.network, log=record)
                proxy.push_async_callback(server.close)
                await server.start(directory / PROXY_SOCKET)
                request = replace(request, proxy_directory=directory)
            session = await Session.start(partial(_launch, launcher, request), self.spawner)
            session.cleanup = proxy.pop_all()
        watch = asyncio.create_task(self._watch(session, request.policy, "nproc" not in sandbox.isolation.limits))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return session

    async def _watch(self, session: Session, policy: Policy, count_processes: bool) -> None:
        try:
            directories = writable_directories(policy)
            await Watch(session, policy.limits, directories, count_processes=count_processes).run()
        except SandboxRuntimeError as error:
            log.info("A sandbox ended while it was watched: %s", error)

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
        uid = self._uid(sandbox_id) if self.drops_root and launcher is not None else None
        known = self._sandboxes.get(sandbox_id)
        if uid is not None:
            _hand_over(policy, uid, known)
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


def _hand_over(policy: Policy, uid: int, known: IsolatedSandbox | None) -> None:
    """Give the thread's directories to its uid; later, uploads again, which the host adds while the thread lives."""
    if known is None or known.policy != policy:
        for directory in writable_directories(policy):
            adopt(directory, uid)
    elif known.uploads_seen != _modified(policy):
        for mount in policy.mounts:
            if mount.path == UPLOADS and not mount.read_only:
                adopt(mount.host, uid)


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


def _socket_directory(uid: int | None) -> Path:
    # Not below the data directory: a socket's path may have 107 bytes only (unix(7)).
    directory = Path(tempfile.mkdtemp(prefix="deerflow-"))
    if uid is not None:
        os.chown(directory, uid, uid)
    return directory


# as root: a host uid of its own for every thread, and its directories handed over to it ----------------------------------

FIRST_UID = 200_000
LAST_UID = 2_000_000_000
RANGES, RANGE = 4000, 100_000
MAX_ADOPTED = 200_000


def thread_uid(database: Path, owner: str, first: int = FIRST_UID) -> int:
    """The stable uid of ``owner``, allotted on first use; several processes agree on it by ``database``. Blocks.

    Raises:
        RuntimeError: every uid is taken.
    """
    database.parent.mkdir(0o711, parents=True, exist_ok=True)
    database.touch(0o600)
    database.chmod(0o600)  # one of an earlier version
    connecting = contextlib.closing(sqlite3.connect(database, timeout=30, isolation_level=None))
    with connecting as connection, connection:  # the second commits, or rolls back
        connection.execute(
            "CREATE TABLE IF NOT EXISTS identities (owner TEXT PRIMARY KEY, uid INTEGER UNIQUE NOT NULL)"
        )
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute("SELECT uid FROM identities WHERE owner = ?", (owner,)).fetchone()
        if row is None:
            row = connection.execute("SELECT coalesce(max(uid) + 1, ?) FROM identities", (first,)).fetchone()
            if row[0] > LAST_UID:
                raise RuntimeError(f"No sandbox uid is left; delete {database} and the threads it names.")
            connection.execute("INSERT INTO identities VALUES (?, ?)", (owner, row[0]))
        return int(row[0])


def range_of(directory: Path) -> int:
    """Where the uids of the installation in ``directory`` begin.

    The kernel counts processes by uid: threads of two installations on one machine must not share one.
    """
    return FIRST_UID + zlib.crc32(os.fsencode(directory)) % RANGES * RANGE


def adopt(directory: Path, uid: int) -> None:
    """Give ``directory`` and what lies in it to ``uid`` without following any link.

    Directories that belong to ``uid`` already are looked at only at the top level: below them the sandbox itself wrote.
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    waiting = [opened]
    seen = 0
    if os.fstat(opened).st_uid != uid:
        os.fchown(opened, uid, uid)
        os.fchmod(opened, 0o700)
    try:
        while waiting:
            parent = waiting.pop()
            try:
                for name in os.listdir(parent):  # noqa: PTH208 - by descriptor
                    seen += 1
                    if seen > MAX_ADOPTED:
                        return
                    child = _adopt_entry(parent, name, uid)
                    if child is not None:
                        waiting.append(child)
            finally:
                os.close(parent)
    finally:
        for parent in waiting:
            os.close(parent)


def _adopt_entry(parent: int, name: str, uid: int) -> int | None:
    """Chown one entry; a descriptor of it if it is a directory that was somebody else's."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if status.st_uid == uid:
            return None
        # The directory belongs to the sandbox: hold on to what was looked at, it may swap the name meanwhile.
        entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return None
    try:
        status = os.fstat(entry)
        # A second hard link may lie outside of the sandbox.
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            return None
        os.chown(f"/proc/self/fd/{entry}", uid, uid) if not stat.S_ISLNK(status.st_mode) else None
        if stat.S_ISDIR(status.st_mode):
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=entry)
        return None
    except OSError:
        return None
    finally:
        os.close(entry)
