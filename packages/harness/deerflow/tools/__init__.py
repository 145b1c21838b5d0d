"""Tools: their assembly and the built-in ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deerflow.tools.registry import get_available_tools

__all__ = ["OWN_NAMES", "get_available_tools"]

OWN_NAMES = frozenset(
    [
        "ask_clarification",
        "bash",
        "call_tool",
        "cancel_task",
        "describe_skill",
        "glob",
        "grep",
        "image_search",
        "invoke_acp_agent",
        "kill_process",
        "ls",
        "memory_forget",
        "memory_save",
        "memory_search",
        "present_files",
        "read_file",
        "read_process",
        "run_skill_script",
        "search_chats",
        "setup_agent",
        "skill_manage",
        "str_replace",
        "task",
        "tool_search",
        "update_agent",
        "view_image",
        "web_capture",
        "web_fetch",
        "web_search",
        "write_file",
        "write_todos",
    ]
)
"""Names of all tools of ours, whichever are on: no tool of others gets one of them."""


def __getattr__(name: str) -> Any:
    if name != "get_available_tools":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from deerflow.tools.registry import get_available_tools

    return get_available_tools
