"""Reading and changing what a tool call returned, a message or a command that holds messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from deerflow.agents.middlewares.base import ToolResult


def tool_messages(result: ToolResult) -> list[ToolMessage]:
    """The messages in a result."""
    if isinstance(result, ToolMessage):
        return [result]
    update = result.update if isinstance(result, Command) else None
    messages = update.get("messages") if isinstance(update, dict) else None
    return [message for message in messages or () if isinstance(message, ToolMessage)]


def with_replaced(result: ToolResult, replacement: Callable[[ToolMessage], ToolMessage]) -> ToolResult:
    """``result`` with every message in it replaced; the same object if none changed."""
    if isinstance(result, ToolMessage):
        return replacement(result)
    messages = tool_messages(result)
    replaced = {id(message): replacement(message) for message in messages}
    if all(replaced[id(message)] is message for message in messages):
        return result
    update: dict[str, Any] = {**result.update}  # pyright: ignore[reportGeneralTypeIssues] - it held messages, so it is a dict
    update["messages"] = [replaced.get(id(message), message) for message in update["messages"]]
    return replace(result, update=update)


def error_result(call: dict[str, Any] | Any, text: str, **kwargs: Any) -> ToolMessage:
    """An error as the result of a call."""
    return ToolMessage(
        content=text,
        name=call["name"] or "unknown_tool",
        tool_call_id=call["id"] or "missing_tool_call_id",
        status="error",
        additional_kwargs=kwargs,
    )


def content_text(content: str | Sequence[Any]) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    return "\n".join(block if isinstance(block, str) else str(block.get("text") or "") for block in content)


def asking_id(request: ToolCallRequest) -> str:
    """The id of the message that asked for a call."""
    messages = request.state["messages"] if isinstance(request.state, dict) else ()
    return next((message.id or "" for message in reversed(messages) if isinstance(message, AIMessage)), "")
