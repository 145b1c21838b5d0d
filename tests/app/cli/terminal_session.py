"""A real program on a real pseudo terminal: type, wait for words, press keys, kill."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.warm_python import WarmPython

from deerflow_app.cli.terminal import clean

CTRL_C, CTRL_D, ENTER, ALT_ENTER, TAB = "\x03", "\x04", "\r", "\x1b\r", "\t"
WHERE_IS_THE_CURSOR = b"\x1b[6n"
"""A question that terminals answer with row and column."""
GIVE_UP = 60
"""Seconds; a guard against hanging for ever, not a promise about speed."""


class TerminalSession:
    """``with TerminalSession(cwd=folder) as session``: the chat on a terminal of 30 lines by 100 columns."""

    def __init__(self, *argv: str, cwd: Path) -> None:
        self._argv = [sys.executable, "-c", "from deerflow_app.cli.main import main; main()", *argv]
        self._cwd = cwd
        self.written = ""
        self._read_up_to = 0

    def __enter__(self) -> Self:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.process = WarmPython(
            self._argv,
            cwd=self._cwd,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        os.close(self._master)

    @property
    def text(self) -> str:
        """Everything that was written so far, without escape sequences."""
        return clean(self.written)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def say(self, line: str) -> None:
        """Wait for the prompt, type a line and press Enter."""
        self.wait_for("› ")
        self.type(line + ENTER)

    def wait_for(self, words: str) -> str:
        """Read until ``words`` were written after what was waited for last; returns the text in between.

        Raises:
            AssertionError: they do not come; shows what came instead.
        """
        end = time.monotonic() + GIVE_UP
        while (at := self.text.find(words, self._read_up_to)) < 0:
            if time.monotonic() > end or not self._read():
                raise AssertionError(f"{words!r} was never shown. The screen said:\n{self.text[self._read_up_to :]}")
        before, self._read_up_to = self.text[self._read_up_to : at], at + len(words)
        return before

    def ended(self) -> int:
        """Wait for the program's end; its exit code."""
        while self._read():
            pass
        return self.process.wait(GIVE_UP)

    def interrupt(self) -> None:
        self.type(CTRL_C)

    def kill(self) -> None:
        """As a crash would: no chance to clean up."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(GIVE_UP)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], GIVE_UP)
        if not ready:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # the other side is closed
            return False
        if WHERE_IS_THE_CURSOR in data:
            os.write(self._master, b"\x1b[1;1R")
        self.written += data.decode(errors="replace")
        return bool(data)
