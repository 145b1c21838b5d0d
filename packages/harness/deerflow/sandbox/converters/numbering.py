"""The numbers and letters of a Word document's lists and headings, as they are displayed."""

from __future__ import annotations

import re
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"),
          (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


class Numbering:
    """Counts through a document: ask it for the label of each numbered paragraph in their order."""

    def __init__(self, root: Any) -> None:
        """``root``: of the part ``numbering.xml``; None: there is none."""
        self._levels: dict[str, dict[int, tuple[str, str, int]]] = {}
        self._counted_as: dict[str, str] = {}
        self._counts: dict[tuple[str, int], int] = {}
        abstract = {}
        for each in root.iter(f"{W}abstractNum") if root is not None else ():
            abstract[each.get(f"{W}abstractNumId")] = {
                int(level.get(f"{W}ilvl") or 0): _level(level) for level in each.iter(f"{W}lvl")
            }
        for each in root.iter(f"{W}num") if root is not None else ():
            own, based = each.get(f"{W}numId") or "", each.find(f"{W}abstractNumId")
            key = (based.get(f"{W}val") or "") if based is not None else ""
            levels = dict(abstract.get(key, {}))
            for override in each.iter(f"{W}lvlOverride"):
                at, begins = int(override.get(f"{W}ilvl") or 0), override.find(f"{W}startOverride")
                if begins is not None and at in levels:
                    levels[at] = (*levels[at][:2], int(begins.get(f"{W}val") or 1))
                    key = f"own {own}"
            self._levels[own], self._counted_as[own] = levels, key

    def next(self, number: Any) -> tuple[str, int]:
        """Return the label of the next paragraph with this ``numPr``, and its depth; no label for none."""
        own = number.find(f"{W}numId") if number is not None else None
        name = str(own.get(f"{W}val") or "0") if own is not None else "0"
        if name == "0":
            return "", 0
        at = number.find(f"{W}ilvl") if number is not None else None
        depth = min(int(at.get(f"{W}val") or 0), 8) if at is not None else 0
        levels, key = self._levels.get(name, {}), self._counted_as.get(name, name)
        form, pattern, begins = levels.get(depth, ("bullet", "", 1))
        self._counts[key, depth] = self._counts.get((key, depth), begins - 1) + 1
        for deeper in range(depth + 1, 9):
            self._counts.pop((key, deeper), None)
        if form in ("bullet", "none"):
            return "-", depth

        def counted(match: re.Match[str]) -> str:
            level = int(match[1]) - 1
            kind, _, start = levels.get(level, ("decimal", "", 1))
            return _formatted(self._counts.get((key, level), start), kind)

        return re.sub(r"%(\d)", counted, pattern).strip() or "-", depth


def _level(element: Any) -> tuple[str, str, int]:
    def value(name: str, default: str) -> str:
        found = element.find(W + name)
        return (found.get(f"{W}val") or default) if found is not None else default

    begins = value("start", "1")
    return value("numFmt", "bullet"), value("lvlText", ""), int(begins) if begins.isdigit() else 1


def _formatted(number: int, form: str) -> str:
    if form.endswith("Letter") and number > 0:
        text = chr(ord("a") + (number - 1) % 26) * min(1 + (number - 1) // 26, 9)
    elif form.endswith("Roman") and 0 < number < 4000:
        text = ""
        for value, letters in _ROMAN:
            text, number = text + letters * (number // value), number % value
    else:
        text = str(number)
    return text.upper() if form.startswith("upper") else text
