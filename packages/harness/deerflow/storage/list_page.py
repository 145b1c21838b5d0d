"""A page of a list, and its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deerflow.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class ListPage:
    """Up to ``limit`` entries behind the first ``offset``. ``sort_by``: None for the list's own order."""

    limit: int = 10
    offset: int = 0
    sort_by: str | None = None
    descending: bool = True

    def order(self, sortable: Sequence[str], default: str) -> str:
        """Return the name that the list is sorted by. Raises InvalidRequestError for one that is not ``sortable``."""
        if self.sort_by is not None and self.sort_by not in sortable:
            raise InvalidRequestError(f"sort_by is {self.sort_by!r}: use {', '.join(sortable)}.")
        return self.sort_by or default
