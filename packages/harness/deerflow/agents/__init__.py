"""How an agent is put together."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.agents.factory import create_deerflow_agent
    from deerflow.agents.features import Next, Prev, RuntimeFeatures
    from deerflow.agents.thread_state import SandboxState, ThreadState
    from deerflow.features.graph import make_lead_agent

__all__ = ["Next", "Prev", "RuntimeFeatures", "SandboxState", "ThreadState", "create_deerflow_agent", "make_lead_agent"]

_HOMES = {
    "create_deerflow_agent": "deerflow.agents.factory",
    "Next": "deerflow.agents.features",
    "Prev": "deerflow.agents.features",
    "RuntimeFeatures": "deerflow.agents.features",
    "make_lead_agent": "deerflow.features.graph",
    "SandboxState": "deerflow.agents.thread_state",
    "ThreadState": "deerflow.agents.thread_state",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
