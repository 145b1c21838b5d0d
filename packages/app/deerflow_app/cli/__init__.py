"""The `deerflow` command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Settings:
    """What holds for a whole call.

    Args:
        local: a running server is left alone.
        model: the one that answers; None: the first.
        plan: the agent keeps a visible plan.
        subagents: the agent may delegate.
        agent: the custom agent to talk to.
        is_bootstrap: the talk is about setting it up.
        unattended: nobody is there to decide about calls.
    """

    config: Path | None = None
    debug: bool = False
    local: bool = False
    model: str | None = None
    thinking: bool = True
    plan: bool = False
    subagents: bool = False
    agent: str | None = None
    is_bootstrap: bool = False
    unattended: bool = False
