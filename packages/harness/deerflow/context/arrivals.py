"""The messages that reach a run while it works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Messages for the lead agent of a run to go on with."""

    take: Callable[[], Awaitable[Sequence[Any]]]
    """Returns those of the person that came since the last model call."""
