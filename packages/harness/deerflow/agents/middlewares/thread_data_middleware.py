"""Gives every run its thread's directories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ToolHandler
from deerflow.agents.middlewares.results import ToolResult
from deerflow.config import Paths
from deerflow.context import RunContext, Workspace


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
        if isinstance(context, RunContext) and context.workspace is not None:
            return await handler(request)
        context = (
            context
            if isinstance(context, RunContext)
            else RunContext(thread_id=_thread_id(context, request.runtime.config))
        )
        workspace = await asyncio.to_thread(thread_workspace, self.paths, context)
        return await handler(
            replace(request, runtime=replace(request.runtime, context=replace(context, workspace=workspace)))
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


def _thread_id(context: Any, config: Mapping[str, Any]) -> str:
    given = context.get("thread_id") if isinstance(context, Mapping) else None
    thread_id = given or (config.get("configurable") or {}).get("thread_id")
    if not thread_id:
        raise ValueError("Thread ID is required in runtime context or config.configurable")
    return str(thread_id)
