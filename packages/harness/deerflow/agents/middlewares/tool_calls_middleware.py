"""When tool calls are made: in which order, and those with side effects at most once, also when a run goes on after a crash."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock

from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import (
    Middleware,
    ToolFailure,
    ToolHandler,
    ToolResult,
    asking_id,
    context_of,
    error_result,
)

READERS = frozenset({"ls", "read_file", "glob", "grep", "view_image", "read_process", "present_files"})
WRITERS = frozenset({"bash", "write_file", "str_replace", "kill_process"})


@dataclass(eq=False, slots=True)
class _Place:
    """The place of a call among those of its reply.

    Args:
        writes: None for calls that do not use the sandbox.
        leave: to run, of calls that use the sandbox.
        waits: whether it waits for a person; known once it was judged or has ended.
    """

    call_id: str
    writes: bool | None
    leave: Future[None] = field(default_factory=Future[None])
    waits: Future[bool] = field(default_factory=Future[bool])
    has_ended: bool = False

    def settle(self, waits: bool) -> None:
        if not self.waits.done():
            self.waits.set_result(waits)


class ToolOrderMiddleware(Middleware):
    """Orders the calls that use the sandbox, so that ``present_files`` behind ``bash`` finds what ``bash`` has made.

    Calls of other tools wait for nothing. It stands first in the chain: a call that waits has not begun. The guardrail asks it whether
    a call before a write waits for a person (:meth:`check_before`): then the write waits, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._replies: dict[str, list[_Place]] = {}
        """The calls of each reply that are under way, in their order."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        name = request.tool_call["name"]
        if not (reply := asking_id(request)):
            return await handler(request)
        place = _Place(request.tool_call["id"] or "", name in WRITERS if name in READERS | WRITERS else None)
        with self._lock:
            self._replies.setdefault(reply, []).append(place)
            self._admit(reply)
        waits = False
        try:
            if place.writes is not None and not place.leave.done():
                await asyncio.wrap_future(place.leave)
            return await handler(request)
        except GraphInterrupt:
            waits = True
            raise
        finally:
            place.settle(waits)
            with self._lock:
                place.has_ended = True
                self._admit(reply)

    def judged(self, request: ToolCallRequest) -> None:
        """A call was allowed, by a rule or by the person."""
        for place in self._places(request):
            if place.call_id == request.tool_call["id"]:
                place.settle(False)

    async def check_before(self, request: ToolCallRequest) -> None:
        """Wait until the calls before a write are judged. Raises GraphInterrupt if one of them waits for a person."""
        if request.tool_call["name"] not in WRITERS:
            return
        for place in self._places(request):
            if place.call_id == request.tool_call["id"]:
                return
            if await asyncio.wrap_future(place.waits):
                raise GraphInterrupt

    def _places(self, request: ToolCallRequest) -> list[_Place]:
        with self._lock:
            return list(self._replies.get(asking_id(request), ()))

    def _admit(self, reply: str) -> None:
        """Let every call run that nothing before it keeps from it."""
        places = self._replies[reply]
        if all(place.has_ended for place in places):
            del self._replies[reply]
            return
        first = True
        for place in places:
            if place.writes is None or place.has_ended:
                continue
            if place.writes and not first:
                return
            if not place.leave.done():
                place.leave.set_result(None)
            if place.writes:
                return
            first = False


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
        if context.namespace:
            call_id = f"{context.namespace}/{call_id}"
        if not await ledger.begin(call_id):
            return error_result(request.tool_call, CUT_OFF, ToolFailure.INTERRUPTED)
        try:
            return await handler(request)
        except GraphBubbleUp:
            await ledger.forget(call_id)
            raise
