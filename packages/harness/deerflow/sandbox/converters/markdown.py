"""Markdown as all readers of documents write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARK = re.compile(r"<!--(?= *(page|slide|message|text of)\b)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")
_ITEM = re.compile(r"\s*(?:-|\(?\w{1,6}[.)]|\d+(?:\.\d+)+) ")
INSERTED, DELETED, COMMENT = "{++", "{--", "{>>"
MARKUP = {
    INSERTED: "{++inserted++}",
    DELETED: "{--deleted--}",
    COMMENT: "{>>author: comment<<}",
}
"""CriticMarkup, and how it is explained."""


class Mark(str):
    """A mark that a reader writes, as a piece of its own: ``page 3 of 9``. Text of a file can never be one."""

    __slots__ = ()


def piece_of(piece: str) -> str:
    """Return a reader's piece as it is kept."""
    return f"<!-- {clean(piece)} -->\n\n" if isinstance(piece, Mark) else clean(piece)


def clean(text: str) -> str:
    """Return text of a document without control characters and without marks that only a reader may write."""
    return _MARK.sub("< !--", _CONTROL.sub("", text.replace("\x0b", "\n").replace("\x0c", "\n")))


def line(text: str) -> str:
    """Return ``text`` on one line."""
    return " ".join(text.split())


def heading(level: int, text: str) -> str:
    return f"{'#' * max(1, min(level, 6))} {line(text)}"


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table, whose first row is its head; empty without any cell."""
    escaped = [[re.sub(r"\s*\n\s*", "<br>", cell.strip()).replace("|", "\\|") for cell in row] for row in rows]
    width = max(map(len, escaped), default=0)
    if not width:
        return ""
    full = [[*row, *[""] * (width - len(row))] for row in escaped]
    return "\n".join(f"| {' | '.join(row)} |" for row in [full[0], ["---"] * width, *full[1:]])


def inserted(text: str) -> str:
    return f"{{++{text}++}}" if text else ""


def deleted(text: str) -> str:
    return f"{{--{text}--}}" if text else ""


def comment(author: str, text: str) -> str:
    return f"{{>>{line(author) or 'Comment'}: {line(text)}<<}}"


def link(text: str, address: str | None) -> str:
    return f"[{text}]({address})" if address and text.strip() else text


def picture(description: str, address: str = "") -> str:
    """A picture by its description; a linked one with its address."""
    name = line(description)
    return f"![{name or 'picture'}]({address})" if address else f"![{name}]" if name else "[picture]"


def joined(blocks: Iterable[str]) -> Iterable[str]:
    """Yield blocks with what stands between them: items of a list are not parted."""
    before = ""
    for block in blocks:
        if before and not isinstance(before, Mark):
            yield "\n" if _ITEM.match(before) and _ITEM.match(block) else "\n\n"
        yield block
        before = block
    if before and not isinstance(before, Mark):
        yield "\n\n"
