"""A generator that blocks, from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from threading import Lock


async def pieces_off_loop(generator: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
    """What ``generator`` yields, but for empty pieces; each step runs on a thread. It is closed at the end, however that comes."""
    steps = _Steps(generator)
    try:
        while (piece := await asyncio.to_thread(steps.next)) is not None:
            if piece:
                yield piece
    finally:
        steps.close()


class _Steps:
    """Lets one thread step and another close: a step that nobody waits for any more closes when it is done."""

    def __init__(self, generator: Generator[bytes, None, None]) -> None:
        self._generator = generator
        self._closed = False
        self._lock = Lock()

    def next(self) -> bytes | None:
        with self._lock:
            piece = None if self._closed else next(self._generator, None)
        if self._closed:
            self.close()
        return piece

    def close(self) -> None:
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._generator.close()
            finally:
                self._lock.release()
