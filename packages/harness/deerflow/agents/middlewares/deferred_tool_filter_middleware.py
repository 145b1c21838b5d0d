"""Tools of MCP servers that the model sees once it has asked for them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ModelHandler, ToolHandler
from deerflow.agents.middlewares.results import ModelResult, ToolResult, error_result
from deerflow.context import RunContext
from deerflow.mcp import SERVER
from deerflow.security.text import inline
from deerflow.storage.matching import best_matches
from deerflow.tools.decorator import Runtime, async_tool

DEFERRED_FROM = 20
"""So many tools of servers are not shown at once unless the configuration says otherwise."""
MAX_RESULTS = 5
SELECT = "select:"
PROMOTED = "promoted"
"""Key in a result's ``additional_kwargs``: the tools that the thread has from then on."""
SHOWN_SERVERS = 40


class DeferredToolFilterMiddleware(Middleware):
    """Brings ``tool_search``. What it finds is offered from the next request on, behind all other tools, as long as the thread lives.

    Args:
        deferred: the tools that are not offered at first.
    """

    def __init__(self, deferred: Sequence[BaseTool]) -> None:
        super().__init__()
        self.deferred = {tool.name: tool for tool in deferred}
        self.tools: Sequence[BaseTool] = [_tool_search(self.deferred)]

    def offered(self, tools: Iterable[Any], messages: Iterable[BaseMessage]) -> list[Any]:
        """``tools`` without those that nobody asked for in these messages."""
        return [
            *(tool for tool in tools if getattr(tool, "name", None) not in self.deferred),
            *(self.deferred[name] for name in promoted(messages) if name in self.deferred),
        ]

    async def awrap_model_call(self, request: ModelRequest[RunContext], handler: ModelHandler) -> ModelResult:
        return await handler(request.override(tools=self.offered(request.tools, request.state["messages"])))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name = request.tool_call["name"]
        if name in self.deferred and name not in promoted(request.state["messages"]):
            text = f"Error: {name} cannot be called yet. Call tool_search with {SELECT}{name} first."
            return error_result(request.tool_call, text)
        return await handler(request)


def promoted(messages: Iterable[BaseMessage]) -> list[str]:
    """The tools that were asked for, in that order."""
    results = (message for message in messages if isinstance(message, ToolMessage))
    return list(dict.fromkeys(name for result in results for name in result.additional_kwargs.get(PROMOTED, ())))


def _tool_search(deferred: dict[str, BaseTool]) -> BaseTool:
    texts = {name: f"{(tool.metadata or {}).get(SERVER, '')} {tool.description}" for name, tool in deferred.items()}

    @async_tool("tool_search")
    async def tool_search(query: str, runtime: Runtime) -> ToolMessage:
        """Find tools."""
        if query.startswith(SELECT):
            asked = [name.strip() for name in query.removeprefix(SELECT).split(",")]
            found = [name for name in asked if name in deferred]
        else:
            found = await asyncio.to_thread(best_matches, texts, query, MAX_RESULTS)
        lines = [f"- {name}: {inline(deferred[name].description, 300)}" for name in found]
        text = "\n".join(["You can call these from now on:", *lines]) if found else f"No tools found matching: {query}"
        return ToolMessage(
            text,
            name="tool_search",
            tool_call_id=runtime.tool_call_id or "",
            additional_kwargs={PROMOTED: found} if found else {},
        )

    counts = Counter((tool.metadata or {}).get(SERVER, "other") for tool in deferred.values())
    servers = ", ".join(f"{inline(name, 40)} ({count})" for name, count in list(counts.items())[:SHOWN_SERVERS])
    return tool_search.model_copy(
        update={
            "description": f"{len(deferred)} more tools can be called once you have found them here, of: {servers}. Search by "
            f"words of their names and descriptions; +word must be there; {SELECT}name,name takes them by name."
        }
    )
