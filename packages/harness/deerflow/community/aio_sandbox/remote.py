"""A pod of its own for each thread, made by a provisioner: commands over HTTP, files on the volume that both mount."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from deerflow.community.aio_sandbox.http_shell import HttpShell, ShellAnswer
from deerflow.config.paths import Paths
from deerflow.sandbox import protocol
from deerflow.sandbox.interface import (
    WORKSPACE,
    ExecResult,
    Isolation,
    Policy,
    ProbeReport,
    Problem,
    Process,
    SandboxNotFoundError,
    SandboxRuntimeError,
    SandboxUnavailableError,
)
from deerflow.sandbox.isolated import IsolatedSandbox
from deerflow.sandbox.isolation.plan import Launcher, LaunchRequest
from deerflow.sandbox.isolation.probe import shorten
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Launch, Session, SessionDiedError

log = logging.getLogger(__name__)

LONGEST_INLINE = 60_000
"""Characters of a command that are sent as an argument; Linux takes twice as many bytes."""
CLAIM_INTERVAL = 30.0
"""Seconds of use after which a pod is asked for again: another worker that has used it meanwhile must not remove it."""
MARK = "\x1e"
STATE = "/tmp/.deerflow"
# A bash of its own for each command: one that exits or breaks its shell takes nothing with it. What it exports is kept.
SHELL = f"""
mkdir -p {STATE}; s={STATE}/$1
[ "$1" = - ] || [ ! -f $s.env ] || . $s.env 2>/dev/null
cd -- "$2" 2>/dev/null || cd {WORKSPACE} 2>/dev/null
trap 'c=$?; trap - EXIT; [ "$1" = - ] || {{ export -p; declare -f; }} >$s.env; printf "\\036%s\\036" "$PWD"; exit $c' EXIT
eval "$3"
"""


class RemoteSandbox(IsolatedSandbox):
    """One thread's pod. It comes with the first command; files need none, since they are on the shared volume."""

    _shell_of_pod: HttpShell | None = None
    _here = WORKSPACE
    _claimed = 0.0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._commands: dict[str, str] = {}
        """Background processes by name, with their command lines."""
        self._read: dict[str, int] = {}
        self._one_by_one = asyncio.Lock()

    @property
    def live(self) -> bool:
        return self._shell_of_pod is not None

    @property
    def busy(self) -> bool:
        return self._holders > 0 or self._starting.locked()

    async def retire(self, *, spare_background: bool = False) -> None:
        if not (spare_background and self._commands):
            await self.end()

    async def end(self) -> None:
        async with self._starting:
            shell, self._shell_of_pod = self._shell_of_pod, None
            self._commands.clear()
            if shell is not None:
                await shell.aclose()
                await self._pods.remove(self.id)
        await asyncio.to_thread(self._files.close)

    @property
    def _pods(self) -> RemoteProvider:
        assert isinstance(self._source, RemoteProvider)
        return self._source

    async def _pod(self) -> HttpShell:
        async with self._starting:
            if self._shell_of_pod is None or time.monotonic() - self._claimed > CLAIM_INTERVAL:
                known = self._shell_of_pod
                shell = await self._pods.make(self, known)
                self._shell_of_pod, self._claimed = shell, time.monotonic()
                if known is not None and known is not shell:
                    self._commands.clear()
                    await known.aclose()
            return self._shell_of_pod

    async def _exec_once(self, command: str, cwd: str | None, **options: Any) -> ExecResult:
        return await self._exec_in_session(command, cwd, stateless=True, **options)

    async def _exec_in_session(
        self, command: str | Sequence[str], cwd: str | None = None, *, stateless: bool = False, **options: Any
    ) -> ExecResult:
        return await self._execute(command, cwd, stateless, **options)

    async def _execute(
        self,
        command: str | Sequence[str],
        cwd: str | None,
        stateless: bool,
        *,
        timeout: float = 120,
        env: Mapping[str, str] | None = None,
        max_output: int = 1 << 20,
        keep: tuple[str | None, int] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ExecResult:
        text = command if isinstance(command, str) else shlex.join(command)
        given = "".join(f"export {name}={shlex.quote(value)}; " for name, value in (env or {}).items())
        before = self._here
        if stateless:
            answer = await self._run(given + text, "-", cwd or before, timeout)
        else:
            async with self._one_by_one:
                answer = await self._run(given + text, "main", cwd or before, timeout)
        output, here = _taken_apart(answer.output)
        if not stateless:
            self._here = here or before
        kept = keep is not None and keep[0] is not None and len(output) > keep[1]
        if kept and keep is not None and keep[0] is not None:
            await asyncio.to_thread(self._files.write, keep[0], output.encode())
        shown = _cut(output, max_output)
        if on_text:
            on_text(shown)
        return ExecResult(
            answer.exit_code,
            shown,
            timed_out=not answer.completed,
            truncated=len(shown) < len(output),
            total_bytes=len(output.encode("utf-8", "replace")),
            kept=kept,
            cwd=self._here,
            moved=self._here != before,
        )

    async def _run(self, command: str, state: str, cwd: str, timeout: float) -> ShellAnswer:
        pod = await self._pod()
        name = f"deerflow-{secrets.token_hex(4)}"
        try:
            if len(command) > LONGEST_INLINE:
                await pod.write(f"/tmp/{name}", command)
                command = f". /tmp/{name}"
            line = shlex.join(["bash", "-c", SHELL, "bash", state, cwd, command])
            return await pod.run(line, session=name, timeout=timeout)
        except SessionDiedError:
            if self._shell_of_pod is pod:
                self._shell_of_pod = None
                self._commands.clear()
            await pod.aclose()
            raise

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
    """Pods by a provisioner's API: ``POST``, ``DELETE /api/sandboxes``."""

    name = "remote"
    sandbox_class = RemoteSandbox

    def __init__(
        self, data_dir: Path, url: str, token: str, *, max_sessions: int = 40, idle_timeout: float = 900
    ) -> None:
        """
        Args:
            data_dir, max_sessions, idle_timeout: see ``IsolatingProvider``. The data directory is the root of a volume that pods mount.
            url, token: the provisioner's.
        """
        super().__init__(data_dir, max_sessions=max_sessions, sleep_after=0, idle_timeout=idle_timeout)
        self._paths = Paths(data_dir)
        self._owner = secrets.token_hex(8)
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def drops_root(self) -> bool:
        return False  # whom pods run as is the cluster's to say

    async def make(self, sandbox: RemoteSandbox, known: HttpShell | None) -> HttpShell:
        """Return the thread's pod when it answers: the ``known`` one, if it is still there. Raises SandboxRuntimeError."""
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.create_task(self._reap())
        user, _, thread = sandbox.id.partition(":")
        if known is None:
            async with self._room:
                await self._make_room(sandbox)
            # A pod mounts them by name: the cluster would make those that are missing, for its root alone.
            await asyncio.to_thread(self._paths.ensure_thread_dirs, thread, user)
            await asyncio.to_thread(self._paths.ensure_skills_dir, user)
        wanted = {"sandbox_id": pod_name(sandbox.id), "thread_id": thread, "user_id": user, "owner": self._owner}
        try:
            made = await self._ask("POST", "/api/sandboxes", wanted)
        except SandboxRuntimeError as error:
            if known is None:
                raise
            log.warning("The pod of %s is used on although it could not be claimed: %s", sandbox.id, error)
            return known
        shell = HttpShell(str(made["sandbox_url"]), str(made.get("api_key") or ""))
        if known is not None and (shell.address, shell.key) == (known.address, known.key):
            await shell.aclose()
            return known
        try:
            await shell.ready()
        except BaseException as error:
            await shell.aclose()
            if not isinstance(error, SandboxRuntimeError):
                raise
            raise SandboxRuntimeError(str(error), reason=await self._give_up(sandbox.id)) from error
        return shell

    async def remove(self, sandbox_id: str) -> None:
        await self._ask("DELETE", f"/api/sandboxes/{pod_name(sandbox_id)}?owner={self._owner}", None)

    async def _give_up(self, sandbox_id: str) -> str:
        """Remove a pod that does not answer, and return why it does not, if the provisioner knows."""
        try:
            found = await self._ask("GET", f"/api/sandboxes/{pod_name(sandbox_id)}", None)
            await self.remove(sandbox_id)
        except SandboxRuntimeError as error:
            return str(error)
        return f"Its pod is {found.get('status')}. {found.get('reason') or ''}".strip()

    async def _ask(self, method: str, path: str, body: dict[str, str] | None) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=30) as http:
                answer = await http.request(method, path, json=body)
                if answer.status_code == 404 and method == "DELETE":
                    return {}
                if not answer.is_success:
                    raise SandboxRuntimeError("The provisioner does not give a sandbox.", reason=_complaint(answer))
                return answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise SandboxRuntimeError("The provisioner does not give a sandbox.", reason=shorten(str(error))) from error

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        try:
            httpx.get(f"{self._url}/health", headers=self._headers, timeout=10).raise_for_status()
        except httpx.HTTPError as error:
            sentence = f"The provisioner at {self._url} does not answer: {shorten(str(error))}."
            problem = Problem("provisioner-missing", sentence, "Start it, or correct sandbox.provisioner_url.")
            return ProbeReport(self.name, ok=False, problems=(problem,)), None
        launcher = _Pod()
        return ProbeReport(self.name, ok=True, isolation=launcher.isolation(Policy())), launcher


class _Pod:
    """The cluster, which confines a pod's commands."""

    def isolation(self, policy: Policy) -> Isolation:
        warning = "Network and limits are the cluster's to set; sandbox.network and sandbox.limits do not reach pods."
        return Isolation("remote", real_paths=True, network="host", pid=False, warnings=(warning,))

    def prepare(self, request: LaunchRequest, control: int) -> Launch:
        raise SandboxUnavailableError("A pod is started by its provisioner.")

    def prepare_program(self, request: LaunchRequest, argv: Sequence[str]) -> Launch:
        raise SandboxUnavailableError("A pod is started by its provisioner.")


def pod_name(sandbox_id: str) -> str:
    """The same for every gateway that asks for the thread's pod."""
    return hashlib.sha256(sandbox_id.encode()).hexdigest()[:16]


def _complaint(answer: httpx.Response) -> str:
    try:
        return shorten(str(answer.json()["detail"]))
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.reason_phrase}"


def _taken_apart(output: str) -> tuple[str, str]:
    """Return the output of a command, and the directory that it ended in, if it came to its end."""
    if output.rstrip("\n").endswith(MARK):
        text, _, directory = output.rstrip("\n")[:-1].rpartition(MARK)
        return text, directory
    return output, ""


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters of output omitted ...]\n{text[-half:]}"
