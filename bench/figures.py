"""A measured number next to its floor and its target, and the table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be: in words, and as a test of (ours, floor)."""

    text: str
    met: Callable[[float, float | None], bool]


def at_most(limit: float, unit: str = "") -> Target:
    return Target(f"≤ {_number(limit)} {unit}".rstrip(), lambda ours, floor: ours <= limit)


def at_least(limit: float, unit: str = "") -> Target:
    return Target(f"≥ {_number(limit)} {unit}".rstrip(), lambda ours, floor: ours >= limit)


def times_floor(factor: float) -> Target:
    return Target(f"≤ {factor} × floor", lambda ours, floor: floor is not None and ours <= factor * floor)


def at_least_of_floor(factor: float) -> Target:
    return Target(f"≥ {factor} × floor", lambda ours, floor: floor is not None and ours >= factor * floor)


def above_floor(extra: float, unit: str) -> Target:
    return Target(f"≤ floor + {_number(extra)} {unit}", lambda ours, floor: floor is not None and ours <= floor + extra)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. ``ours`` None: not measured, ``note`` says why."""

    name: str
    unit: str
    ours: float | None
    floor: float | None = None
    target: Target | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.floor if self.ours is not None and self.floor else None

    @property
    def verdict(self) -> str:
        """``ok``, ``OVER``, or nothing where there is no target."""
        if self.target is None:
            return ""
        if self.ours is None:
            return "not measured"
        return "ok" if self.target.met(self.ours, self.floor) else "OVER"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "floor": self.floor,
            "ratio": self.ratio,
            "target": self.target.text if self.target else None,
            "verdict": self.verdict,
            "note": self.note,
        }


HEADER = ("figure", "unit", "ours", "floor", "ratio", "target", "", "")


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned text."""
    rows = [HEADER, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = ["  ".join(_cell(row[i], widths[i], i) for i in range(len(HEADER))).rstrip() for row in rows]
    return "\n".join([lines[0], "─" * max(map(len, lines)), *lines[1:]])


def _row(figure: Figure) -> tuple[str, ...]:
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    target = figure.target.text if figure.target else ""
    return (
        figure.name,
        figure.unit,
        _number(figure.ours),
        _number(figure.floor),
        ratio,
        target,
        figure.verdict,
        figure.note,
    )


def _cell(text: str, width: int, column: int) -> str:
    return text.rjust(width) if 2 <= column <= 4 else text.ljust(width)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
