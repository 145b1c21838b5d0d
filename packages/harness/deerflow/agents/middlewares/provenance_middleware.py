"""Rows of foreign text before a tool brings it, and the fence around what a tool shows of it."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.effects import effect_of
from deerflow.agents.middlewares.base import (
    Middleware,
    ToolHandler,
    ToolResult,
    context_of,
    tool_messages,
    with_note,
    with_replaced,
)
from deerflow.agents.provenance import foreign_sources, is_tainted, network_of
from deerflow.context import RunContext
from deerflow.sandbox.interface import sandbox_id
from deerflow.security.door import EXACT, UNTRUSTED, harmless
from deerflow.tools.shell import REFUSED_HOSTS, SAID_OF

QUOTES = frozenset({"bash", "grep", "read_file", "read_process", "kill_process", "run_skill_script", "task"})
"""Tools that show what others may have written, once the thread holds foreign text."""


class ProvenanceMiddleware(Middleware):
    """Record where a call brings text from, durably and before it is made, and mark what it returned as foreign."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name, context = request.tool_call["name"], context_of(request)
        if request.tool is None:
            return await handler(request)
        effect = effect_of(request.tool, network_of(context))
        rows = context.trust.provenance if context is not None else None
        if rows is not None and (source := effect.source(name, request.tool_call["args"])) is not None:
            await rows.add(source)
        shared = _shared_mounts(context) if effect.is_inside else ()
        if rows is not None and shared:
            await rows.through_mounts(shared)
        has_gate = context is not None and context.machine.gate is not None
        gated = context if has_gate and effect.reaches == "commands" else None
        if gated is not None:
            await _settle(request, gated)
        result = _with_said(await handler(request))
        if gated is not None:
            result = _with_refused(result, gated)
        if rows is not None and shared:
            await rows.through_mounts(shared)
        if effect.brings:
            return await asyncio.to_thread(with_replaced, result, _from_outside)
        if name in QUOTES and await is_tainted(request):
            return with_replaced(result, _as_it_is)
        return result


async def _settle(request: ToolCallRequest, context: RunContext) -> None:
    """Bring the rows up to what the messages show: the gate, which judges the hosts of this call, sees rows alone."""
    rows = context.trust.provenance
    if rows is None or network_of(context) not in ("allowlist", "internet"):
        return
    sources = await foreign_sources(request)
    if rows.is_volatile:
        await rows.add(*sources)


def _with_refused(result: ToolResult, context: RunContext) -> ToolResult:
    """Return ``result`` with the hosts that commands could not reach since the last one, and why."""
    provider = context.machine.provider
    sandbox = provider.get(sandbox_id(context.thread_id, context.principal.user_id)) if provider is not None else None
    if sandbox is None or not (refused := sandbox.take_refused()):
        return result

    def marked(message: ToolMessage) -> ToolMessage:
        kwargs = {**message.additional_kwargs, REFUSED_HOSTS: list(refused)}
        return message.model_copy(update={"additional_kwargs": kwargs})

    return with_note(with_replaced(result, marked), "\n".join(refused.values()))


def _with_said(result: ToolResult) -> ToolResult:
    """Return ``result`` with what the system says about a command outside of what the command printed."""
    said = [one.artifact.get(SAID_OF) for one in tool_messages(result) if isinstance(one.artifact, dict)]
    return with_note(result, said[0]) if len(said) == 1 and said[0] else result


def _shared_mounts(context: RunContext | None) -> tuple[str, ...]:
    """Return the directories of the host that the sandboxes of other threads write to as well."""
    if context is None or context.config is None:
        return ()
    return tuple(mount.host_path for mount in context.config.sandbox.mounts if not mount.read_only)


def _from_outside(message: ToolMessage) -> ToolMessage:
    """Return ``message`` as it is kept: harmless, and with a note for those who compile requests."""

    def clean(content: Any) -> Any:
        if isinstance(content, str):
            return harmless(content)
        return {**content, "text": clean(content["text"])} if isinstance(content.get("text"), str) else content

    content = message.content
    kept = clean(content) if isinstance(content, str) else [clean(block) for block in content]
    kwargs = {**message.additional_kwargs, UNTRUSTED: message.name or "tool"}
    return message.model_copy(update={"content": kept, "additional_kwargs": kwargs})


def _as_it_is(message: ToolMessage) -> ToolMessage:
    """Return ``message`` with a note that its text is fenced, but keeps its spaces: files are edited by what they show."""
    kwargs = {**message.additional_kwargs, UNTRUSTED: message.name or "tool", EXACT: True}
    return message.model_copy(update={"additional_kwargs": kwargs})
