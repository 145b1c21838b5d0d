"""Text with marks, and where it may be cut."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

_JOINER = "\u200d"
_JOINED = _JOINER + "\ufe0f" + "".join(map(chr, range(0x1F3FB, 0x1F400)))


@dataclass(frozen=True, slots=True)
class LinkMark:
    url: str


Mark = str | LinkMark
"""``strong``, ``em``, ``s`` or a link."""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """Text with the marks around it, the outermost first."""

    text: str
    marks: tuple[Mark, ...] = ()
    is_code: bool = False


Row = Sequence[Sequence[MarkedText]]


def split(spans: Sequence[MarkedText], at: int) -> tuple[list[MarkedText], list[MarkedText]]:
    """Return the spans of the first ``at`` letters, and the others."""
    head: list[MarkedText] = []
    for index, span in enumerate(spans):
        if len(span.text) > at:
            rest = [replace(span, text=span.text[at:]), *spans[index + 1 :]]
            return ([*head, replace(span, text=span.text[:at])] if at else head), rest
        head.append(span)
        at -= len(span.text)
    return head, []


def taken(waiting: list[MarkedText], room: int) -> list[MarkedText]:
    """Take the next ``room`` letters from ``waiting``, which is in reverse."""
    found: list[MarkedText] = []
    while waiting and room > 0:
        span = waiting.pop()
        if len(span.text) > room:
            waiting.append(replace(span, text=span.text[room:]))
            span = replace(span, text=span.text[:room])
        found.append(span)
        room -= len(span.text)
    return found


def without_seam(spans: Sequence[MarkedText], *, is_code: bool) -> list[MarkedText]:
    """Drop the space or line end at which a text was cut."""
    if not spans:
        return []
    head = spans[0].text
    cut = head.removeprefix("\n") if is_code else head.lstrip(" \n")
    return [replace(spans[0], text=cut), *spans[1:]]


def is_boundary(text: str, at: int) -> bool:
    """Tell apart the places between letters from those inside of one: an accent, a joined or a coloured emoji."""
    if at >= len(text):
        return True
    return not (unicodedata.combining(text[at]) or text[at] in _JOINED or text[at - 1] == _JOINER)
