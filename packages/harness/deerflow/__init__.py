"""DeerFlow: an open-source super agent harness."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.client import DeerFlowClient
    from deerflow.events.streams.client_events import StreamEvent

__all__ = ["DeerFlowClient", "StreamEvent"]
__version__ = "0.1.0"


_MODULES = {"DeerFlowClient": "deerflow.client", "StreamEvent": "deerflow.events.streams.client_events"}


def __getattr__(name: str) -> Any:
    """Imported when they are asked for."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
