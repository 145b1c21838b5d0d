"""Words of right-to-left scripts that a PDF holds as they stand on the page, from left to right, are turned round."""

# pyright: reportMissingImports=false

from __future__ import annotations

import itertools
import re
from typing import Any

_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff"
_ANY = re.compile(f"[{_RIGHT_TO_LEFT}]")
_RUN = re.compile(f"[{_RIGHT_TO_LEFT}]+(?: +[{_RIGHT_TO_LEFT}]+)*")


def turned(page: Any, text: str) -> str:
    """Return ``text`` of a text page of pdfium in the order in which people read it."""
    if not _ANY.search(text):
        return text
    whole = page.get_text_range(0, page.count_chars())
    places = iter(_RUN.finditer(whole))
    ready = [(match[0], match.start()) for match in places]
    at = 0

    def in_order(match: re.Match[str]) -> str:
        nonlocal at
        for index in range(at, min(at + 200, len(ready))):
            if ready[index][0] == match[0]:
                at = index + 1
                return _turned(page, match[0], ready[index][1])
        return match[0]

    return _RUN.sub(in_order, text)


def _turned(page: Any, run: str, start: int) -> str:
    words: list[tuple[float, str]] = []
    for match in re.finditer(r"[^ ]+", run):
        first, last = start + match.start(), start + match.end() - 1
        left, right = _left(page, first), _left(page, last)
        if left is None or right is None:
            return run
        words.append((left, match[0][::-1] if right > left + 1 else match[0]))
    ascending = all(before[0] < after[0] for before, after in itertools.pairwise(words))
    order = reversed(words) if len(words) > 1 and ascending else words
    return " ".join(word for _, word in order)


def _left(page: Any, at: int) -> float | None:
    import pypdfium2 as pdfium

    try:
        return page.get_charbox(at)[0]
    except pdfium.PdfiumError:
        return None
