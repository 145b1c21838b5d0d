"""The table of what an import brought, what was there before and what did not come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

Outcome = Literal["came", "there", "not"]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on one thing: the reason why it did not come, or what is different about it here."""

    kind: str
    name: str
    why: str


class MoveReport:
    """Counts by kind of thing, in the order in which they were first named."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Outcome]] = {}
        self.notes: list[Note] = []

    def add(self, kind: str, outcome: Outcome, name: str = "", why: str = "", *, count: int = 1) -> None:
        """Count a thing, and note why it did not come or came otherwise."""
        self._counts.setdefault(kind, Counter())[outcome] += count
        if why:
            self.notes.append(Note(kind, name, why))

    def rows(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield ``(kind, came, there already, did not come)``."""
        for kind, counts in self._counts.items():
            yield kind, counts["came"], counts["there"], counts["not"]

    def as_json(self) -> dict[str, Any]:
        names = ("kind", "came", "there_already", "did_not_come")
        return {
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows()],
            "notes": [*map(asdict, self.notes)],
        }
