"""Reading and changing what a tool call returned, a message or a command that holds messages."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
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


# what a long text holds ----------------------------------------------------------------------------------------------

SHOWN_KEYS, SHOWN_ERRORS, SHOWN_LINE, DEPTH = 40, 12, 200, 3
_ERROR = re.compile(r"(?:error|exception)\b|\b(?:traceback|failed|failure|fatal|panic)\b", re.IGNORECASE)


def structure(text: str) -> str:
    """What a text holds, in a few lines: the keys of JSON, the columns and rows of a table, else its lines and those about errors.

    Linear in its length.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return f"JSON: {_shape(json.loads(text), DEPTH)}"
        except (ValueError, RecursionError):
            pass
    lines = text.splitlines()
    if (table := _table(lines)) is not None:
        return table
    errors = [f"{number}: {line[:SHOWN_LINE]}" for number, line in enumerate(lines, 1) if _ERROR.search(line[:2000])]
    found = f"Text of {len(lines)} lines."
    if errors:
        more = f" (the first {SHOWN_ERRORS})" if len(errors) > SHOWN_ERRORS else ""
        found += f" {len(errors)} lines about errors{more}:\n" + "\n".join(errors[:SHOWN_ERRORS])
    return found


def _shape(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        if not depth:
            return f"object with {len(value)} keys"
        shown = [f"{key[:60]}: {_shape(inner, depth - 1)}" for key, inner in islice(value.items(), SHOWN_KEYS)]
        return "{" + ", ".join(shown) + (f", … {len(value)} keys in all" if len(value) > SHOWN_KEYS else "") + "}"
    if isinstance(value, list):
        return f"list of {len(value)}" + (f", the first {_shape(value[0], depth - 1)}" if value and depth else "")
    if isinstance(value, str):
        return f"text of {len(value)} characters" if len(value) > 40 else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _table(lines: Sequence[str]) -> str | None:
    """Of comma or tab separated values: if the first twenty rows have the same number of columns, at least two."""
    for delimiter in (",", "\t", ";", "|"):
        try:
            rows = list(csv.reader((line[:10_000] for line in lines[:20]), delimiter=delimiter))
        except csv.Error:
            return None
        if len(rows) > 2 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
            columns = ", ".join(column.strip()[:60] for column in rows[0][:SHOWN_KEYS])
            more = f", … {len(rows[0])} in all" if len(rows[0]) > SHOWN_KEYS else ""
            return f"Table of about {len(lines) - 1} rows. Columns: {columns}{more}"
    return None
