"""Reading and changing what a call of a model or a tool returned, whatever shape a handler gave it."""

from __future__ import annotations

import csv
import json
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from deerflow.agents.transcript import REMINDER_NAMES
from deerflow.context import RunContext

ModelResult = ModelResponse[Any] | ExtendedModelResponse[Any] | AIMessage
ToolResult = ToolMessage | Command[Any]

ERROR = "error"
"""Key in an AI message's ``additional_kwargs``: not the model's words, but why there are none."""

LOOP_STOP = "loop_stop"
SPENDING_LIMIT = "spending_limit"
"""Key in an AI message's ``additional_kwargs``: the final answer that loop detection asked for."""

LIMIT_REASONS = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
FILTER_REASONS = frozenset({"content_filter", "safety", "refusal", "prohibited_content", "blocklist"})

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


def with_messages(result: ModelResult, messages: Sequence[BaseMessage]) -> ModelResult:
    """``result`` with other messages; its structured response and its command stay."""
    if isinstance(result, ExtendedModelResponse):
        return replace(result, model_response=replace(result.model_response, result=list(messages)))
    if isinstance(result, AIMessage):
        return ModelResponse(result=list(messages))
    return replace(result, result=list(messages))


def with_update(result: ModelResult, messages: Sequence[BaseMessage], update: dict[str, Any]) -> ModelResult:
    """``result`` with other messages and one more update of the state."""
    changed = with_messages(result, messages)
    if isinstance(changed, ExtendedModelResponse):
        earlier = changed.command.update if changed.command is not None else None
        return replace(changed, command=Command(update={**(earlier if isinstance(earlier, dict) else {}), **update}))
    response = ModelResponse(result=[changed]) if isinstance(changed, AIMessage) else changed
    return ExtendedModelResponse(model_response=response, command=Command(update=update))


def ends_turn(result: ModelResult) -> bool:
    """Whether an inner middleware decided that the turn is over, whatever calls there are."""
    command = result.command if isinstance(result, ExtendedModelResponse) else None
    return command is not None and isinstance(command.update, dict) and command.update.get("jump_to") == "end"


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
    changed = message.model_copy(update={"tool_calls": named[:readable], "invalid_tool_calls": named[readable:]})
    return with_messages(result, [changed if m is message else m for m in messages_of(result)])


def is_empty(message: AIMessage) -> bool:
    """Whether a model said nothing: no text, no call, no picture or other block; thoughts do not count."""
    if message.tool_calls or message.invalid_tool_calls or "audio" in message.additional_kwargs:
        return False
    if isinstance(message.content, str):
        return not message.content.strip()
    return not any(_says_something(block) for block in message.content)


def finish_reason(message: AIMessage) -> str:
    """Why the provider stopped, in lower case; "" if it does not say."""
    metadata = message.response_metadata
    return str(
        metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason") or ""
    ).lower()


def cut_off(message: BaseMessage) -> str | None:
    """Why an answer is not whole: ``length`` or ``content_filter``, whatever the provider calls it; None if it is."""
    reason = finish_reason(message) if isinstance(message, AIMessage) else ""
    if reason in LIMIT_REASONS:
        return "length"
    return "content_filter" if reason in FILTER_REASONS else None


def is_error(message: BaseMessage) -> bool:
    """Whether this AI message tells a failure of the model call instead of being the model's."""
    return isinstance(message, AIMessage) and ERROR in message.additional_kwargs


def reminder(name: str, text: str) -> HumanMessage:
    """A note to the model that is true for one request only."""
    return HumanMessage(content=text, name=name)


def is_summary_request(request: ModelRequest[RunContext]) -> bool:
    """Whether the model is asked for a summary: what it says then is no step of the turn."""
    return SUMMARIZER_TAG in (request.model.tags or ())


def continued(request: ModelRequest[RunContext], *messages: BaseMessage) -> ModelRequest[RunContext]:
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
    update = result.update if isinstance(result, Command) else None
    messages = update.get("messages") if isinstance(update, dict) else None
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


def error_result(call: dict[str, Any] | Any, text: str, **kwargs: Any) -> ToolMessage:
    """An error as the result of a call."""
    return ToolMessage(
        content=text,
        name=call["name"] or "unknown_tool",
        tool_call_id=call["id"] or "missing_tool_call_id",
        status="error",
        additional_kwargs=kwargs,
    )


def content_text(content: str | Sequence[Any]) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    return "\n".join(block if isinstance(block, str) else str(block.get("text") or "") for block in content)


def asking_id(request: ToolCallRequest) -> str:
    """The id of the message that asked for a call."""
    messages = request.state["messages"] if isinstance(request.state, dict) else ()
    return next((message.id or "" for message in reversed(messages) if isinstance(message, AIMessage)), "")


# what a long text holds ----------------------------------------------------------------------------------------------

SHOWN_KEYS, SHOWN_ERRORS, SHOWN_LINE, DEPTH = 40, 12, 200, 3
_ERROR = re.compile(r"(?:error|exception)\b|\b(?:traceback|failed|failure|fatal|panic)\b", re.IGNORECASE)


def structure(text: str) -> str:
    """What a text holds, in a few lines: the keys of JSON, the columns and rows of a table, else its lines and those about errors.

    Linear in its length.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return f"JSON: {_shape(json.loads(text), DEPTH)}"
        except (ValueError, RecursionError):
            pass
    lines = text.splitlines()
    if (table := _table(lines)) is not None:
        return table
    errors = [f"{number}: {line[:SHOWN_LINE]}" for number, line in enumerate(lines, 1) if _ERROR.search(line[:2000])]
    found = f"Text of {len(lines)} lines."
    if errors:
        more = f" (the first {SHOWN_ERRORS})" if len(errors) > SHOWN_ERRORS else ""
        found += f" {len(errors)} lines about errors{more}:\n" + "\n".join(errors[:SHOWN_ERRORS])
    return found


def _shape(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        if not depth:
            return f"object with {len(value)} keys"
        shown = [f"{key[:60]}: {_shape(inner, depth - 1)}" for key, inner in islice(value.items(), SHOWN_KEYS)]
        return "{" + ", ".join(shown) + (f", … {len(value)} keys in all" if len(value) > SHOWN_KEYS else "") + "}"
    if isinstance(value, list):
        return f"list of {len(value)}" + (f", the first {_shape(value[0], depth - 1)}" if value and depth else "")
    if isinstance(value, str):
        return f"text of {len(value)} characters" if len(value) > 40 else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _table(lines: Sequence[str]) -> str | None:
    """Of comma or tab separated values: if the first twenty rows have the same number of columns, at least two."""
    for delimiter in (",", "\t", ";", "|"):
        try:
            rows = list(csv.reader((line[:10_000] for line in lines[:20]), delimiter=delimiter))
        except csv.Error:
            return None
        if len(rows) > 2 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
            columns = ", ".join(column.strip()[:60] for column in rows[0][:SHOWN_KEYS])
            more = f", … {len(rows[0])} in all" if len(rows[0]) > SHOWN_KEYS else ""
            return f"Table of about {len(lines) - 1} rows. Columns: {columns}{more}"
    return None
