"""Exports of threads as Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from deerflow.agents.transcript import Summary

if TYPE_CHECKING:
    pass


def as_markdown(title: str | None, messages: Sequence[AnyMessage], summaries: Mapping[str, Summary]) -> str:
    """Return the words of people and agents, the tools that were called, and where summaries stand for them, without results of tools."""
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
        if summary := summaries.get(message.id or ""):
            parts.append(_mark(summary))
    return "\n\n".join(parts) + "\n"


def _mark(summary: Summary) -> str:
    sizes = f"{summary['before']:,} → {summary['after']:,} tokens"
    when = f", {summary.get('made_at', '')[:16].replace('T', ' ')} UTC" if summary.get("made_at") else ""
    line = f"<summary>Summarized for the model ({sizes}{when})</summary>"
    return f"<details>\n{line}\n\n{summary['text'].strip()}\n\n</details>"


def as_json(
    title: str | None, thread_id: str, messages: Sequence[dict[str, Any]], summaries: Mapping[str, Summary]
) -> dict[str, Any]:
    """All messages but hidden ones, as they are, and the summaries that stand for those up to ``upto``."""
    shown = [message for message in messages if not (message.get("additional_kwargs") or {}).get("hide_from_ui")]
    return {"thread_id": thread_id, "title": title, "messages": shown, "summaries": list(summaries.values())}


def _code(name: str) -> str:
    return "`" + name.replace("`", "'") + "`"
