"""The way a run delegates to subagents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from deerflow.context.subagent_stops import SubagentStops


@dataclass(frozen=True, slots=True)
class Delegation:
    """Subagents that a run can start, stop and wait for."""

    start: Callable[[Any, Any], None] | None = None
    """Lets a subagent work in the background: takes the task, and the context of the agent that gives it. None: nothing can."""
    cancel: Callable[[str], Awaitable[bool]] | None = None
    """Stops the subagent that the call of this id started."""
    ended: Callable[[str], Awaitable[None]] | None = None
    """Awaited with the id of its call before a subagent's result counts: what it emitted outlives the process then."""
    in_background: Callable[[], int] | None = None
    """Counts the subagents that work in the background."""
    stops: SubagentStops = field(default_factory=SubagentStops)
