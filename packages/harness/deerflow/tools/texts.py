"""Text files of a sandbox as the file tools read them: their encoding, and windows of their lines.

Lines end at ``\\n`` alone, so that ``read_file``, ``grep`` and the outline of a document count alike.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from deerflow.context import RunContext
from deerflow.sandbox.converters import UnreadableError
from deerflow.sandbox.interface import Entry, Sandbox, SandboxError, SandboxFileNotFoundError
from deerflow.security.encodings import Encoding, binary, surely

WHOLE = 50 << 20
"""Bytes of a file that are read at once; of a larger one lines are counted only as far as they are read."""
_BYTES = re.compile("[\ud800-\udfff]")
"""Bytes of a text file that are no UTF-8, as Python keeps them; they can be written back, but not sent anywhere."""


async def entry_at(sandbox: Sandbox, path: str, what: str) -> Entry:
    """The file or directory at a path, which is called ``what`` where there is none. Raises SandboxFileNotFoundError."""
    entry = await sandbox.stat(path)
    if entry is None:
        raise SandboxFileNotFoundError(f"{what} not found: {path}")
    return entry


async def encoding_of(data: bytes, context: RunContext, *, cut: bool = False) -> Encoding | None:
    """Return the encoding of a file that begins with ``data``; None: it is binary. ``cut``: more follows."""
    proven = await asyncio.to_thread(surely, data, cut=cut)
    if proven is not None or binary(data):
        return proven
    try:
        return await context.reader().encoding(data, context.principal.user_id)
    except (SandboxError, UnreadableError):
        return Encoding("cp1252")  # nothing here can tell more


def seen(text: str) -> str:
    """Return text as it can be sent."""
    return _BYTES.sub("\N{REPLACEMENT CHARACTER}", text)


def damaged(text: str) -> bool:
    """Return whether some bytes of a text are none."""
    return _BYTES.search(text) is not None


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a file's lines."""

    text: str
    """From the line asked for, as far as wanted and allowed."""
    total: int | None
    """Lines of the file; None: more follow, which were not counted."""


async def window(
    sandbox: Sandbox,
    path: str,
    start: tuple[bytes, int],
    encoding: Encoding,
    lines: tuple[int, int | None],
    skip: int,
    most: int,
) -> Window:
    """Read lines of a file.

    Args:
        start: its first bytes, at most WHOLE, and the size of all.
        lines: the first and the last one, counted from 1; None: to the end.
        skip: characters of the first line to leave out.
        most: characters to collect, and one more where there are more; 0: all.
    """
    data, size = start
    whole, position = size <= WHOLE, len(data)
    collector = _Collector(encoding, lines, skip, most)
    data = data[len(encoding.mark) :]
    while True:
        final = position >= size or not data
        await asyncio.to_thread(collector.take, data, final=final)
        if final:
            return Window("".join(collector.taken), collector.count + (not collector.ended))
        if collector.full and not whole:
            return Window("".join(collector.taken), None)
        data, size = await sandbox.read(path, offset=position, limit=WHOLE)
        position += len(data)


class _Collector:
    """Takes a text piece by piece, and keeps the lines that are wanted."""

    def __init__(self, encoding: Encoding, lines: tuple[int, int | None], skip: int, most: int) -> None:
        self._decoder = encoding.decoder()
        self._first, self._last = lines
        self._skip, self._most = skip, most
        self._number = 1
        """The line in which the next piece begins."""
        self._room = most + 1
        self.taken: list[str] = []
        self.count, self.ended = 0, True

    @property
    def full(self) -> bool:
        return (self._most > 0 and self._room == 0) or (self._last is not None and self._number > self._last)

    def take(self, data: bytes, *, final: bool) -> None:
        piece = self._decoder.decode(data, final)
        if not piece:
            return
        ends = piece.count("\n")
        self.count += ends
        self.ended = piece.endswith("\n")
        if not self.full:
            self._keep(piece)
        self._number += ends

    def _keep(self, piece: str) -> None:
        at = 0
        for _ in range(self._first - self._number):
            end = piece.find("\n", at)
            if end < 0:
                return
            at = end + 1
        if self._skip:
            end = piece.find("\n", at)
            left = min(self._skip, (len(piece) if end < 0 else end) - at)
            at, self._skip = at + left, 0 if end >= 0 else self._skip - left
        rest = piece[at : at + self._room] if self._most else piece[at:]
        self._room -= len(rest) if self._most else 0
        self.taken.append(rest)
