"""A measure of work that no other load disturbs."""

from __future__ import annotations

import sys
from collections.abc import Callable


def steps(work: Callable[[], object]) -> int:
    """Return how many lines of Python ``work`` runs."""
    count = 0

    def trace(*_: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(before)
    return count
