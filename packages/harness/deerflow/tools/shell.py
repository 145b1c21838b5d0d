"""The tools for the sandbox's shell: commands and background processes.

Failures come back as ``Error: ...`` text that says what to do; the model reads it and goes on.
"""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg
from pydantic import AfterValidator, Field

from deerflow.config import AppConfig
from deerflow.sandbox.interface import (
    BLOCKED,
    OUTPUTS,
    UPLOADS,
    WORKSPACE,
    ExecResult,
    Process,
    Sandbox,
    SandboxError,
    SandboxNotFoundError,
)
from deerflow.tools.decorator import RUNS_COMMANDS, Runtime, async_tool
from deerflow.tools.runners import Invocation, Tested, invocation

Description = Annotated[str, InjectedToolArg]
"""Why a call is made. Taken from models that say it, and asked of none: paths and patterns speak for themselves."""


_UNRESOLVED = re.compile(
    r"could ?n[o']t resolve|(?:failure in|failed to|unable to) (?:name resolution|resolve|lookup)|name or service not known"
    r"|nodename nor servname|gaierror|ENOTFOUND|EAI_AGAIN|NameResolutionError|no such host|ERR_NAME_NOT_RESOLVED"
    r"|UnknownHostException|network is unreachable|dns error|No matching distribution found"
    # A shell that had a network before keeps the variables with its proxy.
    r"|cannot connect to proxy|127\.0\.0\.1 port 3128",
    re.IGNORECASE,
)
"""Programs that look for a host and have no network."""
NO_NETWORK = "The sandbox has no network. An administrator can give it one with sandbox.network in config.yaml: internet, or a list of hosts."

_INSTALLERS = re.compile(r"\b(?:pip[\d.]*|uv|poetry|npm|npx|pnpm|yarn)\b")
_CONFINED = ("namespaces", "namespaces-no-proc")
"""Isolations that can open single hosts."""

RAN = "ran"
"""Key in the artifact of a command: when it began and ended, in seconds since 1970."""
REFUSED_HOSTS = "refused_hosts"
"""Key in a result's ``additional_kwargs``: hosts that the command could not reach, for the person to decide about."""
WANTS_PACKAGES = "wants_packages"
"""Key in the artifact of a command that could not install packages, since their hosts are closed."""
TESTED = "tested"
"""Key in the artifact of a command that is a test runner and nothing else; see :class:`deerflow.tools.runners.Tested`."""
SAID_OF = "note"
"""Key in the artifact of a command: what the system says about it, apart from what it printed."""
RESULTS_DIRECTORY = f"{WORKSPACE}/.tool-results"
_NOTED = 20_000
"""Characters at the end of an output that are looked at for what went wrong."""
OTHER_TEXT = 1000
"""Characters of a result that say something about the output."""


def result_path(call_id: str | None) -> str:
    """Where the whole of a call's result goes, if it is long."""
    return f"{RESULTS_DIRECTORY}/{re.sub('[^A-Za-z0-9_-]', '_', call_id or '')[:100]}.txt"


def cut_short(name: str | None, call_id: str | None) -> str:
    """What else to say about a call that was stopped."""
    return f" What it had printed is in {result_path(call_id)}, if it had." if name == "bash" else ""


def absolute(path: str) -> str:
    """A path as a model names it: relative ones begin in the workspace, as in the shell."""
    return posixpath.normpath(posixpath.join(WORKSPACE, path)) if path and not path.startswith("/") else path


Path = Annotated[str, AfterValidator(absolute), Field(description=f"Absolute, or relative to {WORKSPACE}")]


def settings(runtime: Runtime) -> AppConfig:
    """The run's configuration."""
    return runtime.context.config or AppConfig()


def network_note(output: str, sandbox: Sandbox, config: AppConfig) -> str:
    """Return what to say of an output in which a name was not resolved because the network is off, else nothing."""
    is_off = config.sandbox.network.mode == sandbox.isolation.network == "none"
    return NO_NETWORK if is_off and _UNRESOLVED.search(output[-_NOTED:]) else ""


def wants_packages(command: str, output: str, sandbox: Sandbox, config: AppConfig) -> bool:
    """Return whether a command failed to install packages for want of hosts that the person may open."""
    mode, end = config.sandbox.network.mode, output[-_NOTED:]
    closed = _UNRESOLVED.search(end) if mode == "none" else mode == "allowlist" and BLOCKED in end
    return bool(closed and _INSTALLERS.search(command) and sandbox.isolation.level in _CONFINED)


@async_tool("bash", metadata=RUNS_COMMANDS, with_artifact=True)
async def bash_tool(
    command: str,
    runtime: Runtime,
    run_in_background: Annotated[
        bool, Field(description="For servers and long jobs: returns at once with a process id")
    ] = False,
    timeout: Annotated[int | None, Field(description="Seconds, default 600")] = None,
    description: Annotated[str, Field(description="Why; shown to the user")] = "",
) -> str | tuple[str, dict[str, Any]]:
    """Run a bash command in the sandbox. Working directory, environment and functions carry over between calls.
    Use the file tools to read, write and search files."""
    sandbox = await runtime.context.sandbox()
    given = command
    if runtime.context.subagent is not None:  # others work in the same shell
        command = f"(cd {WORKSPACE}\n{command}\n)"
    if run_in_background:
        process = await sandbox.start_process(command)
        return f"Started process {process.id}. Use read_process to see its output and kill_process to end it."
    limit = timeout or settings(runtime).sandbox.command_timeout
    most = settings(runtime).sandbox.bash_output_max_chars
    path = result_path(runtime.tool_call_id)
    began = time.time()
    result = await sandbox.exec(
        command,
        timeout=limit,
        keep_output=path,
        keep_after=max(0, most - OTHER_TEXT) if most else 1 << 20,
        on_output=lambda text: _live(runtime, text),
    )
    ran = [began, time.time()]
    if (traced := runtime.context.machine.trace_command) is not None:
        traced(command, runtime.tool_call_id, began, result.exit_code)
    said = (
        [f"The whole output, {result.total_bytes} bytes, is in {path}: use grep or read_file."] if result.kept else []
    )
    said += [f"The working directory is {result.cwd} now."] if result.moved else []
    said += [network_note(result.output, sandbox, settings(runtime))]
    artifact: dict[str, Any] = {"exit_code": result.exit_code, RAN: ran}
    if wants_packages(given, result.output, sandbox, settings(runtime)):
        artifact[WANTS_PACKAGES] = True
    if any(said):
        artifact[SAID_OF] = "\n".join(filter(None, said))
    if (tests := invocation(given)) is not None:
        artifact[TESTED] = await _tested(sandbox, given, tests, result, own_shell=runtime.context.subagent is None)
    return cut_middle(_shown(result, limit), most), artifact


async def _tested(sandbox: Sandbox, command: str, tests: Invocation, result: ExecResult, *, own_shell: bool) -> Tested:
    cwd = result.cwd if own_shell else absolute(tests.directory) or WORKSPACE
    passed, failed = tests.count(result.output)
    return {
        "command": command,
        "cwd": cwd,
        "exit_code": result.exit_code,
        "passed": passed,
        "failed": failed,
        "seconds": result.duration_ms / 1000,
        "tree": await sources(sandbox, cwd) if result.exit_code == 0 and passed else None,
    }


async def sources(sandbox: Sandbox, cwd: str) -> str | None:
    """A digest of the files that tests in the directory ``cwd`` may depend on; None: it cannot be made."""
    tops = (top for top in (WORKSPACE, OUTPUTS, UPLOADS) if f"{cwd}/".startswith(f"{top}/"))
    try:
        return await sandbox.fingerprint(next(tops, cwd))
    except SandboxError:
        return None


@async_tool("read_process", metadata=RUNS_COMMANDS)
async def read_process_tool(process_id: str, runtime: Runtime, description: Description = "") -> str:
    """Read what a background process wrote since the last read, and whether it still runs."""
    return await _process_report(runtime, lambda sandbox: sandbox.read_process(process_id))


@async_tool("kill_process")
async def kill_process_tool(process_id: str, runtime: Runtime, description: Description = "") -> str:
    """End a background process and everything it started."""
    return await _process_report(runtime, lambda sandbox: sandbox.kill_process(process_id))


def _live(runtime: Runtime, text: str) -> None:
    runtime.stream_writer({"type": "tool_output", "tool_call_id": runtime.tool_call_id, "text": text})


def _shown(result: ExecResult, limit: float) -> str:
    parts = [result.notice] if result.notice else []
    if result.output:
        parts.append(result.output.rstrip("\n"))
    if result.truncated:
        parts.append(f"[output truncated: {result.total_bytes} bytes in all]")
    if result.timed_out:
        parts.append(f"Error: the command was stopped after {limit:g} seconds. Use run_in_background for long jobs.")
    elif result.killed_for:
        parts.append(f"Error: the command was stopped: {_KILLED[result.killed_for]}")
    elif result.exit_code:
        parts.append(f"Exit Code: {result.exit_code}")
    return "\n".join(parts) or "(no output)"


_KILLED = {
    "flood": "it printed without end. Redirect its output to a file or limit it.",
    "disk": "the disk limit was reached. Remove files that are no longer needed.",
    "memory": "it used too much memory. Work on smaller pieces.",
    "processes": "it started too many processes. Start fewer at a time.",
    "host-clock": "the sandbox did not answer in time and was restarted.",
    "cancelled": "the run was stopped.",
}


async def _process_report(runtime: Runtime, act: Callable[[Sandbox], Awaitable[Process]]) -> str:
    sandbox = await runtime.context.sandbox()
    try:
        process = await act(sandbox)
    except SandboxNotFoundError as error:
        known = await sandbox.list_processes()
        return f"Error: {error} Processes: {', '.join(process.id for process in known) or 'none'}."
    state = "running" if process.running else f"ended, Exit Code: {process.exit_code}"
    dropped = f"[{process.dropped_bytes} earlier bytes dropped]\n" if process.dropped_bytes else ""
    report = f"Process {process.id} ({state})\n{dropped}{process.output or '(no new output)'}"
    config = settings(runtime)
    return cut_middle(report, config.sandbox.bash_output_max_chars) + network_note(process.output, sandbox, config)


BACKGROUND_TOOLS: tuple[BaseTool, ...] = (read_process_tool, kill_process_tool)
"""They come with ``bash``."""


def cut_middle(text: str, limit: int) -> str:
    """Keep head and tail, whole lines of both if there are. ``limit`` 0 means no limit; one below the marker's length is a plain cut."""
    if limit <= 0 or len(text) <= limit:
        return text
    marker = "\n... [middle truncated: {} chars skipped] ...\n"
    keep = limit - len(marker.format(len(text)))
    if keep <= 0:
        return text[:limit]
    head, rest = _head(text, keep - keep // 2), text[len(text) - keep // 2 :]
    end = rest.find("\n")
    tail = rest[end + 1 :] if 0 <= end < len(rest) // 2 else rest
    return head + marker.format(len(text) - len(head) - len(tail)) + tail


def cut_tail(text: str, limit: int, hint: str) -> str:
    """Keep the head, in whole lines, and say how to see the rest. ``limit`` 0 means no limit."""
    if limit <= 0 or len(text) <= limit:
        return text
    marker = f"\n... [truncated: showing first {{}} of {len(text)} chars. {hint}]"
    shown = _head(text, max(0, limit - len(marker.format(limit))))
    return shown + marker.format(len(shown)) if shown else text[:limit]


def _head(text: str, most: int) -> str:
    """At most so many characters; whole lines, if that leaves out less than half of them."""
    end = text.rfind("\n", 0, most + 1)
    return text[: end if end > most // 2 else most]
