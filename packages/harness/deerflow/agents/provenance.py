"""Provenance of the thread that an agent works in: the rows of the database, or its messages where there is no database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.effects import UNKNOWN, Effect, effects_of
from deerflow.agents.turn import FACTS, PROMPT, QUOTED
from deerflow.context import RunContext
from deerflow.storage.provenance import UNJUDGED, Source


def sources_in(messages: Iterable[BaseMessage], effects: Mapping[str, Effect]) -> list[Source]:
    """Return where foreign text in messages came from, the oldest first."""
    messages = list(messages)
    calls = {call["id"]: call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    found: dict[Source, None] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id)
            name = message.name or "unknown tool"
            source = effects.get(name, UNKNOWN).source(name, call["args"] if call else {})
            found |= {source: None} if source is not None else {}
        elif isinstance(message, HumanMessage) and (facts := message.additional_kwargs.get(FACTS)):
            files = [*facts.get("files", ()), *facts.get("earlier_files", ())]
            found |= dict.fromkeys(Source("upload", file["filename"]) for file in files)
            if prompt := facts.get(PROMPT):
                found[Source("server", str(prompt["name"]))] = None
            found |= dict.fromkeys(Source("channel", quoted["source"]) for quoted in facts.get(QUOTED, ()))
    return list(found)


async def foreign_sources(request: ToolCallRequest) -> list[Source]:
    """Return the sources of the thread that its person does not trust, as they are now.

    A thread of before the rows is judged once: by its messages, and by the files that other branches left.
    """
    context: Any = request.runtime.context
    provenance = context.trust.provenance if isinstance(context, RunContext) else None
    if provenance is None:
        return _judged(request)
    rows = await provenance.sources()
    if old := [row for row in rows if row.kind == UNJUDGED]:
        left = await asyncio.to_thread(_left_by_branches, context)
        await provenance.replace(old, [*_judged(request), *left])
        rows = await provenance.sources()
    found = [row for row in rows if not row.trusted]
    return found + _judged(request) if provenance.is_volatile else found


async def is_tainted(request: ToolCallRequest) -> bool:
    """Return whether the thread holds foreign text that its person does not trust."""
    context: Any = request.runtime.context
    rows = context.trust.provenance if isinstance(context, RunContext) else None
    if rows is not None and await rows.is_tainted():
        return True
    return (rows is None or rows.is_volatile) and bool(_judged(request))


def network_of(context: RunContext | None) -> str:
    """Return the mode of the sandbox's network."""
    return context.config.sandbox.network.mode if context is not None and context.config is not None else "none"


def _judged(request: ToolCallRequest) -> list[Source]:
    context: Any = request.runtime.context
    network = network_of(context if isinstance(context, RunContext) else None)
    tools = getattr(request.runtime, "tools", None) or ()
    return sources_in(request.state["messages"], effects_of(tools, network))


def _left_by_branches(context: RunContext) -> list[Source]:
    """Return the sources that a thread's files show: a page that was fetched, an upload."""
    if (workspace := context.machine.workspace) is None:
        return []
    pages = [Source("page", "an earlier page")] if _holds_something(workspace.workspace / ".web") else []
    return pages + ([Source("upload", "an earlier upload")] if _holds_something(workspace.uploads) else [])


def _holds_something(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())
