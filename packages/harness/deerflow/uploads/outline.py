"""The headings of a Markdown document, so that a model knows where to read."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MAX_OUTLINE_ENTRIES = 50
PREVIEW_LINES = 5
MAX_BYTES, MAX_LINES = 1 << 20, 20_000
"""How far a document is read."""
MAX_LINE = 1000
"""Bytes of a line that are looked at."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Headings as (title, 1-based line); ``truncated`` when there are more; ``preview`` when there is none."""

    entries: tuple[tuple[str, int], ...] = ()
    truncated: bool = False
    preview: tuple[str, ...] = ()


def extract_outline(path: Path) -> Outline:
    """Outline of the Markdown file at ``path``; empty if it cannot be read or is a link."""
    try:
        lines = list(_lines(path))
    except OSError:
        return Outline()
    headings = list(islice(_headings(lines), MAX_OUTLINE_ENTRIES + 1))
    if headings:
        return Outline(tuple(headings[:MAX_OUTLINE_ENTRIES]), truncated=len(headings) > MAX_OUTLINE_ENTRIES)
    return Outline(preview=tuple(islice((line.strip() for line in lines if line.strip()), PREVIEW_LINES)))


def _lines(path: Path) -> Iterator[str]:
    """The sandbox can put a link to a file of the host, or a pipe, in the place of an upload."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        head = io.BytesIO(file.read(MAX_BYTES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b"")
    for line in islice(head, MAX_LINES):
        yield line[:MAX_LINE].decode("utf-8", "replace").rstrip("\r\n")


def _headings(lines: list[str]) -> Iterator[tuple[str, int]]:
    fenced = False
    for number, line in enumerate(lines, 1):
        text = line.lstrip(" ")
        if len(line) - len(text) > 3:
            continue
        if text.startswith(("```", "~~~")):
            fenced = not fenced
            continue
        title = text.lstrip("#")
        opens = not fenced and 1 <= len(text) - len(title) <= 6 and title[:1].isspace()
        if opens and (name := title.strip().rstrip("#").rstrip().replace("**", "").strip()):
            yield name, number
