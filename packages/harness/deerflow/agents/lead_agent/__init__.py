"""The lead agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.agents.lead_agent.agent import build_lead_agent, make_lead_agent

__all__ = ["build_lead_agent", "make_lead_agent"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from deerflow.agents.lead_agent import agent

    return getattr(agent, name)
