"""What all isolating providers share: one sandbox per thread, a bounded number of sessions, idle ones ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from deerflow.identity import check_id
from deerflow.sandbox.egress import Decision, EgressProxy
from deerflow.sandbox.interface import (
    UPLOADS,
    Isolation,
    Policy,
    ProbeReport,
    Sandbox,
    SandboxProvider,
    SandboxRuntimeError,
    sandbox_id,
)
from deerflow.sandbox.isolated import IsolatedSandbox, UnavailableSandbox
from deerflow.sandbox.isolation.identities import ThreadIdentities, adopt, range_of
from deerflow.sandbox.isolation.plan import (
    PROXY_SOCKET,
    Launcher,
    LaunchRequest,
    ensure_directories,
    writable_directories,
)
from deerflow.sandbox.session import Session, Shell
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

    def __init__(
        self,
        data_dir: Path,
        *,
        max_sessions: int = 40,
        sleep_after: float = 120,
        idle_timeout: float = 900,
        etc_extra: Sequence[str] = (),
        first_uid: int | None = None,
    ) -> None:
        """
        Args:
            data_dir: where threads' directories lie; the provider keeps its own files in ``data_dir/sandbox``.
            max_sessions: shells that may be up at once.
            sleep_after: seconds after which an unused shell is ended unless it runs background processes, 0 for never.
            idle_timeout: seconds after which an unused shell is ended with its background processes, 0 for never.
            etc_extra: further paths below /etc that sandboxes may read.
            first_uid: as root, threads run as host uids from here on; without it in a range of the data directory's own.
        """
        self.spawner = Spawner()
        self.state_dir = data_dir.absolute() / "sandbox"
        self.etc_extra = tuple(etc_extra)
        self._max_sessions = max_sessions
        self._sleep_after = sleep_after
        self._idle_timeout = idle_timeout
        self._identities = ThreadIdentities(self.state_dir / "identities.db", first_uid or range_of(self.state_dir))
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
        self._ensure_reaper()
        starting = asyncio.create_task(self._start(sandbox, shell, counted))
        self._finish(starting)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._discard)
            raise

    async def _start(self, sandbox: IsolatedSandbox, shell: Shell, counted: bool) -> Session:
        launcher = (await asyncio.to_thread(self._examination))[1]
        if launcher is None:
            raise SandboxRuntimeError("The sandbox is not available.")
        if not counted:
            return await self._start_with(launcher, sandbox, LaunchRequest(sandbox.policy, sandbox.uid, shell, True))
        async with self._room:
            await self._make_room(sandbox)
            self._starting += 1
        try:
            return await self._start_with(launcher, sandbox, LaunchRequest(sandbox.policy, sandbox.uid, shell))
        finally:
            self._starting -= 1

    async def _start_with(self, launcher: Launcher, sandbox: IsolatedSandbox, request: LaunchRequest) -> Session:
        proxy_directory, proxy = await self._start_proxy(sandbox)
        try:
            launch = await asyncio.to_thread(launcher.prepare, replace(request, proxy_directory=proxy_directory))
            session = await Session.start(launch, self.spawner)
        except BaseException:
            await _close_proxy(proxy, proxy_directory)
            raise
        session.on_close(partial(_close_proxy, proxy, proxy_directory))
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

    async def _start_proxy(self, sandbox: IsolatedSandbox) -> tuple[Path | None, EgressProxy | None]:
        if sandbox.isolation.network not in ("allowlist", "internet"):
            return None, None
        directory = await asyncio.to_thread(self._socket_directory, sandbox.uid)

        def record(decision: Decision) -> None:
            log.info("sandbox network %s: %s", sandbox.id, decision)

        proxy = EgressProxy(sandbox.policy.network, log=record)
        try:
            await proxy.start(directory / PROXY_SOCKET)
        except BaseException:
            await _close_proxy(proxy, directory)
            raise
        return directory, proxy

    def _socket_directory(self, uid: int | None) -> Path:
        # Not below the data directory: a socket's path may have 107 bytes only (unix(7)).
        directory = Path(tempfile.mkdtemp(prefix="deerflow-"))
        if uid is not None:
            os.chown(directory, uid, uid)
        return directory

    def _ensure_reaper(self) -> None:
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.create_task(self._reap())

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
            if self._idle_timeout and unused >= self._idle_timeout:
                await sandbox.retire()
                await sandbox.close_files()
            elif sleep_after and unused >= sleep_after:
                await sandbox.sleep()
                await sandbox.close_files()
        with self._sandboxes_lock:
            asleep = [one for one in self._sandboxes.values() if not one.live and not one.busy]
            for sandbox in sorted(asleep, key=lambda one: one.last_used)[: len(self._sandboxes) - MAX_REMEMBERED]:
                if len(self._sandboxes) > MAX_REMEMBERED:
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
        report, launcher = self._examination()
        ensure_directories(policy)
        # Without a launcher nothing runs, and a user of its own may be the very thing that is missing.
        uid = self._identities.uid(sandbox_id) if self.drops_root and launcher is not None else None
        known = self._sandboxes.get(sandbox_id)
        if uid is not None:
            _hand_over(policy, uid, known)
        with self._sandboxes_lock:
            sandbox = self._sandboxes.get(sandbox_id)
            if sandbox is None:
                sandbox = self._make_sandbox(sandbox_id, policy, uid, report, launcher)
                self._sandboxes[sandbox_id] = sandbox
            elif sandbox.policy != policy:
                sandbox.adapt(policy, self._isolation(launcher, policy))
            sandbox.uploads_seen = _modified(policy)
            sandbox.last_used = time.monotonic()
            return sandbox

    def _make_sandbox(
        self, sandbox_id: str, policy: Policy, uid: int | None, report: ProbeReport, launcher: Launcher | None
    ) -> IsolatedSandbox:
        isolation = self._isolation(launcher, policy)
        if launcher is None:
            return UnavailableSandbox(sandbox_id, policy, isolation, uid, self, explain(report))
        return self.sandbox_class(sandbox_id, policy, isolation, uid, self)

    def _isolation(self, launcher: Launcher | None, policy: Policy) -> Isolation:
        if launcher is not None:
            return launcher.isolation(policy)
        return Isolation("none", real_paths=False, network="none", pid=False, warnings=("Commands are not available.",))


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


async def _close_proxy(proxy: EgressProxy | None, directory: Path | None) -> None:
    if proxy is not None:
        await proxy.close()
    if directory is not None:
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
