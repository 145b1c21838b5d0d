"""When tool calls are made: in which order, and those with side effects at most once, also when a run goes on after a crash."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from threading import Lock

from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ToolHandler, ToolResult, asking_id, context_of, error_result

READERS = frozenset({"ls", "read_file", "glob", "grep", "view_image", "read_process", "present_files"})
WRITERS = frozenset({"bash", "write_file", "str_replace", "kill_process"})


class ToolOrderMiddleware(Middleware):
    """Orders the calls that use the sandbox, so that ``present_files`` behind ``bash`` finds what ``bash`` has made.

    Calls of other tools wait for nothing. It stands first in the chain: a call that waits has not begun.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._replies: dict[str, list[tuple[bool, Future[None]]]] = {}
        """The calls of each reply that wait or run, in their order: whether one writes, and its leave to run."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name = request.tool_call["name"]
        if name not in READERS | WRITERS or not (reply := asking_id(request)):
            return await handler(request)
        leave: Future[None] = Future()
        call = (name in WRITERS, leave)
        with self._lock:
            self._replies.setdefault(reply, []).append(call)
            self._admit(reply)
        try:
            if not leave.done():
                await asyncio.wrap_future(leave)
            return await handler(request)
        finally:
            with self._lock:
                self._replies[reply].remove(call)
                self._admit(reply)

    def _admit(self, reply: str) -> None:
        """Let every call run that nothing before it keeps from it."""
        calls = self._replies[reply]
        for position, (writes, leave) in enumerate(calls):
            if writes and position:
                return
            if not leave.done():
                leave.set_result(None)
            if writes:
                return
        if not calls:
            del self._replies[reply]


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
        context = context_of(request)
        ledger = context.ledger if context is not None else None
        if context is None or ledger is None or not request.tool_call["id"] or request.tool_call["name"] in REPEATABLE:
            return await handler(request)
        # Some providers count their calls anew in every message.
        call_id = f"{asking_id(request)}/{request.tool_call['id']}"
        if context.task_namespace:
            call_id = f"{context.task_namespace}/{call_id}"
        if not await ledger.begin(call_id):
            return error_result(request.tool_call, CUT_OFF)
        try:
            return await handler(request)
        except GraphBubbleUp:
            await ledger.forget(call_id)
            raise
