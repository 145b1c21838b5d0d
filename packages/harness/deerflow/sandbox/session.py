"""One live sandbox as the host sees it: a process, a control socket and the commands under way.

Everything here runs on the spawner's loop.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, Protocol, TypeVar

from deerflow.sandbox import protocol
from deerflow.sandbox.interface import ExecResult, SandboxCommandError, SandboxRuntimeError
from deerflow.sandbox.spawner import Spawner, kill_tree, process_tree
from deerflow.sandbox.supervisor import memory_file

START_TIMEOUT = 20.0
REPLY_TIMEOUT = 10.0
HOST_CLOCK_GRACE = 5.0
"""How much longer than a command's own timeout the host waits before it kills the whole sandbox."""
MAX_OUTPUT = 2 << 20
MAX_STDERR = 4096

KillReason = Literal["flood", "disk", "memory", "processes", "host-clock", "cancelled"]

E = TypeVar("E", bound=protocol.Event)

log = logging.getLogger(__name__)


class SessionDiedError(SandboxRuntimeError):
    """The sandbox ended while a command ran, or could not be started."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A program to spawn and the descriptors it needs, which are closed here when it runs."""

    argv: list[str]
    descriptors: list[int]
    start: dict[str, Any]
    """The supervisor's first message: environment, limits, cwd, state."""
    pid_namespace: bool = True
    """Whether everything inside dies with the launched process."""
    uid: int | None = None
    """The host uid whose processes all belong to this session, if any."""


@dataclass(frozen=True, slots=True)
class Shell:
    """What outlives a session: the working directory and the exported state."""

    cwd: str | None = None
    state: str = ""


class _Request:
    """A request under way: collects a command's head and holds the answer."""

    def __init__(
        self, kind: type[protocol.Event], limit: int = 0, on_text: Callable[[str], None] | None = None
    ) -> None:
        self.kind = kind
        """Of the answer."""
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.reason: KillReason | None = None
        self._limit = limit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parts: list[str] = []
        self._received = 0
        self._on_text = on_text

    def add(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._limit:
            raise protocol.ProtocolError("more output than was asked for")
        self._emit(self._decoder.decode(data))

    def finish(self, end: protocol.End) -> str:
        """The whole output; head and tail around a note where the middle was dropped."""
        if end.dropped:
            self._emit(self._decoder.decode(b"", final=True))
            self._emit(f"\n[... {end.dropped} bytes of output omitted ...]\n")
            tail = end.tail.lstrip(bytes(range(0x80, 0xC0))) if end.tail[:1] > b"\x7f" else end.tail
            self._emit(tail.decode("utf-8", "replace"))
        else:
            self._emit(self._decoder.decode(end.tail, final=True))
        return self.partial()

    def partial(self) -> str:
        """The output so far."""
        return "".join(self._parts)

    def _emit(self, text: str) -> None:
        if text:
            self._parts.append(text)
            if self._on_text:
                self._on_text(text)


class SandboxProcess(Protocol):
    """The process that a session lives and dies with; ``subprocess.Popen`` is one."""

    @property
    def pid(self) -> int:
        """Its number on this host; everything of the sandbox is below it. 0: it cannot be seen from here."""
        ...

    @property
    def returncode(self) -> int | None: ...

    def kill(self) -> None:
        """Begin to kill it, and all that is inside. Does not block."""
        ...

    def wait(self) -> int:
        """Blocks until it is gone."""
        ...


class Session:
    """A started sandbox. Build it with ``start``, or with ``begin`` where something else than a spawner has started it."""

    def __init__(
        self,
        process: SandboxProcess,
        reader: protocol.Reader,
        writer: asyncio.StreamWriter,
        launch: Launch,
    ) -> None:
        self._process = process
        self._pid_namespace, self._uid = launch.pid_namespace, launch.uid
        self._reader = reader
        self._writer = writer
        self._ids = count(1)
        self._requests: dict[int, _Request] = {}
        self._reading: asyncio.Task[None] | None = None
        self._killing = asyncio.Lock()
        self.processes: dict[str, str] = {}
        """Background processes by name, with their command lines; kept by whoever starts them."""
        self.last_used = time.monotonic()
        self.cwd: str | None = None
        self.idle_processes = 0
        self.cleanup = contextlib.AsyncExitStack()
        """Left once, when the sandbox is gone."""

    @classmethod
    async def start(cls, prepare: Callable[[int], Launch], spawner: Spawner) -> Session:
        """Spawn a sandbox and wait until its supervisor answers.

        Args:
            prepare: everything up to the fork, given the supervisor's end of the control socket. Blocks.

        Raises:
            SessionDiedError: it could not be started; ``details`` hold what it said.
        """
        stderr = memory_file()
        try:
            host, inside = socket.socketpair()
            try:
                with inside:
                    launch = await asyncio.to_thread(prepare, inside.fileno())
                    process = await _spawn(launch, inside, spawner, stderr)
            except BaseException:
                host.close()
                raise
            reader, writer = await asyncio.open_unix_connection(sock=host, limit=protocol.MAX_FRAME)

            def said() -> str:
                return os.pread(stderr, MAX_STDERR, 0).decode("utf-8", "replace").strip()

            return await cls.begin(process, reader, writer, launch, said)
        finally:
            os.close(stderr)

    @classmethod
    async def begin(
        cls,
        process: SandboxProcess,
        reader: protocol.Reader,
        writer: asyncio.StreamWriter,
        launch: Launch,
        said: Callable[[], str],
    ) -> Session:
        """Give a started supervisor its first message and wait until it answers.

        Args:
            said: gives what the sandbox said of why it does not answer.

        Raises:
            SessionDiedError: it does not; ``details`` hold what it said.
        """
        session = cls(process, reader, writer, launch)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                writer.write(protocol.frame({"op": "start", **launch.start}))
                await writer.drain()
                first = await protocol.read_event(reader)
        except (OSError, protocol.ProtocolError) as error:
            first = error
        if not isinstance(first, protocol.Ready):
            await session.close()
            raise SessionDiedError("The sandbox could not be started.", reason=said() or repr(first))
        session.idle_processes = len(await asyncio.to_thread(process_tree, process.pid))
        session._reading = asyncio.create_task(session._read())
        return session

    @property
    def alive(self) -> bool:
        return self._reading is not None and not self._reading.done()

    @property
    def busy(self) -> bool:
        return bool(self._requests)

    @property
    def pid(self) -> int:
        """The launcher's process id on the host; everything of the sandbox is below it."""
        return self._process.pid

    async def execute(
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stateless: bool = False,
        max_output: int = 1 << 20,
        keep: tuple[str | None, int] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ExecResult:
        """Run one command to its end. Cancelling kills its process tree.

        Args:
            command: for bash; or a program and its arguments, in which no shell has a part.

        Raises:
            SandboxCommandError: the command could not be started.
            SessionDiedError: the sandbox ended meanwhile.
        """
        async with self._killing:
            pass
        limit = max(2, min(max_output, MAX_OUTPUT))
        running = _Request(protocol.End, limit, on_text)
        started = time.monotonic()
        argv = None if isinstance(command, str) else list(command)
        message = {
            "op": "exec",
            "command": "" if argv else command,
            "argv": argv,
            "timeout": timeout,
            "max_output": limit,
        }
        message |= {"cwd": cwd, "env": dict(env or {}), "stateless": stateless}
        if keep:
            message |= {"keep": keep[0], "keep_after": keep[1]}
        with self._asked(message, running) as number:
            try:
                async with asyncio.timeout(timeout + HOST_CLOCK_GRACE):
                    end = await running.answer
            except asyncio.CancelledError:
                self._send({"op": "kill", "id": number})
                raise
            except TimeoutError:
                await self.close()
                spent = (time.monotonic() - started) * 1000
                return ExecResult(None, running.partial(), timed_out=True, killed_for="host-clock", duration_ms=spent)
        if not stateless:
            self.cwd = end.cwd
        return _result(end, running)

    async def start_process(self, name: str, command: str, *, cwd: str | None = None) -> protocol.ProcessReport:
        """Start a background process under ``name``."""
        async with self._killing:
            pass
        message = {"op": "exec", "process": name, "command": command, "cwd": cwd, "background": True}
        return await self._ask(message, protocol.ProcessReport)

    async def read_process(self, name: str, *, peek: bool = False) -> protocol.ProcessReport:
        """What the process wrote since the last report; with ``peek`` only whether it runs."""
        return await self._ask({"op": "read", "process": name, "peek": peek}, protocol.ProcessReport)

    async def stop_process(self, name: str) -> protocol.ProcessReport:
        """SIGTERM, a second later SIGKILL, to everything that the process started."""
        return await self._ask({"op": "stop", "process": name}, protocol.ProcessReport)

    async def reset(self, *, forget: bool) -> None:
        """Kill everything inside. With ``forget`` also drop the shell's state."""
        await self._ask({"op": "reset", "forget": forget}, protocol.ResetDone)
        if forget:
            self.processes.clear()
            self.cwd = None

    async def shell(self) -> tuple[Shell, bool]:
        """The state to begin the next session with, and whether anything runs that will not be there then."""
        event = await self._ask({"op": "state"}, protocol.ShellState)
        return Shell(event.cwd, event.state), event.background

    def kill_commands(self, reason: KillReason) -> None:
        """Kill every command under way for ``reason``."""
        self.blame(reason)
        for number in self._commands():
            self._send({"op": "kill", "id": number})

    async def kill_all(self, reason: KillReason) -> None:
        """Kill everything inside from the host. A command that is asked for meanwhile begins afterwards."""
        async with self._killing:
            self.blame(reason)
            await asyncio.to_thread(kill_tree, self.pid, spared=self.idle_processes)

    def blame(self, reason: KillReason) -> None:
        """Note why commands under way may fail, the killing being done already."""
        for running in self._commands().values():
            running.reason = reason

    async def close(self) -> None:
        """Kill the sandbox and wait for its end. Idempotent."""
        if self._process.returncode is None:
            if not self._pid_namespace:
                await asyncio.to_thread(kill_tree, self._process.pid, self._uid)
            self._process.kill()
            if self._reading is not None:
                # The supervisor holds the other end: its end of file tells that the whole sandbox is dying.
                await asyncio.wait([self._reading], timeout=2)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        self._fail_all()
        await asyncio.to_thread(self._process.wait)
        await self.cleanup.aclose()

    # the wire -------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while (event := await protocol.read_event(self._reader)) is not None:
                self._dispatch(event)
        except protocol.ProtocolError as error:
            log.warning("A sandbox broke the protocol and is killed: %s", error)
        except OSError:
            pass
        finally:
            if self._pid_namespace:
                self._process.kill()
            self._fail_all()

    def _dispatch(self, event: protocol.Event) -> None:
        if isinstance(event, protocol.Ready):
            raise protocol.ProtocolError("ready twice")
        request = self._requests.get(event.id)
        if request is None or request.answer.done():
            return
        if isinstance(event, request.kind):
            request.answer.set_result(event)
        elif isinstance(event, protocol.Output):
            request.add(event.data)
        elif isinstance(event, protocol.Failed):
            request.answer.set_exception(SandboxCommandError(f"The command could not be run: {event.why}"))
        else:
            raise protocol.ProtocolError("an answer of the wrong kind")

    def _commands(self) -> dict[int, _Request]:
        return {number: request for number, request in self._requests.items() if request.kind is protocol.End}

    def _fail_all(self) -> None:
        died = SessionDiedError("The sandbox ended unexpectedly. The next command starts a new one; files are kept.")
        for request in self._requests.values():
            if not request.answer.done():
                request.answer.set_exception(died)

    def _send(self, message: dict[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(protocol.frame(message))

    @contextlib.contextmanager
    def _asked(self, message: dict[str, Any], request: _Request) -> Iterator[int]:
        if not self.alive:
            raise SessionDiedError("The sandbox has ended.")
        number = next(self._ids)
        self._requests[number] = request
        try:
            self._send(message | {"id": number})
            yield number
        finally:
            del self._requests[number]
            self.last_used = time.monotonic()

    async def _ask(self, message: dict[str, Any], kind: type[E]) -> E:
        request = _Request(kind)
        with self._asked(message, request):
            try:
                async with asyncio.timeout(REPLY_TIMEOUT):
                    return await request.answer
            except TimeoutError:
                await self.close()
                raise SessionDiedError("The sandbox did not answer and was killed.") from None


async def _spawn(launch: Launch, control: socket.socket, spawner: Spawner, stderr: int) -> subprocess.Popen[bytes]:
    descriptors = [*launch.descriptors, control.fileno()]
    try:
        return await spawner.spawn(launch.argv, descriptors=descriptors, stderr=stderr)
    except OSError as error:
        raise SessionDiedError("The sandbox could not be started.", reason=str(error)) from error
    finally:
        for descriptor in launch.descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def bash_code(code: int | None) -> int | None:
    """An exit code in bash's own convention: 128 + its number for a signal."""
    return 128 - code if code is not None and code < 0 else code


def _result(end: protocol.End, running: _Request) -> ExecResult:
    output = running.finish(end)
    reason: KillReason | None = "flood" if end.stopped == "flood" else None
    if running.reason is not None and end.exit_code != 0:
        reason = running.reason
    elif end.stopped == "cancelled":
        reason = "cancelled"
    code = end.exit_code if reason is None else None
    return ExecResult(
        exit_code=bash_code(code),
        output=output,
        timed_out=end.stopped == "timeout",
        killed_for=reason,
        truncated=end.dropped > 0,
        total_bytes=end.total,
        kept=end.kept,
        duration_ms=end.ms,
        cwd=end.cwd.encode("utf-8", "replace").decode(),
    )
