"""Gives every run its thread's sandbox."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ToolHandler, ToolResult
from deerflow.config import AppConfig, Paths
from deerflow.context import RunContext
from deerflow.sandbox.interface import SandboxProvider
from deerflow.sandbox.policy import thread_policy
from deerflow.sandbox.registry import build_sandbox_provider


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

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        context = request.runtime.context
        if not isinstance(context, RunContext) or context.sandbox_provider is not None:
            return await handler(request)
        policy = await asyncio.to_thread(
            thread_policy, self.config, self.paths, context.thread_id, context.principal.user_id
        )
        context = replace(
            context, config=context.config or self.config, sandbox_provider=self.provider, sandbox_policy=policy
        )
        return await handler(replace(request, runtime=replace(request.runtime, context=context)))
