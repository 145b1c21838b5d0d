"""The spending of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deerflow.storage.budgets import Budget


@dataclass(frozen=True, slots=True)
class Spending:
    """The limit of what a run spends, and the count of it.

    Args:
        budget: None: nothing limits it.
        count: called with each answer of a model, and with the name of its caller.
    """

    budget: Budget | None = None
    count: Callable[[Any, str], None] | None = None
