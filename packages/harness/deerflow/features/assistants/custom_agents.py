"""The custom agents of a person, as a run may change them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CustomAgents:
    """The person's custom agents, for one run."""

    save: Callable[[str | None, Mapping[str, Any]], Awaitable[str]]
    """Makes or changes one, and returns a sentence about it; None: the default agent."""
