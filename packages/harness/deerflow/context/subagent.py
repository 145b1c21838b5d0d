"""The subagent that a context belongs to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subagent:
    """A subagent at work.

    Args:
        namespace: its checkpoint namespace, which is that of its events.
        max_turns: answers that its model may give.
    """

    name: str
    namespace: str = ""
    max_turns: int | None = None
