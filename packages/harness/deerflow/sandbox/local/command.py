"""One bash process on the host and the threads that watch it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from deerflow.sandbox.interface import Limits
from deerflow.sandbox.local.output import CappedOutput, LiveText
from deerflow.sandbox.local.process_tree import MARK, kill_tree

FLOOD_FACTOR = 64
FLOOD_BYTES = 64 << 20
STATE_BYTES = 256 << 10
TERMINATE_GRACE = 1.0
PIPE_BYTES = 1 << 16

# eval, unlike `.`, reports errors as "bash: line 1:". The cd must not count as one for `cd -`.
_BOOT = """
__sbx=$1; set --; {limits}
. "$__sbx/before" 2>/dev/null
__sbx_old=$OLDPWD; cd -- "$(< "$__sbx/cwd")" 2>/dev/null; OLDPWD=$__sbx_old; unset __sbx_old
export {mark_name}={mark}
__sbx_end() {{ local code=$?; trap - EXIT; unset -f __sbx_end; {{ printf '%s\\0' "$PWD"; export -p; declare -f; }} > "$__sbx/after" 2>/dev/null; exit $code; }}
trap __sbx_end EXIT
eval "$(< "$__sbx/script")"
"""


@dataclass(frozen=True, slots=True)
class ShellState:
    """What the next command begins with."""

    cwd: str
    definitions: bytes = b""
    """Exported variables and functions, as bash prints them."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command to be started, in the host's paths."""

    bash: str
    script: str
    state: ShellState
    environment: Mapping[str, str]
    mark: str
    limits: Limits
    directory: Path
    """Where the files that go in and out of bash are put."""


class RunningCommand:
    """Started by its constructor, which blocks for the fork. ``ended`` resolves when bash itself has ended.

    What bash left in the background may go on writing; its output is then read and dropped, so that it never blocks.
    """

    def __init__(
        self, spec: CommandSpec, output: CappedOutput, live: LiveText | None = None, flood_cap: int | None = None
    ) -> None:
        """Raises OSError if bash cannot be started. ``flood_cap``: kill when far more than this many bytes come."""
        self.output = output
        self.flooded = False
        self.ended: Future[int] = Future()
        self.duration_ms = 0.0
        self._started = time.monotonic()
        self._live = live
        self._flood_limit = None if flood_cap is None else flood_cap * FLOOD_FACTOR + FLOOD_BYTES
        self._mark = spec.mark
        self._files = _prepared(spec)
        self._pipe, writer = os.pipe()
        self._wake, self._waker = os.pipe()
        try:
            self._process = subprocess.Popen(
                [spec.bash, "--noprofile", "--norc", "-c", _boot(spec), "bash", str(self._files)],
                # bash's own children bear the mark from the first moment, before they execute anything.
                env={**spec.environment, MARK: spec.mark},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
            )
        except BaseException:
            for fd in (self._pipe, self._wake, self._waker):
                os.close(fd)
            shutil.rmtree(self._files, ignore_errors=True)
            raise
        finally:
            os.close(writer)
        Thread(target=self._read, name="sandbox-output", daemon=True).start()
        Thread(target=self._wait, name="sandbox-wait", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """bash's own way of writing a signal: 128 + its number. None while it runs."""
        code = self._process.returncode
        return 128 - code if code is not None and code < 0 else code

    def kill(self, grace: float = TERMINATE_GRACE) -> None:
        """End it and everything it started. Blocks."""
        kill_tree([self._process.pid], self._mark, grace=grace)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)

    def take_state(self) -> ShellState | None:
        """The state that the command left, once; None if it was killed or replaced our exit trap."""
        try:
            left = (self._files / "after").read_bytes()
        except OSError:
            return None
        finally:
            shutil.rmtree(self._files, ignore_errors=True)
        cwd, separator, definitions = left.partition(b"\0")
        return ShellState(os.fsdecode(cwd), definitions) if separator and len(left) <= STATE_BYTES else None

    def _wait(self) -> None:
        self._process.wait()
        os.close(self._waker)

    def _read(self) -> None:
        drained = self._read_while_running()
        if self._live is not None:
            self._live.finish()
        self.duration_ms = round((time.monotonic() - self._started) * 1000, 2)
        self.ended.set_result(self.exit_code or 0)
        # Whoever was left in the background must not block on a full pipe.
        while not drained and (data := os.read(self._pipe, 1 << 16)):
            if self._flood_limit is None:
                self.output.add(data)
        os.close(self._pipe)
        os.close(self._wake)

    def _read_while_running(self) -> bool:
        """Until bash has ended and all it wrote was read. True: nobody else holds the pipe."""
        poller = select.poll()
        poller.register(self._pipe, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        drained = False
        while True:
            ready = {fd for fd, _ in poller.poll()}
            if self._pipe in ready and not self._read_once(1 << 16):
                poller.unregister(self._pipe)
                drained = True
            if self._wake in ready:
                return drained or self._read_rest()

    def _read_rest(self) -> bool:
        """What bash wrote last is still in the pipe, but no more than the pipe can hold: others may write on and on."""
        poller = select.poll()
        poller.register(self._pipe, select.POLLIN)
        left = PIPE_BYTES
        while left > 0 and poller.poll(0):
            count = self._read_once(left)
            if not count:
                return True
            left -= count
        return False

    def _read_once(self, size: int) -> int:
        data = os.read(self._pipe, size)
        if data:
            self._take(data)
        return len(data)

    def _take(self, data: bytes) -> None:
        self.output.add(data)
        if self._live is not None:
            self._live.add(data)
        if self._flood_limit is not None and self.output.total > self._flood_limit and not self.flooded:
            self.flooded = True
            kill_tree([self._process.pid], self._mark, grace=0)


def _prepared(spec: CommandSpec) -> Path:
    """The directory through which bash is told what to do and tells what is left."""
    directory = Path(tempfile.mkdtemp(dir=spec.directory))
    (directory / "script").write_bytes(spec.script.encode("utf-8", "surrogateescape"))
    (directory / "before").write_bytes(spec.state.definitions)
    (directory / "cwd").write_bytes(os.fsencode(spec.state.cwd))
    return directory


def _boot(spec: CommandSpec) -> str:
    limits = spec.limits
    values = {
        "f": limits.file_size_mb << 10,
        "d": limits.memory_mb << 10,
        "n": limits.open_files,
        "t": limits.cpu_seconds,
    }
    # Zero means: no limit.
    ulimits = " ".join(f"ulimit -{letter} {value} 2>/dev/null;" for letter, value in values.items() if value)
    return _BOOT.format(limits=f"ulimit -c 0; {ulimits}", mark_name=MARK, mark=spec.mark)
