"""A thread's commands and files on the host itself. It confines nothing; see ``docs/sandbox.md``."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock

from deerflow.sandbox.environment import check_command, check_environment
from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.host_files import HostFilesSandbox
from deerflow.sandbox.interface import (
    WORKSPACE,
    ExecResult,
    Isolation,
    OnOutput,
    Policy,
    Process,
    SandboxCommandError,
    SandboxNotFoundError,
    SandboxUnavailableError,
)
from deerflow.sandbox.isolation.plan import thread_mounts
from deerflow.sandbox.isolation.recipe import HOME
from deerflow.sandbox.local.command import CommandSpec, RunningCommand, ShellState
from deerflow.sandbox.local.output import CappedOutput, LiveText
from deerflow.sandbox.local.paths import HostPaths
from deerflow.sandbox.local.process_tree import kill_tree

MAX_PROCESSES = 64
UNREAD_BYTES = 1 << 20
"""What is kept of a background process's output until it is read."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"
NO_COMMANDS = (
    "Commands are off: this sandbox would run them on the host without isolation. "
    "Set sandbox.allow_host_bash to true in config.yaml if you trust everything the agent reads. File tools work."
)
NO_BASH = "Commands cannot be run: bash was not found on this machine. File tools work."
UNMAPPED = (
    "This sandbox has no real /mnt paths: they work in command lines, not inside scripts and here-documents. "
    "Use paths relative to the working directory there."
)


class LocalSandbox(HostFilesSandbox):
    """One thread's sandbox without isolation. Its methods may be awaited from any event loop."""

    def __init__(
        self, sandbox_id: str, policy: Policy, isolation: Isolation, root: Path, bash: str | None, refusal: str
    ) -> None:
        """Blocks for a few file operations.

        Args:
            root: a private directory for this object; removed by ``end``, or with the object, or when the interpreter ends.
            bash: the shell, or None: commands are refused with ``refusal``.
        """
        self.id = sandbox_id
        self.isolation = isolation
        self.policy = policy
        mounts = thread_mounts(policy)
        self._files = SandboxFiles(mounts)
        self._paths = HostPaths(mounts, root)
        self._paths.create()
        self._root = root
        self._remove_root = weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        self._bash = bash
        self._refusal = refusal
        # Unique on this machine, so that a kill never reaches another sandbox.
        self._mark = root.name
        self._lock = Lock()
        self._count = 0
        self._start = ShellState(self._paths.host(WORKSPACE))
        self._state = self._start
        self._processes: dict[str, tuple[str, RunningCommand]] = {}
        self._running: set[RunningCommand] = set()
        self._ended: deque[int] = deque(maxlen=256)
        """Sessions whose leader has ended; something may still run in them."""

    # commands -------------------------------------------------------------------------------------------------------

    async def exec(
        self,
        command: str,
        *,
        timeout: float = 120,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        max_output: int = 1 << 20,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        check_command(command)
        check_environment(env or {})
        output = CappedOutput(max_output // 2, max_output - max_output // 2)
        texts: asyncio.Queue[str | None] = asyncio.Queue()
        push = partial(_push, asyncio.get_running_loop(), texts)
        live = LiveText(self._paths, max_output, push) if on_output else None
        listener = asyncio.create_task(_pass_on(texts, on_output)) if on_output else None
        start = partial(self._started, command, cwd, env or {}, output, live, flood_cap=max_output)
        try:
            running = await self._begin(start)
            timed_out = await self._wait_for(running, timeout)
            push(None)
            if listener:
                await listener
        finally:
            if listener:
                listener.cancel()
        return await asyncio.to_thread(self._result, running, command, timed_out, stateless=bool(env))

    async def start_process(self, command: str, *, cwd: str | None = None) -> Process:
        check_command(command)
        return await asyncio.to_thread(self._start_process, command, cwd)

    async def read_process(self, process_id: str) -> Process:
        return self._report(process_id)

    async def kill_process(self, process_id: str) -> Process:
        _, running = self._process(process_id)
        await asyncio.to_thread(running.kill)
        return self._report(process_id)

    async def list_processes(self) -> list[Process]:
        return [
            Process(name, command, running.exit_code is None, running.exit_code)
            for name, (command, running) in list(self._processes.items())
        ]

    async def reset(self) -> None:
        await asyncio.to_thread(self._reset)

    # for the provider -----------------------------------------------------------------------------------------------

    def rest(self) -> None:
        """Give back the descriptors of an idle sandbox. Blocks."""
        self._files.close()

    def end(self) -> None:
        """Kill every process, for good. Blocks."""
        self._reset()
        self._files.close()
        self._remove_root()

    # blocking -------------------------------------------------------------------------------------------------------

    def _started(
        self,
        command: str,
        cwd: str | None,
        env: Mapping[str, str],
        output: CappedOutput,
        live: LiveText | None = None,
        flood_cap: int | None = None,
    ) -> RunningCommand:
        if self._bash is None:
            raise SandboxUnavailableError(self._refusal)
        with self._lock:
            self._count += 1
            mark = f"{self._mark}.{self._count}"
        directory = self._directory(cwd)
        definitions = b"" if env else self._state.definitions
        spec = CommandSpec(
            bash=self._bash,
            script=self._paths.to_host(command),
            state=ShellState(directory, definitions),
            environment=self._environment() | dict(env),
            mark=mark + ".",
            limits=self.policy.limits,
            directory=self._root,
        )
        try:
            running = RunningCommand(spec, output, live, flood_cap)
        except OSError as error:
            raise SandboxCommandError(f"The command could not be started: {error.strerror}.") from error
        with self._lock:
            self._running.add(running)
        running.ended.add_done_callback(lambda _: self._forget(running))
        return running

    def _forget(self, running: RunningCommand) -> None:
        with self._lock:
            self._running.discard(running)
            self._ended.append(running.pid)

    def _directory(self, cwd: str | None) -> str:
        if cwd is not None:
            directory = self._paths.host(cwd)
            if not Path(directory).is_dir():
                raise SandboxCommandError(f"There is no directory {cwd}.")
            return directory
        return self._state.cwd if Path(self._state.cwd).is_dir() else self._start.cwd

    def _environment(self) -> dict[str, str]:
        policy = self.policy
        tools = f"{policy.tools_dir}/bin:" if policy.tools_dir else ""
        home = self._paths.host(HOME) if policy.home else self._start.cwd
        return {
            "PATH": tools + SYSTEM_PATH,
            "HOME": home,
            "LANG": "C.UTF-8",
            "TMPDIR": self._paths.host("/tmp") if policy.tmp else "/tmp",
            "TERM": "dumb",
            "MPLBACKEND": "Agg",
            "PAGER": "cat",
            "PYTHONUNBUFFERED": "1",
        } | dict(policy.environment)

    def _result(self, running: RunningCommand, command: str, timed_out: bool, *, stateless: bool) -> ExecResult:
        state = running.take_state()
        stopped = timed_out or running.flooded
        if state is not None and not stateless and not stopped:
            self._state = state
        output = self._paths.to_virtual(running.output.text())
        unmapped = running.exit_code and not stopped and self._paths.in_data(command)
        return ExecResult(
            exit_code=None if stopped else running.exit_code,
            output=output,
            timed_out=timed_out,
            killed_for="flood" if running.flooded else None,
            truncated=running.output.dropped > 0,
            total_bytes=running.output.total,
            duration_ms=running.duration_ms,
            cwd=self._paths.to_virtual(self._state.cwd),
            notice=UNMAPPED if unmapped else "",
        )

    def _start_process(self, command: str, cwd: str | None) -> Process:
        with self._lock:
            ended = [name for name, (_, running) in self._processes.items() if running.exit_code is not None]
            if len(self._processes) >= MAX_PROCESSES and ended:
                del self._processes[ended[0]]
            if len(self._processes) >= MAX_PROCESSES:
                raise SandboxCommandError(f"{MAX_PROCESSES} background processes are running. Kill one first.")
        running = self._started(command, cwd, {}, CappedOutput(0, UNREAD_BYTES))
        with self._lock:
            name = f"p{self._count}"
            self._processes[name] = (command, running)
        running.ended.add_done_callback(lambda _: running.take_state())
        return Process(name, command, True)

    def _process(self, name: str) -> tuple[str, RunningCommand]:
        if name not in self._processes:
            raise SandboxNotFoundError(f"There is no background process {name!r}.")
        return self._processes[name]

    def _report(self, name: str) -> Process:
        command, running = self._process(name)
        code = running.exit_code
        text, dropped = running.output.take()
        return Process(name, command, code is None, code, self._paths.to_virtual(text), dropped)

    def _reset(self) -> None:
        with self._lock:
            running, ended = set(self._running), list(self._ended)
            self._processes.clear()
        kill_tree({one.pid for one in running}, self._mark + ".", ended_leaders=ended, grace=0)
        for one in running:
            one.kill(0)
        self._state = self._start

    async def _wait_for(self, running: RunningCommand, timeout: float) -> bool:
        """Until the command has ended; True if it had to be stopped for its time."""
        ended = asyncio.wrap_future(running.ended)
        try:
            await asyncio.wait_for(asyncio.shield(ended), timeout)
            return False
        except TimeoutError:
            await asyncio.to_thread(running.kill)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ended), 5)
            return True
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.to_thread(self._abandon, running))
            raise

    async def _begin(self, start: Callable[[], RunningCommand]) -> RunningCommand:
        """Start a command in a thread. A cancelled caller leaves none behind."""
        starting = asyncio.ensure_future(asyncio.to_thread(start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.to_thread(self._abandon, await starting))
            raise

    def _abandon(self, running: RunningCommand) -> None:
        running.kill(0.2)
        running.take_state()


async def _pass_on(texts: asyncio.Queue[str | None], on_output: OnOutput) -> None:
    while (text := await texts.get()) is not None:
        seen = on_output(text)
        if inspect.isawaitable(seen):
            await seen


def _push(loop: asyncio.AbstractEventLoop, texts: asyncio.Queue[str | None], text: str | None) -> None:
    with suppress(RuntimeError):  # the caller's loop was closed
        loop.call_soon_threadsafe(texts.put_nowait, text)
