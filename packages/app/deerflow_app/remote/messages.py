"""A thread's values as the server sends them, in the form of the public streaming contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deerflow.events.streams.client_events import text_of


def shown_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """``{title, messages, artifacts, todos}``."""
    return {
        "title": values.get("title"),
        "messages": [shown_message(message) for message in values.get("messages") or ()],
        "artifacts": list(values.get("artifacts") or ()),
        "todos": values.get("todos") or [],
    }


def shown_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """See ``deerflow.events.streams.client_events.message_dict``, which does this to LangChain's messages."""
    kind, more = message.get("type"), message.get("additional_kwargs") or {}
    data: dict[str, Any] = {"type": kind, "content": text_of(message.get("content")), "id": message.get("id")}
    if kind == "ai":
        if calls := message.get("tool_calls"):
            data["tool_calls"] = [{key: call.get(key) for key in ("name", "args", "id")} for call in calls]
        if usage := message.get("usage_metadata"):
            data["usage_metadata"] = {
                key: int(usage.get(key) or 0) for key in ("input_tokens", "output_tokens", "total_tokens")
            }
        data |= {key: more[key] for key in ("reasoning_content", "error") if more.get(key)}
    elif kind == "tool":
        data |= {key: message.get(key) for key in ("name", "tool_call_id", "status")}
    elif files := more.get("files"):
        data["files"] = files
    return data
