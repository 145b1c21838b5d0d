"""What a command prints, kept within bounds: its head and its tail, or what was not read yet."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from threading import Lock

from deerflow.sandbox.local.paths import HostPaths


class CappedOutput:
    """Keeps the first and last bytes of a stream. Written by one thread, read by others."""

    def __init__(self, head: int, tail: int) -> None:
        """Keep up to ``head`` first and ``tail`` last bytes."""
        self._lock = Lock()
        self._head = bytearray()
        self._tail = bytearray()
        self._limits = (head, tail)
        self.total = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        with self._lock:
            self.total += len(data)
            room = self._limits[0] - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            excess = len(self._tail) - self._limits[1]
            if excess > 0:
                del self._tail[:excess]
                self.dropped += excess

    def text(self) -> str:
        """Everything kept, with a line in place of what was dropped."""
        with self._lock:
            if not self.dropped:
                return (self._head + self._tail).decode("utf-8", "replace")
            head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
            return f"{head}\n[... {self.dropped} bytes of output omitted ...]\n{tail}"

    def take(self) -> tuple[str, int]:
        """What was kept since the last call, and how many bytes before it were dropped."""
        with self._lock:
            data, dropped = bytes(self._head + self._tail), self.dropped
            self._head.clear()
            self._tail.clear()
            self.dropped = 0
        return data.decode("utf-8", "replace"), dropped


class LiveText:
    """Turns a stream of bytes into text with virtual paths, as it comes, up to a number of bytes."""

    def __init__(self, paths: HostPaths, limit: int, emit: Callable[[str], None]) -> None:
        self._paths = paths
        self._left = limit
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def add(self, data: bytes) -> None:
        if self._left > 0:
            self._held += self._decoder.decode(data[: self._left])
            self._left -= len(data)
            text, taken = self._paths.beginning_to_virtual(self._held)
            self._held = self._held[taken:]
            if text:
                self._emit(text)

    def finish(self) -> None:
        rest = self._paths.to_virtual(self._held + self._decoder.decode(b"", final=True))
        self._held = ""
        if rest:
            self._emit(rest)
