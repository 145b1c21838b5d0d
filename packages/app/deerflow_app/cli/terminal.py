"""The terminal: consoles with our theme, and the door that text from outside passes before it is shown."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

# Colours come from the terminal's own palette, so that light and dark themes both stay readable.
THEME = {
    "accent": "cyan",
    "ok": "green",
    "warn": "yellow",
    "bad": "red",
    "faint": "bright_black",
    "card.name": "bold",
    "card.path": "cyan",
    "diff.add": "green",
    "diff.remove": "red",
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "italic",
    "markdown.item.bullet": "cyan",
    "markdown.item.number": "cyan",
    "markdown.block_quote": "bright_black",
    "markdown.hr": "bright_black",
    "markdown.link": "cyan underline",
    "markdown.link_url": "cyan underline",
    "markdown.table.border": "bright_black",
    "markdown.table.header": "bold",
}

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC: title, clipboard, links
    r"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"  # everything else that starts with ESC
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n\r])", re.MULTILINE)


def clean(text: str) -> str:
    """``text`` without anything that a terminal would obey: escape sequences, control and direction characters.

    A carriage return overwrites its line, as it would on a terminal, so that progress bars leave their last state.
    """
    if not text.isprintable():
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n"))
        text = _CONTROL.sub("", _SEQUENCE.sub("", text))
    return text


def one_line(text: str, width: int = 100) -> str:
    """The first line of ``text``, cleaned and cut to ``width`` characters."""
    line = next((line.strip() for line in clean(text).splitlines() if line.strip()), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def make_console(file: TextIO | None = None, *, stderr: bool = False) -> Console:
    """A console with the product's theme. Markup is off: text is data."""
    from rich.console import Console
    from rich.theme import Theme

    return Console(file=file, stderr=stderr, theme=Theme(THEME), highlight=False, markup=False, emoji=False)


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 05 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


def count(number: int, noun: str) -> str:
    """``1 line``, ``2,400 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


async def until_interrupted(work: Coroutine[Any, Any, T], *more: signal.Signals) -> T | None:
    """Run ``work``; the first SIGINT, or one of ``more`` signals, cancels it and the answer is None. A second one ends the program."""
    loop, former = asyncio.get_running_loop(), {each: signal.getsignal(each) for each in not_ignored(*more)}
    task = asyncio.ensure_future(work)

    def release() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        for each, handler in former.items():
            loop.remove_signal_handler(each)
            signal.signal(each, handler)

    def stop() -> None:
        release()
        task.cancel()

    for each in (signal.SIGINT, *former):
        loop.add_signal_handler(each, stop)
    try:
        return await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        return None
    finally:
        release()


@contextmanager
def raising_interrupts(*signals: signal.Signals) -> Iterator[None]:
    """Let signals raise KeyboardInterrupt, as SIGINT does."""
    former = {each: signal.signal(each, signal.default_int_handler) for each in not_ignored(*signals)}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


def not_ignored(*signals: signal.Signals) -> list[signal.Signals]:
    """Return those that are not ignored since the program began, as `nohup` does with SIGHUP."""
    return [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
