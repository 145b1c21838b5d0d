"""DeerFlow: an open-source super agent harness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.client import DeerFlowClient
    from deerflow.events.streams.client_events import StreamEvent

__all__ = ["DeerFlowClient", "StreamEvent"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "DeerFlowClient":
        from deerflow.client import DeerFlowClient

        return DeerFlowClient
    if name == "StreamEvent":
        from deerflow.events.streams.client_events import StreamEvent

        return StreamEvent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
