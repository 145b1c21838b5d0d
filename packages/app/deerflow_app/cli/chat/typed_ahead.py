"""Text that the person types while a turn goes on: shown below it, queued by Enter, handed to the agent by a second one."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import select
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from rich.text import Text

from deerflow_app.cli.terminal import clean, one_line

_KEYS = re.compile(
    r"\x1b\[(?:13;5u|27;5;13~)"  # Ctrl-Enter, of terminals that tell it from Enter
    r"|\x1b[\r\n]"  # Alt-Enter
    r"|\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?"  # other keys
    r"|[\r\n\x08\x7f\x15]|[^\x00-\x1f\x7f]+|."
)
_BACK, _CLEAR = ("\x08", "\x7f"), "\x15"


class TypedAhead:
    """Args: steer: hands a message to the turn; False if it has ended."""

    def __init__(self, steer: Callable[[str], Awaitable[bool]]) -> None:
        self._steer = steer
        self.text = ""
        """Text that is not entered yet; the next prompt begins with it."""
        self.queued: list[str] = []
        """Messages for when the turn has ended, in their order."""
        self._sending: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[None, None]:
        """Take what is typed on the terminal, until the block ends. Ctrl-C stays what it is."""
        if not sys.stdin.isatty():
            yield
            return
        import termios

        terminal, loop = sys.stdin.fileno(), asyncio.get_running_loop()
        before = termios.tcgetattr(terminal)
        at_once = [*before]
        at_once[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(terminal, termios.TCSANOW, at_once)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        loop.add_reader(terminal, lambda: self.feed(decoder.decode(os.read(terminal, 4096))))
        try:
            yield
        finally:
            loop.remove_reader(terminal)
            termios.tcsetattr(terminal, termios.TCSANOW, before)
            if self._sending is not None:
                await self._sending

    def feed(self, keys: str) -> None:
        """Take keys. A line break with more text behind it was pasted, and belongs to the message."""
        for found in _KEYS.finditer(keys):
            key, is_last = found.group(), found.end() == len(keys)
            if key == "\r" and is_last:
                self._enter()
            elif key in ("\r", "\n", "\x1b\r", "\x1b\n"):
                self.text += "\n"
            elif key.startswith("\x1b["):
                if key in ("\x1b[13;5u", "\x1b[27;5;13~"):
                    self._enter()
                    self._send()
            elif key in _BACK:
                self._take_back()
            elif key == _CLEAR:
                self.text = ""
            elif key.isprintable():
                self.text += key

    def _enter(self) -> None:
        if self.text.strip():
            self.queued.append(self.text.strip())
            self.text = ""
        else:
            self._send()

    def _take_back(self) -> None:
        if self.text:
            self.text = self.text[:-1]
        elif self.queued:
            self.text = self.queued.pop()

    def _send(self) -> None:
        if self.queued and self._sending is None:
            self._sending = asyncio.ensure_future(self._hand_over())

    async def _hand_over(self) -> None:
        """Commands stay for the end of the turn, and messages that the turn does not take any more."""
        waiting, self.queued = self.queued, []
        try:
            while waiting and not waiting[0].startswith("/") and await self._steer(waiting[0]):
                waiting.pop(0)
        finally:
            self.queued = [*waiting, *self.queued]
            self._sending = None

    def shown(self) -> Text:
        """Return the lines below the turn, with no line break at the end."""
        lines = Text("", no_wrap=True, overflow="ellipsis")
        for message in self.queued:
            lines.append("\n  › ", style="accent").append(one_line(message, 200)).append("  queued", style="faint")
        if self.queued and not self.text:
            lines.append("\n  Enter sends it now · Backspace takes it back", style="faint")
        if self.text:
            lines.append("\n› ", style="accent").append(clean(self.text).replace("\n", "\n  ")).append("▏")
        return lines


@contextmanager
def typed_ahead() -> Generator[list[str]]:
    """Keep what is typed between two prompts for the next one: not echoed, and Enter stays Enter.

    A terminal outside a prompt turns Enter into a line feed, which the prompt takes for "another line". Yields the lines that were
    entered before, while the program was starting.
    """
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    waiting = [*before]
    waiting[0] &= ~termios.ICRNL
    waiting[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, waiting)
    try:
        yield _entered(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _entered(terminal: int) -> list[str]:
    found = b""
    while select.select([terminal], [], [], 0)[0] and (read := os.read(terminal, 4096)):
        found += read
    return [line.strip() for line in found.decode("utf-8", "replace").splitlines() if line.strip()]
