"""Tools: their assembly and the built-in ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.tools.registry import get_available_tools

__all__ = ["get_available_tools"]


def __getattr__(name: str) -> Any:
    if name != "get_available_tools":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from deerflow.tools.registry import get_available_tools

    return get_available_tools
