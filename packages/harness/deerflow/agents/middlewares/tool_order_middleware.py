"""Calls of one reply: what reads runs side by side, what writes runs alone, and both in the order given."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from threading import Lock

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ToolHandler
from deerflow.agents.middlewares.results import ToolResult, asking_id

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
