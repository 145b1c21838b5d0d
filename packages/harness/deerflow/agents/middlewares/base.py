"""The shape of our middlewares, and their fusion into one.

LangChain makes a graph node of every ``before_*``/``after_*`` hook and a tracing span of every ``wrap_*`` hook. Ours
define neither nodes nor spans of their own: a pure ``compile`` for the request, and the asynchronous wrappers, from
which the synchronous ones follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, reduce
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, hook_config
from langchain_core.messages import AnyMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.marks import marked, thread_mark
from deerflow.agents.middlewares.results import ModelResult, ToolResult, messages_of, with_messages
from deerflow.agents.thread_state import ThreadState
from deerflow.agents.transcript import MessageMemo, Transcript
from deerflow.context import RunContext
from deerflow.event_loop import run_blocking

ModelHandler = Callable[[ModelRequest[RunContext]], Awaitable[ModelResult]]
ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolResult]]


class Middleware(AgentMiddleware[ThreadState, RunContext, Any]):
    """Base of DeerFlow's middlewares. Override any of ``compile``, ``awrap_model_call`` and ``awrap_tool_call``.

    Instances are shared by all runs of an agent, so they hold no state of a run: that comes from
    ``request.runtime.context`` and from the messages.
    """

    state_schema = ThreadState

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        """What this middleware adds to the request. Pure: no I/O, no clock, same input, same output."""
        return transcript

    async def arrivals(self, request: ModelRequest[RunContext]) -> list[AnyMessage]:
        """Messages that join the transcript before the model is asked: they are kept in front of its answer."""
        return []

    async def awrap_model_call(self, request: ModelRequest[RunContext], handler: ModelHandler) -> ModelResult:
        return await handler(request)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        return await handler(request)


class FusedMiddleware(AgentMiddleware[ThreadState, RunContext, Any]):
    """Adjacent middlewares as one: each costs a function call instead of a span, and the compile step runs once per model call."""

    state_schema = ThreadState

    def __init__(self, middlewares: Sequence[Middleware]) -> None:
        super().__init__()
        self.middlewares = tuple(middlewares)
        self._mark = MessageMemo(marked)
        self.tools = [tool for middleware in middlewares for tool in getattr(middleware, "tools", ())]
        self._compilers = [m.compile for m in middlewares if type(m).compile is not Middleware.compile]
        self._arrivals = [m.arrivals for m in middlewares if type(m).arrivals is not Middleware.arrivals]
        self._around_model = [
            m.awrap_model_call for m in middlewares if type(m).awrap_model_call is not Middleware.awrap_model_call
        ]
        self._around_tool = [
            m.awrap_tool_call for m in middlewares if type(m).awrap_tool_call is not Middleware.awrap_tool_call
        ]

    @property
    def name(self) -> str:
        return "+".join(middleware.name for middleware in self.middlewares)

    def compiled(self, request: ModelRequest[RunContext]) -> ModelRequest[RunContext]:
        """``request`` with its messages run through every ``compile``."""
        context = request.runtime.context if request.runtime is not None else None
        before = Transcript(tuple(request.messages), state=request.state)
        after = reduce(lambda transcript, step: step(transcript, context), self._compilers, before)
        return request if after is before else request.override(messages=after.request())

    async def awrap_model_call(self, request: ModelRequest[RunContext], handler: ModelHandler) -> ModelResult:
        arrived = [message for arrivals in self._arrivals for message in await arrivals(request)]
        if arrived:
            request = request.override(messages=[*request.messages, *arrived])
        result = await _nest(self._around_model, self._with_marks(handler))(
            self.compiled(request) if self._compilers else request
        )
        return with_messages(result, [*arrived, *messages_of(result)]) if arrived else result

    def _with_marks(self, handler: ModelHandler) -> ModelHandler:
        async def ask(request: ModelRequest[RunContext]) -> ModelResult:
            mark = thread_mark(request.messages)
            messages = [self._mark(message, mark) for message in request.messages]
            return await handler(request.override(messages=messages))

        return ask

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        return await _nest(self._around_tool, handler)(request)

    def wrap_model_call(
        self, request: ModelRequest[RunContext], handler: Callable[[ModelRequest[RunContext]], ModelResult]
    ) -> ModelResult:
        return run_blocking(self.awrap_model_call(request, partial(asyncio.to_thread, handler)))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        return run_blocking(self.awrap_tool_call(request, partial(asyncio.to_thread, handler)))


def fuse(middlewares: Sequence[AgentMiddleware[Any, Any, Any]]) -> list[AgentMiddleware[Any, Any, Any]]:
    """Replace every run of adjacent DeerFlow middlewares by one; all others stay as they are, where they are."""
    fused: list[AgentMiddleware[Any, Any, Any]] = []
    pending: list[Middleware] = []
    for middleware in [*middlewares, None]:
        if isinstance(middleware, Middleware) and not _has_node_hooks(middleware):
            pending.append(middleware)
            continue
        if pending:
            fused.append(FusedMiddleware(pending))
            pending = []
        if middleware is not None:
            fused.append(middleware)
    return fused


def _has_node_hooks(middleware: AgentMiddleware[Any, Any, Any]) -> bool:
    hooks = (
        "before_agent",
        "abefore_agent",
        "before_model",
        "abefore_model",
        "after_model",
        "aafter_model",
        "after_agent",
        "aafter_agent",
    )
    return any(getattr(type(middleware), hook) is not getattr(AgentMiddleware, hook) for hook in hooks)


def _nest(
    wrappers: Sequence[Callable[[Any, Any], Awaitable[Any]]], handler: Callable[[Any], Awaitable[Any]]
) -> Callable[[Any], Awaitable[Any]]:
    for wrapper in reversed(wrappers):
        handler = _bind(wrapper, handler)
    return handler


def _bind(
    wrapper: Callable[[Any, Any], Awaitable[Any]], inner: Callable[[Any], Awaitable[Any]]
) -> Callable[[Any], Awaitable[Any]]:
    return lambda request: wrapper(request, inner)


class EndsAtOnce(AgentMiddleware[Any, Any, Any]):
    """Lets the model node end the graph although others have nodes behind it: what it says of that lasts for one step only.

    To stand last in the chain, so that its node comes first.
    """

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"jump_to": "end"} if state.get("jump_to") == "end" else None


def has_nodes_after_model(middlewares: Sequence[AgentMiddleware[Any, Any, Any]]) -> bool:
    hooks = ("after_model", "aafter_model")
    return any(getattr(type(one), hook) is not getattr(AgentMiddleware, hook) for one in middlewares for hook in hooks)


logger = logging.getLogger(__name__)


def emit(runtime: Any, event: dict[str, Any]) -> None:
    """Write ``event`` to the run's custom stream, if there is one. A client that went away must not fail the run."""
    writer = getattr(runtime, "stream_writer", None)
    if writer is None:
        return
    try:
        writer(event)
    except Exception:
        logger.warning("Could not emit the event %s", event.get("type"), exc_info=True)
