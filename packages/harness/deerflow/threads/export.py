"""A conversation as a document to keep or to pass on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage


def as_markdown(title: str | None, messages: Sequence[AnyMessage]) -> str:
    """What people and agents said, and which tools were called. Results of tools are left out."""
    parts = [f"# {title}"] if title else []
    for message in messages:
        if message.additional_kwargs.get("hide_from_ui"):
            continue
        if isinstance(message, HumanMessage):
            parts.append(f"## User\n\n{message.text.strip()}")
        elif isinstance(message, AIMessage):
            if message.text.strip():
                parts.append(f"## Assistant\n\n{message.text.strip()}")
            parts += [f"*Tool: {_code(call['name'])}*" for call in message.tool_calls]
    return "\n\n".join(parts) + "\n"


def as_json(title: str | None, thread_id: str, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All messages but hidden ones, as they are."""
    shown = [message for message in messages if not (message.get("additional_kwargs") or {}).get("hide_from_ui")]
    return {"thread_id": thread_id, "title": title, "messages": shown}


def _code(name: str) -> str:
    return "`" + name.replace("`", "'") + "`"
