"""Gives every run its thread's directories and sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import (
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    ToolHandler,
    ToolResult,
    reminder,
)
from deerflow.config import AppConfig, Paths
from deerflow.context import RunContext
from deerflow.context.workspace import Workspace
from deerflow.harness import tool_image
from deerflow.sandbox.converters import build_converters
from deerflow.sandbox.interface import SandboxError, SandboxProvider, sandbox_id
from deerflow.sandbox.policy import build_sandbox_provider, thread_policy


class ThreadDataMiddleware(Middleware):
    """Makes the run's context complete for tools when the graph was invoked without our runtime.

    Our runtime passes a :class:`RunContext` that already knows its workspace, and nothing is to be done. A graph that a
    person invokes directly knows its thread only from ``configurable``; the directories are made at the first tool call.
    """

    def __init__(self, paths: Paths | None = None) -> None:
        super().__init__()
        self.paths = paths or Paths()

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        context = request.runtime.context
        if isinstance(context, RunContext) and context.machine.workspace is not None:
            return await handler(request)
        if not isinstance(context, RunContext):
            context = RunContext(thread_id=_thread_id(context, request.runtime.config))
        workspace = await asyncio.to_thread(thread_workspace, self.paths, context)
        return await handler(
            _with_context(request, replace(context, machine=replace(context.machine, workspace=workspace)))
        )


def thread_workspace(paths: Paths, context: RunContext) -> Workspace:
    """The thread's directories, made if need be."""
    thread, user = context.thread_id, context.principal.user_id
    paths.ensure_thread_dirs(thread, user)
    return Workspace(
        paths.thread_dir(thread, user),
        paths.workspace(thread, user),
        paths.uploads(thread, user),
        paths.outputs(thread, user),
    )


def _with_context(request: ToolCallRequest, context: RunContext) -> ToolCallRequest:
    return replace(request, runtime=replace(request.runtime, context=context))


def _thread_id(context: Any, config: Mapping[str, Any]) -> str:
    given = context.get("thread_id") if isinstance(context, Mapping) else None
    thread_id = given or (config.get("configurable") or {}).get("thread_id")
    if not thread_id:
        raise ValueError("Thread ID is required in runtime context or config.configurable")
    return str(thread_id)


async def _running(request: Request) -> str:
    """At the beginning of a turn: what still runs since earlier ones."""
    context = request.runtime.context
    begins = bool(request.messages) and isinstance(request.messages[-1], HumanMessage)
    if not begins or not isinstance(context, RunContext) or context.machine.provider is None:
        return ""
    sandbox = context.machine.provider.get(sandbox_id(context.thread_id, context.principal.user_id))
    try:
        processes = await sandbox.list_processes() if sandbox is not None else []
    except SandboxError:
        return ""
    lines = [f"- {process.id}: {' '.join(process.command.split())[:200]}" for process in processes if process.running]
    return "\n".join(["Background processes of earlier turns still run:", *lines]) if lines else ""


class SandboxMiddleware(Middleware):
    """Puts a sandbox provider into the context of a graph that was invoked without our runtime.

    A sandbox is acquired when a tool first asks for it, and released by whoever runs the graph, never by a subagent.
    """

    def __init__(
        self, provider: SandboxProvider | None = None, paths: Paths | None = None, config: AppConfig | None = None
    ) -> None:
        super().__init__()
        self.paths = paths or Paths()
        self.config = config or AppConfig()
        self.provider = provider or build_sandbox_provider(self.config, self.paths)
        self.converters = build_converters(self.config, self.paths, self.provider, tool_image(self.config, self.paths))

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        text = await _running(request)
        note = [reminder("running_processes", text)] if text else []
        return await handler(request.override(messages=[*request.messages, *note]) if note else request)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        context = request.runtime.context
        if not isinstance(context, RunContext) or context.machine.provider is not None:
            return await handler(request)
        policy = await asyncio.to_thread(
            thread_policy, self.config, self.paths, context.thread_id, context.principal.user_id
        )
        machine = replace(context.machine, provider=self.provider, policy=policy, converters=self.converters)
        context = replace(context, config=context.config or self.config, machine=machine)
        return await handler(_with_context(request, context))
