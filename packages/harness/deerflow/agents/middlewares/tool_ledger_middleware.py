"""A tool call with side effects happens at most once, also when a run goes on after a crash."""

from __future__ import annotations

from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ToolHandler
from deerflow.agents.middlewares.results import ToolResult, asking_id, error_result
from deerflow.context import RunContext, ToolLedger

REPEATABLE = frozenset(
    {
        "ls",
        "read_file",
        "glob",
        "grep",
        "view_image",
        "read_process",
        "write_todos",
        "present_files",
        "ask_clarification",
        "task",
    }
)
"""Tools that change nothing outside of the thread's state, or go on where they were: they are simply called again."""

CUT_OFF = (
    "Interrupted: the program stopped while this call was being executed. It may or may not have taken effect, so it was "
    "not repeated. Check what was done before you go on."
)


class ToolLedgerMiddleware(Middleware):
    """Tells the run's ledger before a call, and refuses one that began before. Without a ledger it does nothing.

    A call whose result is in the thread is not made anew by LangGraph, so that the ledger need not know results.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        context: RunContext | None = request.runtime.context if request.runtime is not None else None
        ledger: ToolLedger | None = context.ledger if context is not None else None
        if ledger is None or not request.tool_call["id"] or request.tool_call["name"] in REPEATABLE:
            return await handler(request)
        # Some providers count their calls anew in every message.
        call_id = f"{asking_id(request)}/{request.tool_call['id']}"
        if context is not None and context.task_namespace:
            call_id = f"{context.task_namespace}/{call_id}"
        if not await ledger.begin(call_id):
            return error_result(request.tool_call, CUT_OFF)
        try:
            return await handler(request)
        except GraphBubbleUp:
            await ledger.forget(call_id)
            raise
