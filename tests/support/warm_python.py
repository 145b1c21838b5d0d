"""Python processes in which DeerFlow is imported already, which takes three seconds of CPU each.

A server, one a pytest process, has imported it and forks a child for each start. The kernel hands the child to pytest: its pid, signals,
exit code, output, environment, directory and command line are those of a process that was started the usual way, and it runs
the same ``-m module``, ``-c code`` or file. Tests about starting itself, or about memory, start theirs the usual way.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from unittest.mock import patch

IMPORTED = (
    "anyio._backends._asyncio",
    "deerflow.agents.lead_agent",
    "deerflow.client",
    "deerflow.community.ddg_search.tools",
    "deerflow.community.fetch.tools",
    "deerflow.models.patched_openai",
    "deerflow.runtime",
    "deerflow.tools.registry",
    "deerflow_app.backups",
    "deerflow_app.channels.platforms",
    "deerflow_app.cli.commands.run",
    "deerflow_app.gateway.server",
    "deerflow_app.remote.client",
    "httpcore",
    "httpcore2",
    "mcp.server.mcpserver",
    "uvicorn.protocols.http.auto",
    "uvloop",
)
READ_AT_IMPORT = ("PYTHON", "OTEL_", "LANGSMITH", "LANGCHAIN", "OPENAI_LOG", "ANTHROPIC_LOG", "LD_", "MALLOC_")
"""Beginnings of variables that Python, the loader or imported modules have read: with one of them a process starts the usual way."""
READ_LATER = {
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_SDK_DISABLED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
}
LONGEST = 16000
"""Bytes of a command line that ``/proc`` can show."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_STARTS_WITHIN = 60.0


class WarmPython(subprocess.Popen[Any]):
    """``Popen([sys.executable, ...], ...)`` whose child dies with this process. If it begins a session, a terminal on its stdin is the
    controlling one. With flags of Python, or descriptors to pass, it starts the usual way."""

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, *more: Any) -> None:
        _, pass_fds, cwd, env, _, _, _, *pipes = more
        stdin, _, _, stdout, _, stderr, *_, new_session, _ = pipes
        environment = dict(os.environ if env is None else env)
        is_read = any(name.startswith(READ_AT_IMPORT) for name in environment.keys() - READ_LATER)
        has_flags = len(args) > 1 and str(args[1]).startswith("-") and args[1] not in ("-m", "-c")
        if sys.platform != "linux" or args[0] != sys.executable or has_flags or pass_fds or is_read:
            super()._execute_child(args, executable, preexec_fn, *more)
            return
        line = [os.fspath(argument) for argument in args]
        start = {"line": line, "cwd": os.path.abspath(cwd or "."), "environment": environment, "session": new_session}
        streams = [own if given == -1 else given for own, given in enumerate((stdin, stdout, stderr))]
        try:
            self.pid = _server().fork(start, streams)
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes[:6])


def run(
    command: Sequence[str | Path], *, input: str | None = None, timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """``subprocess.run(command, capture_output=True, text=True, ...)``."""
    pipe = subprocess.PIPE
    options = {"stdin": None if input is None else pipe, **options}
    with WarmPython(command, stdout=pipe, stderr=pipe, text=True, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def for_asyncio() -> AbstractContextManager[Any]:
    """Let ``asyncio`` start Python warm meanwhile."""
    _server()  # which starts the usual way
    return patch.object(subprocess, "Popen", WarmPython)


class _Server:
    """The process that forks, as pytest sees it."""

    def __init__(self) -> None:
        self._connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(_STARTS_WITHIN)
        self._lock = threading.Lock()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(other.fileno()), " " * LONGEST],
                cwd=Path(__file__).parents[2],
                env={"PATH": os.environ["PATH"]},
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._process.wait)
        atexit.register(self._connection.close)

    def fork(self, start: Mapping[str, Any], streams: Sequence[int]) -> int:
        """Return the pid of a new child of this process."""
        with self._lock:
            _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # no longer than this takes: other orphans go where they always go
            try:
                socket.send_fds(self._connection, [json.dumps(start).encode()], streams)
                pid = self._connection.recv(64)
            finally:
                _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 0)
        assert pid, "The fork server has ended."
        return int(pid)


@cache
def _server() -> _Server:
    return _Server()


def main() -> None:
    sys.modules.setdefault("httpx._main", None)  # as the command line does before it imports httpx
    routes = import_module("deerflow_app.gateway.routes")
    for name in (*IMPORTED, *(module.name for module in walk_packages(routes.__path__, f"{routes.__name__}."))):
        import_module(name)
    threads = len(os.listdir("/proc/self/task")) - 1
    assert not threads, f"Importing DeerFlow started {threads} threads, which no child would have."
    gc.collect()
    gc.freeze()
    start = _forked(socket.socket(fileno=int(sys.argv[1])))
    _execute(start["line"][1:])


def _forked(connection: socket.socket) -> Mapping[str, Any]:
    """Fork a child for each request. Returns in each child, which has become what was asked for."""
    pytest = os.getppid()
    while True:
        request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        if not request:
            os._exit(0)
        if between := os.fork():
            os.waitpid(between, 0)
            for stream in streams:
                os.close(stream)
            continue
        if os.fork():
            os._exit(0)  # so that the child becomes one of pytest
        start = json.loads(request)
        _die_with(pytest)
        _become(start, streams)
        connection.send(str(os.getpid()).encode())
        connection.close()
        return start


def _die_with(pytest: int) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while os.getppid() != pytest and time.monotonic() < deadline:
        time.sleep(0.0005)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != pytest:
        os._exit(1)


def _become(start: Mapping[str, Any], streams: Sequence[int]) -> None:
    for own, given in enumerate(streams):
        os.dup2(given, own)
        os.close(given)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # programs are hung up on also where `nohup` runs the tests
    if start["session"]:
        os.setsid()
        with suppress(OSError):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(start["environment"])
    if not {"LC_ALL", "LC_CTYPE", "LANG"} & os.environ.keys():
        os.environ["LC_CTYPE"] = "C.UTF-8"  # as Python does where no locale is set (PEP 538)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    time.tzset()
    os.chdir(start["cwd"])
    sys.path[1:1] = [os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    _show(start["line"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        lines = name == "stderr" or os.isatty(number) or "PYTHONUNBUFFERED" in os.environ
        stream = open(number, "w" if number else "r", 1 if lines else -1, old.encoding, old.errors, "\n", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _show(line: Sequence[str]) -> None:
    """Let ``/proc`` show this command line: people find processes by it, and ``deerflow stop`` does."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    text = os.fsencode("\0".join(line))[: end - begin - 1]
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, text, len(text))


def _execute(line: Sequence[str]) -> None:
    """Run ``-m module``, ``-c code`` or a file, each with its arguments, as Python does."""
    kind, *rest = line
    if kind == "-m":
        sys.path[0], sys.argv = os.getcwd(), rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.path[0], sys.argv = "", ["-c", *rest[1:]]
        module = type(sys)("__main__")
        sys.modules["__main__"] = module
        exec(compile(rest[0], "<string>", "exec"), module.__dict__)
    else:
        sys.path[0], sys.argv = os.path.dirname(os.path.abspath(kind)), [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    main()
