"""The headings of a Markdown document, so that a model knows where to read."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MAX_OUTLINE_ENTRIES = 50
PREVIEW_LINES = 5
MAX_BYTES = 4 << 20

_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")


@dataclass(frozen=True, slots=True)
class Outline:
    """Headings as (title, 1-based line); ``truncated`` when there are more; ``preview`` when there is none."""

    entries: tuple[tuple[str, int], ...] = ()
    truncated: bool = False
    preview: tuple[str, ...] = ()


def extract_outline(path: Path) -> Outline:
    """Outline of the Markdown file at ``path``; empty if it cannot be read or is a link. Reads at most 4 MiB."""
    try:
        lines = _head(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return Outline()
    headings = list(islice(_headings(lines), MAX_OUTLINE_ENTRIES + 1))
    if headings:
        return Outline(tuple(headings[:MAX_OUTLINE_ENTRIES]), truncated=len(headings) > MAX_OUTLINE_ENTRIES)
    return Outline(preview=tuple(islice((line.strip() for line in lines if line.strip()), PREVIEW_LINES)))


def _head(path: Path) -> bytes:
    """The sandbox can put a link to a file of the host, or a pipe, in the place of an upload."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(MAX_BYTES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _headings(lines: list[str]):
    fenced = False
    for number, line in enumerate(lines, 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := _HEADING.match(line)):
            yield match.group(1).replace("**", "").strip(), number
