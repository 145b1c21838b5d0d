"""The thread that owns every sandbox: sessions are spawned, spoken to and watched on its event loop.

``bwrap --die-with-parent`` means the *thread* that forked it (``prctl(PR_SET_PDEATHSIG)``), so sessions must be
spawned by a thread that lives as long as they may.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from pathlib import Path
from typing import Any, TypeVar

from deerflow.sandbox.interface import SandboxRuntimeError
from deerflow.sandbox.supervisor import ProcessTable, send_signal

T = TypeVar("T")

KILL_ROUNDS = 100


class Spawner:
    """An event loop in a daemon thread, and beside it the one thread that forks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._forker: ThreadPoolExecutor | None = None
        self._forking_thread: threading.Thread | None = None
        self._closed = False

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await ``coroutine`` on the sandbox loop from any loop. Cancelling the caller cancels it.

        Raises:
            SandboxRuntimeError: the spawner was closed.
        """
        try:
            loop = self._running_loop()
        except SandboxRuntimeError:
            coroutine.close()
            raise
        # In a context of its own: tasks and timers of the loop outlive the run that calls, and would keep all that it held.
        return await asyncio.wrap_future(Context().run(asyncio.run_coroutine_threadsafe, coroutine, loop))

    @property
    def running(self) -> bool:
        """Whether anything was ever scheduled and not closed since."""
        return self._loop is not None

    async def spawn(self, argv: Sequence[str], *, descriptors: Sequence[int], stderr: int) -> subprocess.Popen[bytes]:
        """Fork and exec ``argv`` with an empty environment and no descriptor but the given ones.

        Raises:
            OSError: the program cannot be executed.
        """
        forker = self._forker
        if forker is None:
            raise SandboxRuntimeError("The sandbox spawner is not running.")
        return await asyncio.get_running_loop().run_in_executor(forker, self._spawn, argv, descriptors, stderr)

    def close(self) -> None:
        """Stop the loop and its threads. Every process spawned here dies with them."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
            forker, self._forker = self._forker, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
        if forker is not None:
            forker.shutdown(wait=False)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise SandboxRuntimeError("The sandbox provider was shut down.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_exception_handler(_report)
                self._forker = ThreadPoolExecutor(1, "sandbox-fork", self._remember_forking_thread)
                threading.Thread(target=self._run, args=(self._loop,), name="sandbox-loop", daemon=True).start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            # Whoever awaits something here would wait for ever; and a coroutine that is merely dropped runs its last
            # lines wherever the garbage collector happens to be called.
            for task in (left := asyncio.all_tasks(loop)):
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    def _remember_forking_thread(self) -> None:
        self._forking_thread = threading.current_thread()

    def _spawn(self, argv: Sequence[str], descriptors: Sequence[int], stderr: int) -> subprocess.Popen[bytes]:
        if threading.current_thread() is not self._forking_thread:
            raise AssertionError("A sandbox may only be spawned by the spawner's own thread: it dies with its parent.")
        return subprocess.Popen(
            argv,
            pass_fds=descriptors,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd="/",
        )


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # While the interpreter ends, every sandbox dies with us and executors refuse work: there is nothing to report.
    if not str(context.get("exception")).endswith("shutdown"):
        loop.default_exception_handler(context)


# processes by descent, as the host's /proc shows them, or where there is none, ``ps`` -------------------------------------


def process_tree(pid: int, most: int | None = None) -> list[int]:
    """``pid`` and everything below it, parents first; no further than ``most`` of them and one."""
    found, waiting = [], [pid]
    while waiting and (most is None or len(found) <= most):
        current = waiting.pop()
        found.append(current)
        waiting += _children(current)
    return found


def kill_tree(pid: int, uid: int | None = None, spared: int = 1) -> None:
    """Kill everything below ``pid``, and with a ``uid`` of the sandbox's own whatever else runs under it. Blocks.

    The first ``spared`` processes of the tree, parents first, live on.
    """
    for _ in range(KILL_ROUNDS):
        victims = process_tree(pid)[spared:]
        if uid is not None:
            victims += _processes_of(uid) - {pid}
        if not victims:
            return
        send_signal(victims, signal.SIGSTOP)
        send_signal(victims, signal.SIGKILL)
        time.sleep(0.005)


def _processes_of(uid: int) -> set[int]:
    found: set[int] = set()
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"\nUid:\t{uid}\t" in (status := (directory / "status").read_text()) and "\nState:\tZ" not in status:
                found.add(int(directory.name))
    return found


def _children(pid: int) -> list[int]:
    if not Path("/proc/self").exists():
        return ProcessTable().children.get(pid, [])
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that has just ended hides no others
                children += map(int, (task / "children").read_bytes().split())
    return children
