"""The shape of our middlewares, and their fusion into one.

LangChain makes a graph node of every ``before_*``/``after_*`` hook and a tracing span of every ``wrap_*`` hook. Ours
define neither nodes nor spans of their own: a pure ``compile`` for the request, and the asynchronous wrappers, from
which the synchronous ones follow.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial, reduce
from types import CoroutineType
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, hook_config
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, TracePolicy

from deerflow.agents.thread_state import ThreadState
from deerflow.agents.transcript import NOTE, REMINDER_NAMES, MessageMemo, Transcript, marked, thread_mark
from deerflow.config import ModelConfig
from deerflow.context import RunContext
from deerflow.event_loop import run_blocking
from deerflow.models.endpoint import model_id
from deerflow.models.pricing import ENTRY
from deerflow.subagents.task import LOOP_STOP, TURN_LIMIT

# what a call of a model or a tool returned, whatever shape a handler gave it -----------------------------------------

AnyMiddleware = AgentMiddleware[Any, Any, Any]
Request = ModelRequest[RunContext]
ModelResult = ModelResponse[Any] | ExtendedModelResponse[Any] | AIMessage
ToolResult = ToolMessage | Command[Any]

ERROR = "error"
"""Key in an AI message's ``additional_kwargs``: not the model's words, but why there are none."""

CAUSE = "cause"
"""Key in a tool message's ``additional_kwargs``: ``{"code": ToolFailure, "detail"}``, by which a page words the failure."""


class ToolFailure(StrEnum):
    """Why a call has an error instead of a result of its tool."""

    FAILED = "failed"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNREADABLE_ARGUMENTS = "unreadable_arguments"
    DENIED = "denied"
    REJECTED = "rejected"
    INTERRUPTED = "interrupted"
    NOT_MADE = "not_made"


BROKE_OFF = "broke_off"
"""Key in an AI message's ``additional_kwargs``: the answer broke off here, and the model was asked again. Requests leave it out."""

SPENDING_LIMIT = "spending_limit"
FORCED_ENDS = frozenset({LOOP_STOP, SPENDING_LIMIT, TURN_LIMIT})
"""Keys of final answers that the model did not choose to give."""

LIMIT_REASONS = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
FILTER_REASONS = frozenset(
    {
        *(
            "content_filter",
            "content-filter",
            "safety",
            "refusal",
            "prohibited_content",
            "blocklist",
            "recitation",
            "spii",
        ),
        *("image_safety", "sensitive", "risk_control", "guardrail_intervened"),
    }
)
ERROR_REASONS = frozenset(
    {"error", "network_error", "insufficient_system_resource", "malformed_function_call", "abort"}
)

SUMMARIZER_TAG = "middleware:summarize"

_SILENT_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})


def messages_of(result: ModelResult) -> list[BaseMessage]:
    """All messages of a result: the model's, and results of calls that a middleware answered at once."""
    if isinstance(result, AIMessage):
        return [result]
    return (result.model_response if isinstance(result, ExtendedModelResponse) else result).result


def last_ai(result: ModelResult) -> AIMessage | None:
    """The message that decides how the run goes on."""
    return next((message for message in reversed(messages_of(result)) if isinstance(message, AIMessage)), None)


def with_messages(
    result: ModelResult, messages: Sequence[BaseMessage]
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    """``result`` with other messages; its structured response and its command stay."""
    if isinstance(result, ExtendedModelResponse):
        return replace(result, model_response=replace(result.model_response, result=list(messages)))
    if isinstance(result, AIMessage):
        return ModelResponse(result=list(messages))
    return replace(result, result=list(messages))


def with_update(result: ModelResult, messages: Sequence[BaseMessage], update: dict[str, Any]) -> ModelResult:
    """``result`` with other messages and one more update of the state."""
    changed = with_messages(result, messages)
    response = changed.model_response if isinstance(changed, ExtendedModelResponse) else changed
    return ExtendedModelResponse(response, Command(update={**_update_of(result), **update}))


def ends_turn(result: ModelResult) -> bool:
    """Whether an inner middleware decided that the turn is over, whatever calls there are."""
    return _update_of(result).get("jump_to") == "end"


def _update_of(result: ModelResult) -> dict[str, Any]:
    command = result.command if isinstance(result, ExtendedModelResponse) else None
    return command.update if command is not None and isinstance(command.update, dict) else {}


def pending_calls(result: ModelResult) -> list[Any]:
    """Tool calls of the last AI message, readable or not, that nobody has answered yet."""
    message = last_ai(result)
    if message is None:
        return []
    answered = {m.tool_call_id for m in messages_of(result) if isinstance(m, ToolMessage)}
    return [call for call in (*message.tool_calls, *message.invalid_tool_calls) if call["id"] not in answered]


def with_own_ids(result: ModelResult) -> ModelResult:
    """``result`` with an id of its own for every call: without one a call cannot be answered."""
    message = last_ai(result)
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls] if message else []
    ids = [call["id"] for call in calls]
    if message is None or (all(ids) and len(set(ids)) == len(ids)):
        return result
    taken: set[str] = set()
    named: list[Any] = []
    for call in calls:
        id_ = call["id"] if call["id"] and call["id"] not in taken else f"call_{uuid.uuid4().hex}"
        taken.add(id_)
        named.append({**call, "id": id_})
    readable = len(message.tool_calls)
    update: dict[str, Any] = {"tool_calls": named[:readable], "invalid_tool_calls": named[readable:]}
    if isinstance(message.content, list):  # Claude's blocks of these calls have the ids that were no good
        update["content"] = [b for b in message.content if isinstance(b, str) or b.get("type") != "tool_use"]
    changed = message.model_copy(update=update)
    return with_messages(result, [changed if m is message else m for m in messages_of(result)])


def without_raw_calls(message: AIMessage) -> dict[str, Any]:
    """Its ``additional_kwargs`` without calls as the provider wrote them."""
    kwargs = message.additional_kwargs
    return {key: value for key, value in kwargs.items() if key not in ("tool_calls", "function_call")}


def is_empty(message: AIMessage) -> bool:
    """Whether a model said nothing: no text, no call, no picture or other block; thoughts do not count."""
    if message.tool_calls or message.invalid_tool_calls or "audio" in message.additional_kwargs:
        return False
    if isinstance(message.content, str):
        return not message.content.strip()
    return not any(_says_something(block) for block in message.content)


def cut_off(message: BaseMessage) -> str | None:
    """Return why an answer is not whole: ``length``, ``content_filter`` or ``error``, whatever the provider calls it; None if it is."""
    reason = end_of(message).lower()
    if reason in LIMIT_REASONS:
        return "length"
    if reason in FILTER_REASONS:
        return "content_filter"
    return "error" if reason in ERROR_REASONS else None


def end_of(message: BaseMessage) -> str:
    """Return the reason that the provider gives for the end of an answer."""
    metadata = message.response_metadata if isinstance(message, AIMessage) else {}
    return str(next(filter(None, map(metadata.get, ("finish_reason", "stop_reason", "done_reason"))), ""))


def model_entry(request: Request) -> ModelConfig | None:
    """Return the entry of the configuration that describes the model of a request."""
    config, name = request.runtime.context and request.runtime.context.config, model_id(request.model)
    entries = [entry for entry in config.models if entry.model == name] if config else []
    own = (request.model.metadata or {}).get(ENTRY)
    return next((entry for entry in entries if entry.name == own), entries[0] if entries else None)


def error_message(kind: str, text: str, said: str = "", id: str | None = None) -> AIMessage:
    """Return what ends a run that got no answer, or the half of one: ``said``, under the id with which it was streamed."""
    error, metadata = {"kind": kind, "message": text}, {"finish_reason": "error"}
    return AIMessage(said or text, id=id, additional_kwargs={ERROR: error}, response_metadata=metadata)


def is_error(message: BaseMessage) -> bool:
    """Whether this AI message tells a failure of the model call instead of being the model's."""
    return isinstance(message, AIMessage) and ERROR in message.additional_kwargs


def reminder(name: str, text: str) -> HumanMessage:
    """A note to the model that is true for one request only."""
    return HumanMessage(content=text, name=name)


def is_summary_request(request: Request) -> bool:
    """Whether the model is asked for a summary: what it says then is no step of the turn."""
    return SUMMARIZER_TAG in (request.model.tags or ())


def continued(request: Request, *messages: BaseMessage) -> Request:
    """``request`` with what was said since; its reminders go, they were for the former answer."""
    kept = list(request.messages)
    while kept and isinstance(kept[-1], HumanMessage) and kept[-1].name in REMINDER_NAMES:
        kept.pop()
    return request.override(messages=[*kept, *messages])  # pyright: ignore[reportArgumentType]


def _says_something(block: Any) -> bool:
    if not isinstance(block, dict):
        return bool(str(block).strip())
    if block.get("type") == "text":
        return bool(str(block.get("text") or "").strip())
    return block.get("type") not in _SILENT_BLOCKS


def tool_messages(result: ToolResult) -> list[ToolMessage]:
    """The messages in a result."""
    if isinstance(result, ToolMessage):
        return [result]
    messages = result.update.get("messages") if isinstance(result.update, dict) else None
    return [message for message in messages or () if isinstance(message, ToolMessage)]


def with_replaced(result: ToolResult, replacement: Callable[[ToolMessage], ToolMessage]) -> ToolResult:
    """``result`` with every message in it replaced; the same object if none changed."""
    if isinstance(result, ToolMessage):
        return replacement(result)
    messages = tool_messages(result)
    replaced = {id(message): replacement(message) for message in messages}
    if all(replaced[id(message)] is message for message in messages):
        return result
    update: dict[str, Any] = {**result.update}  # pyright: ignore[reportGeneralTypeIssues] - it held messages, so it is a dict
    update["messages"] = [replaced.get(id(message), message) for message in update["messages"]]
    return replace(result, update=update)


def with_note(result: ToolResult, note: str) -> ToolResult:
    """``result`` with what the system has to say about it, apart from the tool's own words."""

    def noted(message: ToolMessage) -> ToolMessage:
        notes = "\n".join(filter(None, (message.additional_kwargs.get(NOTE), note)))
        return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, NOTE: notes}})

    return with_replaced(result, noted)


def error_result(
    call: Any, text: str, cause: ToolFailure = ToolFailure.NOT_MADE, detail: str = "", /, **kwargs: Any
) -> ToolMessage:
    """Return an error as the result of a call. ``detail``: what only this failure tells, for the person."""
    return ToolMessage(
        content=text,
        name=call["name"] or "unknown_tool",
        tool_call_id=call["id"] or "missing_tool_call_id",
        status="error",
        additional_kwargs={CAUSE: cause_of(cause, detail), **kwargs},
    )


def cause_of(cause: ToolFailure, detail: str = "") -> dict[str, str]:
    return {"code": cause.value, "detail": detail}


def content_text(content: str | Sequence[Any]) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    return "\n".join(block if isinstance(block, str) else str(block.get("text") or "") for block in content)


def context_of(request: ToolCallRequest) -> RunContext | None:
    """None: the graph was invoked without one."""
    return request.runtime.context


def asking_id(request: ToolCallRequest) -> str:
    """The id of the message that asked for a call."""
    messages = reversed(request.state["messages"])
    return next((message.id or "" for message in messages if isinstance(message, AIMessage)), "")


# middlewares ---------------------------------------------------------------------------------------------------------

ModelHandler = Callable[[Request], Awaitable[ModelResult]]
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

    async def arrivals(self, request: Request) -> list[AnyMessage]:
        """Messages that join the transcript before the model is asked: they are kept in front of its answer."""
        return []

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        return await handler(request)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        return await handler(request)


class FusedMiddleware(AgentMiddleware[ThreadState, RunContext, Any]):
    """Adjacent middlewares as one: each costs a function call instead of a span, and the compile step runs once per model call.

    LangSmith's ``traceable``, in which LangChain wraps every hook, hands a coroutine function to two worker threads a call, also when
    nothing is traced. So the hooks here are functions that return a coroutine; their spans are empty.
    """

    state_schema = ThreadState
    trace_policy = TracePolicy(process_inputs=lambda _: {}, process_outputs=lambda _: {})

    def __init__(self, middlewares: Sequence[Middleware]) -> None:
        super().__init__()
        self.middlewares = tuple(middlewares)
        self._mark = MessageMemo(marked)
        self.tools = [tool for middleware in middlewares for tool in getattr(middleware, "tools", ())]

        def overridden(method: str) -> list[Callable[..., Any]]:
            return [getattr(one, method) for one in middlewares if overrides(one, method, of=Middleware)]

        # Guardrails, which may interrupt, before steering, which takes what it hands over from a queue.
        self._compilers, self._arrivals = overridden("compile"), overridden("arrivals")[::-1]
        self._around_model, self._around_tool = overridden("awrap_model_call"), overridden("awrap_tool_call")

    @property
    def name(self) -> str:
        return "+".join(middleware.name for middleware in self.middlewares)

    def compiled(self, request: Request) -> Request:
        """``request`` with its messages run through every ``compile``."""
        context = request.runtime.context
        before = Transcript(tuple(request.messages), state=request.state)
        after = reduce(lambda transcript, step: step(transcript, context), self._compilers, before)
        return request if after is before else request.override(messages=after.request())

    def awrap_model_call(self, request: Request, handler: ModelHandler) -> CoroutineType[Any, Any, ModelResult]:
        return self._model_call(request, handler)

    def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> CoroutineType[Any, Any, ToolResult]:
        return self._tool_call(request, handler)

    async def _model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        arrived = [message for arrivals in self._arrivals for message in await arrivals(request)]
        if arrived:
            request = request.override(messages=[*request.messages, *arrived])

        async def with_marks(request: Request) -> ModelResult:
            mark = thread_mark(request.messages)
            messages = [self._mark(message, mark) for message in request.messages]
            return await handler(request.override(messages=messages))

        result = await reduce(_around, reversed(self._around_model), with_marks)(self.compiled(request))
        return with_messages(result, [*arrived, *messages_of(result)]) if arrived else result

    async def _tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        return await reduce(_around, reversed(self._around_tool), handler)(request)

    def wrap_model_call(self, request: Request, handler: Callable[[Request], ModelResult]) -> ModelResult:
        return run_blocking(self._model_call(request, partial(asyncio.to_thread, handler)))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        return run_blocking(self._tool_call(request, partial(asyncio.to_thread, handler)))


def fuse(middlewares: Sequence[AnyMiddleware]) -> list[AnyMiddleware]:
    """Replace every run of adjacent DeerFlow middlewares by one; all others stay as they are, where they are."""
    fused: list[AnyMiddleware] = []
    pending: list[Middleware] = []
    for middleware in [*middlewares, None]:
        if isinstance(middleware, Middleware) and not overrides(middleware, *_NODE_HOOKS):
            pending.append(middleware)
            continue
        if pending:
            fused.append(FusedMiddleware(pending))
            pending = []
        if middleware is not None:
            fused.append(middleware)
    return fused


AFTER_MODEL = ("after_model", "aafter_model")
_NODE_HOOKS = (
    *("before_agent", "abefore_agent", "before_model", "abefore_model"),
    *(*AFTER_MODEL, "after_agent", "aafter_agent"),
)


def overrides(middleware: AnyMiddleware, *methods: str, of: type = AgentMiddleware) -> bool:
    """Whether its class has any of these methods of its own."""
    return any(getattr(type(middleware), method) is not getattr(of, method) for method in methods)


def _around(handler: Callable[[Any], Awaitable[Any]], wrapper: Callable[..., Any]) -> Callable[[Any], Awaitable[Any]]:
    return lambda request: wrapper(request, handler)


class EndsAtOnce(AgentMiddleware[Any, Any, Any]):
    """Lets the model node end the graph although others have nodes behind it: what it says of that lasts for one step only.

    To stand last in the chain, so that its node comes first.
    """

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"jump_to": "end"} if state.get("jump_to") == "end" else None


logger = logging.getLogger(__name__)


def emit(runtime: Any, event: dict[str, Any]) -> None:
    """Write ``event`` to the run's custom stream. A client that went away must not fail the run."""
    try:
        runtime.stream_writer(event)
    except Exception:
        logger.warning("Could not emit the event %s", event.get("type"), exc_info=True)
