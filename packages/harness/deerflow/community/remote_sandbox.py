"""Sandboxes at a distance: commands by a service that answers over HTTP, files on a volume that both sides mount."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import secrets
import shlex
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter

from deerflow.sandbox import protocol
from deerflow.sandbox.interface import (
    WORKSPACE,
    ExecResult,
    Isolation,
    Policy,
    Process,
    SandboxNotFoundError,
    SandboxRuntimeError,
    SandboxUnavailableError,
)
from deerflow.sandbox.isolated import IsolatedSandbox
from deerflow.sandbox.isolation.plan import LaunchRequest
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Launch, Session, SessionDiedError

log = logging.getLogger(__name__)

LONGEST_INLINE = 60_000
"""Characters of a job that are sent as an argument; Linux takes twice as many bytes."""
CLAIM_INTERVAL = 30.0
"""Seconds of use after which a sandbox is asked for again: it may be gone, or another worker may have used it meanwhile."""
RENEW_INTERVAL = 60.0
"""Seconds between two renewals of the lease of a sandbox that is up."""
LEASE = 600
"""Seconds after which a sandbox ends whose lease no one renews: its worker was killed."""
STATE = "/tmp/.deerflow"
FLOOD = 64 << 20
"""Bytes beyond 64 times the cap at which an output is stopped."""
# The command may have been cancelled before its runner has noted its number.
KILL = "for i in 1 2 3 4 5 6 7 8 9; do [ -s {0} ] && break; sleep 0.1; done; kill -TERM $(cat {0})"
RUNNER = Path(__file__).with_name("remote_runner.py").read_text("utf-8")
REPORT = re.compile(r"deerflow:([A-Za-z0-9+/=\s]*):end")


class RemoteShell(Protocol):
    """One sandbox at its address. To be used on one event loop."""

    async def run(self, command: str, *, timeout: float) -> str | None:
        """Run a command line of sh and return its standard output, line ends aside; None if no answer came in time.

        Raises SandboxRuntimeError; SessionDiedError if the sandbox is gone.
        """
        ...

    async def aclose(self) -> None: ...


class RemoteSandbox(IsolatedSandbox):
    """One thread's sandbox. It comes with the first command; files need none, since they are on the shared volume."""

    _remote: RemoteShell | None = None
    _here = WORKSPACE
    _claimed = 0.0
    renewed = 0.0
    """When its lease was renewed last, by the monotonic clock."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._commands: dict[str, str] = {}
        """Background processes by name, with their command lines."""
        self._read: dict[str, int] = {}
        self._one_by_one = asyncio.Lock()

    @property
    def live(self) -> bool:
        return self._remote is not None

    @property
    def busy(self) -> bool:
        return self._holders > 0 or self._starting.locked()

    async def retire(self, *, spare_background: bool = False) -> None:
        if not (spare_background and self._commands):
            await self.end()

    async def end(self) -> None:
        async with self._starting:
            shell, self._remote = self._remote, None
            self._commands.clear()
            if shell is not None:
                await shell.aclose()
                await self._provider.remove(self.id)
        await asyncio.to_thread(self._files.close)

    @property
    def _provider(self) -> RemoteProvider:
        assert isinstance(self._source, RemoteProvider)
        return self._source

    async def _live_shell(self) -> RemoteShell:
        async with self._starting:
            if self._remote is None or time.monotonic() - self._claimed > CLAIM_INTERVAL:
                known = self._remote
                shell = await self._provider.make(self, known)
                self._remote, self._claimed = shell, time.monotonic()
                self.renewed = self._claimed
                if known is not None and known is not shell:
                    self._commands.clear()
                    await known.aclose()
            return self._remote

    async def _exec_once(self, command: str, cwd: str | None, **options: Any) -> ExecResult:
        return await self._exec_in_session(command, cwd, stateless=True, **options)

    async def _exec_in_session(
        self, command: str | Sequence[str], cwd: str | None = None, *, stateless: bool = False, **options: Any
    ) -> ExecResult:
        if stateless:
            return await self._execute(command, cwd, "", **options)
        async with self._one_by_one:
            return await self._execute(command, cwd, f"{STATE}/main", **options)

    async def _execute(
        self,
        command: str | Sequence[str],
        cwd: str | None,
        state: str,
        *,
        timeout: float = 120,
        env: Mapping[str, str] | None = None,
        max_output: int = 1 << 20,
        keep: tuple[str | None, int] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ExecResult:
        text = command if isinstance(command, str) else shlex.join(command)
        given = "".join(f"export {name}={shlex.quote(value)}; " for name, value in (env or {}).items())
        before, begun = self._here, time.monotonic()
        job = {"command": given + text, "state": state, "cwd": cwd or before, "home": WORKSPACE, "timeout": timeout}
        job |= {"most": max_output, "flood": max_output * 64 + FLOOD}
        job |= {"keep": keep and keep[0], "keep_after": keep[1] if keep else 0}
        end = await self._run(job, timeout)
        if state and end is not None and not end.stopped:
            self._here = end.cwd or before
        shown = "" if end is None else end.shown
        if on_text:
            on_text(shown)
        return ExecResult(
            None if end is None else end.code,
            shown,
            timed_out=end is None or end.stopped == "timeout",
            killed_for="flood" if end is not None and end.stopped == "flood" else None,
            truncated=end is not None and end.dropped > 0,
            total_bytes=0 if end is None else end.total,
            duration_ms=(time.monotonic() - begun) * 1000,
            kept=end is not None and end.kept,
            cwd=self._here,
            moved=self._here != before,
        )

    async def _run(self, job: dict[str, Any], timeout: float) -> _End | None:
        shell = await self._live_shell()
        pid_file = f"{STATE}/{secrets.token_hex(4)}.pid"
        # In an image whose user is root, commands are those of our user, to whom the thread's files belong.
        argument = json.dumps(job | {"pid_file": pid_file, "uid": os.getuid()})
        if len(argument) > LONGEST_INLINE:
            file = f"/tmp/.deerflow-{secrets.token_hex(8)}"
            await asyncio.to_thread(self._files.write, file, argument.encode())
            argument = f"@{file}"
        try:
            said = await shell.run(shlex.join(["python3", "-I", "-S", "-c", RUNNER, argument]), timeout=timeout)
            return None if said is None else _read_report(said)
        except asyncio.CancelledError:
            await asyncio.shield(self._kill(shell, pid_file))
            raise
        except SessionDiedError:
            if self._remote is shell:
                self._remote = None
                self._commands.clear()
            await shell.aclose()
            raise

    async def _kill(self, shell: RemoteShell, pid_file: str) -> None:
        try:
            await shell.run(KILL.format(pid_file), timeout=10)
        except SandboxRuntimeError as error:
            log.warning("A cancelled command of %s may run on: %s", self.id, error)

    async def _start_process(self, command: str, cwd: str | None) -> Process:
        self._process_count += 1
        name = f"p{self._process_count}-{self._generation}"
        file = f"{STATE}/{name}"
        inner = f"({command}\n) >{file}.log 2>&1; echo $? >{file}.code"
        await self._exec_in_session(
            f"setsid bash -c {shlex.quote(inner)} </dev/null >/dev/null 2>&1 & echo $! >{file}.pid", cwd, stateless=True
        )
        self._commands[name], self._read[name] = command, 0
        return Process(name, command, running=True)

    async def _ask_process(
        self, name: str, ask: Callable[[Session, str], Awaitable[protocol.ProcessReport]]
    ) -> Process:
        command = self._commands.get(name)
        if command is None:
            raise SandboxNotFoundError(f"There is no background process {name!r}.")
        file = f"{STATE}/{name}"
        if ask is Session.stop_process:
            await self._exec_in_session(
                f"[ -f {file}.code ] || {{ kill -9 -$(cat {file}.pid); echo 137 >{file}.code; }}", stateless=True
            )
        look = f"cat {file}.code 2>/dev/null || echo; tail -c +{self._read[name] + 1} {file}.log 2>/dev/null"
        code, _, output = (await self._exec_in_session(look, stateless=True)).output.partition("\n")
        self._read[name] += len(output.encode("utf-8", "replace"))
        return Process(name, command, not code.isdigit(), int(code) if code.isdigit() else None, output)

    async def _list_processes(self) -> list[Process]:
        listed: list[Process] = []
        for name, command in list(self._commands.items()):
            code = (await self._exec_in_session(f"cat {STATE}/{name}.code 2>/dev/null", stateless=True)).output.strip()
            listed.append(Process(name, command, not code.isdigit(), int(code) if code.isdigit() else None))
        return listed

    async def _reset(self) -> None:
        self._here = WORKSPACE
        await self.end()


class RemoteProvider(IsolatingProvider):
    """Base of the providers that ask a service for a sandbox, renew its lease while it is up, and give it back."""

    sandbox_class = RemoteSandbox

    def __init__(self, data_dir: Path, *, max_sessions: int, idle_timeout: float) -> None:
        """
        Args:
            data_dir, max_sessions, idle_timeout: see ``IsolatingProvider``. Sandboxes mount directories of the data directory.
        """
        super().__init__(data_dir, max_sessions=max_sessions, sleep_after=0, idle_timeout=idle_timeout)

    @property
    def drops_root(self) -> bool:
        return False  # whom sandboxes run as is the service's to say

    async def make(self, sandbox: RemoteSandbox, known: RemoteShell | None) -> RemoteShell:
        """Return the thread's sandbox when it answers: the ``known`` one, if it is still there. Raises SandboxRuntimeError."""
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.create_task(self._reap())
        if known is None:
            async with self._room:
                await self._make_room(sandbox)
        return await self._ask_for(sandbox, known)

    @abstractmethod
    async def _ask_for(self, sandbox: RemoteSandbox, known: RemoteShell | None) -> RemoteShell: ...

    @abstractmethod
    async def renew(self, sandbox_id: str) -> None:
        """Let a sandbox live for another ``LEASE``. Raises SandboxRuntimeError."""

    @abstractmethod
    async def remove(self, sandbox_id: str) -> None:
        """Give the sandbox back; it may be gone already. Raises SandboxRuntimeError."""

    async def reap(self, now: float) -> None:
        await super().reap(now)
        live = [one for one in list(self._sandboxes.values()) if isinstance(one, RemoteSandbox) and one.live]
        await asyncio.gather(*(self._renew(one, now) for one in live if now - one.renewed > RENEW_INTERVAL))

    async def _renew(self, sandbox: RemoteSandbox, now: float) -> None:
        sandbox.renewed = now
        try:
            await self.renew(sandbox.id)
        except SandboxRuntimeError as error:
            log.warning("The lease of the sandbox of %s could not be renewed: %s", sandbox.id, error)


@dataclass(frozen=True, slots=True)
class RemoteLauncher:
    """Stands for a service that confines the commands of remote sandboxes on its own terms."""

    warning: str

    def isolation(self, policy: Policy) -> Isolation:
        return Isolation("remote", real_paths=True, network="host", pid=False, warnings=(self.warning,))

    def prepare(self, request: LaunchRequest, control: int) -> Launch:
        raise SandboxUnavailableError("A remote sandbox is started by its service.")

    def prepare_program(self, request: LaunchRequest, argv: Sequence[str]) -> Launch:
        raise SandboxUnavailableError("A remote sandbox is started by its service.")


@dataclass(frozen=True, slots=True)
class _End:
    """Report of the runner on a command that has ended."""

    code: int | None
    stopped: str | None
    head: str
    tail: str
    total: int
    dropped: int
    kept: bool
    cwd: str

    @property
    def shown(self) -> str:
        gap = f"\n[... {self.dropped} bytes of output omitted ...]\n" if self.dropped else ""
        return f"{self.head}{gap}{self.tail}"


_END = TypeAdapter(_End)


def _read_report(said: str) -> _End:
    """Raises SandboxRuntimeError if a command has killed its runner, or nothing could run it."""
    found = REPORT.search(said)
    try:
        return _END.validate_json(base64.b64decode("".join(found[1].split()) if found else ""))
    except ValueError as error:
        raise SandboxRuntimeError(
            "The command did not end as it should: it has killed what ran it, or the sandbox lacks bash or Python 3.9.",
            output=said[-300:],
        ) from error
