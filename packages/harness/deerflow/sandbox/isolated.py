"""A thread's sandbox as tools see it, whatever isolates it: a session that comes and goes, and files on the host."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from deerflow.sandbox import protocol
from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.files.search import grep_command, grep_files, parse_grep
from deerflow.sandbox.interface import (
    WORKSPACE,
    Entry,
    ExecResult,
    GrepMatch,
    Isolation,
    OnOutput,
    Policy,
    Process,
    Sandbox,
    SandboxCommandError,
    SandboxError,
    SandboxNotFoundError,
)
from deerflow.sandbox.isolation.plan import thread_mounts
from deerflow.sandbox.session import Session, SessionDiedError, Shell, bash_code
from deerflow.sandbox.spawner import Spawner

P = ParamSpec("P")
T = TypeVar("T")

GREP_TIMEOUT = 60
GREP_OUTPUT = 2 << 20

RESTARTED = (
    "The sandbox was idle and has been restarted: background processes are gone; directory and environment were kept."
)
CHANGED = (
    "The sandbox was restarted with new settings: background processes are gone; directory and environment were kept."
)
DIED = "The sandbox had ended and was restarted: background processes, working directory and environment are gone. Files were kept."


class SessionSource(Protocol):
    """Where a sandbox gets its sessions; the provider."""

    spawner: Spawner

    async def start_session(self, sandbox: IsolatedSandbox, shell: Shell, *, counted: bool) -> Session:
        """A new session, on the sandbox loop. ``counted``: it takes a place among the provider's sessions."""
        ...


class IsolatedSandbox(Sandbox):
    """One thread's sandbox. Its methods may be awaited from any event loop."""

    def __init__(
        self, sandbox_id: str, policy: Policy, isolation: Isolation, uid: int | None, source: SessionSource
    ) -> None:
        self.id = sandbox_id
        self.isolation = isolation
        self.policy = policy
        self.uid = uid
        self.last_used = time.monotonic()
        self.uploads_seen = 0
        self._source = source
        self._files = SandboxFiles(thread_mounts(policy), owner=uid)
        self._session: Session | None = None
        self._session_policy = policy
        self._starting = asyncio.Lock()
        self._shell = Shell()
        self._notice = ""
        self._process_count = 0
        self._generation = secrets.token_hex(2)
        """Part of the processes' ids: those of an earlier server are never taken for ones of this."""
        self._holders = 0
        self._holders_lock = threading.Lock()

    # commands -------------------------------------------------------------------------------------------------------

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
        check_command(command)
        check_environment(env or {})
        keep = (self._directory(keep_output), keep_after) if keep_output else None
        run = partial(self._exec_once, env=env) if env else self._exec_in_session
        start = partial(run, command, cwd, timeout=timeout, max_output=max_output, keep=keep)
        try:
            return await (self._call(start) if on_output is None else self._stream(start, on_output))
        except SandboxCommandError as error:
            raise SandboxCommandError(self._shown(str(error))) from error

    async def run(
        self, argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> ExecResult:
        for argument in argv:
            check_command(argument)
        check_environment(env or {})
        return await self._call(
            partial(self._exec_in_session, list(argv), cwd, env=env, timeout=timeout, stateless=True)
        )

    @property
    def awake(self) -> bool:
        return self.live

    async def start_process(self, command: str, *, cwd: str | None = None) -> Process:
        check_command(command)
        return await self._call(partial(self._start_process, command, cwd))

    async def read_process(self, process_id: str) -> Process:
        return await self._call(partial(self._ask_process, process_id, Session.read_process))

    async def kill_process(self, process_id: str) -> Process:
        return await self._call(partial(self._ask_process, process_id, Session.stop_process))

    async def list_processes(self) -> list[Process]:
        return await self._call(self._list_processes)

    async def reset(self) -> None:
        await self._call(self._reset)

    # files ----------------------------------------------------------------------------------------------------------

    async def read(self, path: str, *, offset: int = 0, limit: int = 50 << 20) -> tuple[bytes, int]:
        return await self._on_files(self._files.read, path, offset, limit)

    async def write(self, path: str, data: bytes, *, append: bool = False) -> None:
        await self._on_files(self._files.write, path, data, append)

    async def stat(self, path: str) -> Entry | None:
        return await self._on_files(self._files.stat, path)

    async def list(self, path: str, *, depth: int = 2, cap: int = 1000) -> tuple[list[Entry], bool]:
        return await self._on_files(self._files.list, path, depth, cap)

    async def fingerprint(self, path: str) -> str | None:
        return await self._on_files(self._files.fingerprint, path)

    async def remove(self, path: str) -> None:
        await self._on_files(self._files.remove, path)

    async def glob(
        self, root: str, pattern: str, *, include_dirs: bool = False, cap: int = 200
    ) -> tuple[list[str], bool]:
        return await self._on_files(self._files.glob, root, pattern, include_dirs=include_dirs, cap=cap)

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
        if self.isolation.level == "none":
            # Commands are refused, or see the host's files as we do.
            search = partial(grep_files, self._files, root, pattern)
            return await self._on_files(search, glob=glob, literal=literal, case_sensitive=case_sensitive, cap=cap)
        command = grep_command(root, pattern, glob=glob, literal=literal, case_sensitive=case_sensitive, cap=cap)
        run = partial(self._exec_in_session, command, timeout=GREP_TIMEOUT, max_output=GREP_OUTPUT, stateless=True)
        result = await self._call(run)
        if result.timed_out:
            raise SandboxError(f"The search took longer than {GREP_TIMEOUT} s. Search a smaller directory.")
        return parse_grep(result.output)

    def adapt(self, policy: Policy, isolation: Isolation) -> None:
        """Follow a changed policy: files at once, the shell when it is next idle. Blocks."""
        if thread_mounts(policy) != thread_mounts(self.policy):
            self._files = SandboxFiles(thread_mounts(policy), owner=self.uid)
        self.policy, self.isolation = policy, isolation

    # for the provider, on the sandbox loop ----------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """Whether a session runs."""
        return self._session is not None and self._session.alive

    @property
    def launcher_pid(self) -> int | None:
        """The host's process that the session lives and dies with."""
        return self._session.pid if self._session is not None and self._session.alive else None

    @property
    def busy(self) -> bool:
        """Whether somebody waits for this sandbox."""
        return self._holders > 0 or self._starting.locked() or (self._session is not None and self._session.busy)

    async def retire(self, *, spare_background: bool = False) -> None:
        """End the session, keeping what the next one begins with.

        Args:
            spare_background: not if background processes run in it or their output is unread.
        """
        # A command that comes meanwhile waits for what this keeps.
        async with self._starting:
            await self._retire(RESTARTED, spare_background=spare_background)

    async def end(self) -> None:
        """End the session for good."""
        await self._drop_session()
        await asyncio.to_thread(self._files.close)

    async def close_files(self) -> None:
        """Give back the descriptors of an idle sandbox."""
        if not self.busy:
            await asyncio.to_thread(self._files.close)

    # the session, on the sandbox loop ---------------------------------------------------------------------------------

    async def _exec_in_session(
        self,
        command: str | Sequence[str],
        cwd: str | None = None,
        *,
        stateless: bool = False,
        **options: Any,
    ) -> ExecResult:
        session = await self._live_session()
        before, cwd = session.cwd or self._shell.cwd, self._directory(cwd)
        given = self._outgoing(command) if isinstance(command, str) else [self._outgoing(each) for each in command]
        try:
            result = await session.execute(given, cwd=cwd, stateless=stateless, **options)
        except SessionDiedError:
            self._notice = DIED
            raise
        notice, self._notice = (self._notice, "") if not stateless else ("", self._notice)
        if result.killed_for == "host-clock":
            notice = DIED
        result = self._incoming(command if isinstance(command, str) else "", replace(result, notice=notice))
        return replace(result, moved=not stateless and result.cwd != (self._shown(before) if before else WORKSPACE))

    async def _exec_once(self, command: str, cwd: str | None, **options: Any) -> ExecResult:
        """A sandbox for this command alone: processes of the session cannot look at its environment."""
        async with self._starting:
            here = (self._session.cwd if self._session is not None else None) or self._shell.cwd
        cwd = self._directory(cwd)
        session = await self._source.start_session(self, Shell(cwd=here), counted=False)
        try:
            result = await session.execute(self._outgoing(command), cwd=cwd, **options)
        finally:
            await asyncio.shield(session.close())
        return self._incoming(command, replace(result, cwd=here or result.cwd))

    async def _start_process(self, command: str, cwd: str | None) -> Process:
        session = await self._live_session()
        self._process_count += 1
        name = f"p{self._process_count}-{self._generation}"
        report = await session.start_process(name, self._outgoing(command), cwd=self._directory(cwd))
        session.processes[name] = command
        return self._process(name, command, report)

    async def _ask_process(
        self, name: str, ask: Callable[[Session, str], Awaitable[protocol.ProcessReport]]
    ) -> Process:
        session = self._session
        command = session.processes.get(name) if session is not None else None
        if session is None or command is None:
            raise SandboxNotFoundError(f"There is no background process {name!r}.")
        report = await ask(session, name)
        if not report.known:
            session.processes.pop(name, None)
            raise SandboxNotFoundError(f"There is no background process {name!r} any more.")
        return self._process(name, command, report)

    async def _list_processes(self) -> list[Process]:
        if self._session is None or not self._session.alive:
            return []
        listed: list[Process] = []
        for name, command in list(self._session.processes.items()):
            report = await self._session.read_process(name, peek=True)
            if report.known:
                listed.append(self._process(name, command, report))
        return listed

    def _process(self, name: str, command: str, report: protocol.ProcessReport) -> Process:
        output = self._shown(report.data.decode("utf-8", "replace"))
        return Process(name, command, report.running, bash_code(report.exit_code), output, report.dropped)

    async def _reset(self) -> None:
        async with self._starting:
            self._shell, self._notice = Shell(), ""
            if self._session is None or not self._session.alive:
                return
            try:
                await self._session.reset(forget=True)
            except SandboxError:
                await self._drop_session()

    async def _live_session(self) -> Session:
        async with self._starting:
            session = self._session
            if session is not None and session.alive:
                if session.busy or self._session_policy == self.policy:
                    return session
                await self._retire(CHANGED)
            elif session is not None:
                self._notice = self._notice or DIED
                await self._drop_session()
            self._session_policy = self.policy
            self._session = await self._source.start_session(self, self._shell, counted=True)
            return self._session

    async def _retire(self, notice: str, *, spare_background: bool = False) -> None:
        session = self._session
        if session is None:
            return
        try:
            shell, background = await session.shell()
            if background or session.processes:
                if spare_background:
                    return
                self._notice = notice
            self._shell = shell
        except SandboxError:
            self._shell, self._notice = Shell(), DIED
        self._session = None
        await asyncio.shield(session.close())

    async def _drop_session(self) -> None:
        session, self._session = self._session, None
        self._shell = Shell()
        if session is not None:
            await session.close()

    # for sandboxes whose paths are not virtual ------------------------------------------------------------------------

    def _outgoing(self, command: str) -> str:
        return command

    def _directory(self, cwd: str | None) -> str | None:
        return cwd

    def _shown(self, output: str) -> str:
        return output

    def _incoming(self, command: str, result: ExecResult) -> ExecResult:
        return result

    # between loops ----------------------------------------------------------------------------------------------------

    async def _call(self, start: Callable[..., Awaitable[T]]) -> T:
        async def run() -> T:
            return await start()

        with self._held():
            return await self._source.spawner.call(run())

    async def _stream(self, start: Callable[..., Awaitable[ExecResult]], on_output: OnOutput) -> ExecResult:
        """``on_output`` runs on the caller's loop, in the order of the output."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str | None] = asyncio.Queue()

        def push(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop was closed
                loop.call_soon_threadsafe(queue.put_nowait, text)

        running = asyncio.ensure_future(self._call(partial(start, on_text=push)))
        running.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (text := await queue.get()) is not None:
                seen = on_output(self._shown(text))
                if inspect.isawaitable(seen):
                    await seen
            return await running
        finally:
            running.cancel()

    async def _on_files(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._held():
            return await asyncio.to_thread(operation, *args, **kwargs)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with self._holders_lock:
            self._holders += 1
        try:
            yield
        finally:
            with self._holders_lock:
                self._holders -= 1
                self.last_used = time.monotonic()


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FORBIDDEN = frozenset(
    {"BASH_ENV", "ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "PATH", "SHELLOPTS", "BASHOPTS", "SBX_CWD"}
)
FORBIDDEN_PREFIXES = ("LD_", "BASH_FUNC_")
LARGEST = 128 << 10
"""Bytes of one NAME=value string that Linux takes (MAX_ARG_STRLEN)."""


def check_command(command: str) -> None:
    """Raises SandboxCommandError if bash could not be given ``command``."""
    if "\0" in command:
        raise SandboxCommandError("The command holds a NUL byte.")


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises SandboxCommandError if a variable has a bad name or value or would change how programs are started."""
    for name, value in environment.items():
        if not NAME.fullmatch(name):
            raise SandboxCommandError(f"{name!r} is not a name for an environment variable.")
        if name in FORBIDDEN or name.startswith(FORBIDDEN_PREFIXES):
            raise SandboxCommandError(f"{name} may not be set for a command: it changes how programs are started.")
        if "\0" in value:
            raise SandboxCommandError(f"The value of {name} holds a NUL byte.")
        try:
            size = len(value.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:
            raise SandboxCommandError(f"The value of {name} is not valid text.") from None
        if len(name) + size + 2 > LARGEST:
            raise SandboxCommandError(f"The value of {name} is longer than {LARGEST >> 10} KiB; use a file.")
