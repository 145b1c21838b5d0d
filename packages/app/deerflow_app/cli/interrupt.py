"""Ctrl-C as a wish: it stops what is running and leaves the program alive."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


async def until_interrupted(work: Coroutine[Any, Any, T]) -> T | None:
    """Run ``work``; the first SIGINT cancels it and the answer is None. A second one ends the program."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        return await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@contextlib.contextmanager
def typed_ahead() -> Iterator[None]:
    """What is typed between two prompts waits for the next one: not echoed, and Enter stays Enter.

    A terminal outside a prompt turns Enter into a line feed, which the prompt takes for "another line".
    """
    if not sys.stdin.isatty():
        yield
        return
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    waiting = [*before]
    waiting[0] &= ~termios.ICRNL
    waiting[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, waiting)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
