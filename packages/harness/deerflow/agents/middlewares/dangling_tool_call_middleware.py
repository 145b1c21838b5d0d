"""Every call in a request has exactly one result, right behind its message: providers refuse anything else."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, tool_call

from deerflow.agents.middlewares.base import Middleware
from deerflow.agents.transcript import Transcript
from deerflow.context import RunContext
from deerflow.tools.shell import cut_short

INTERRUPTED = "[Tool call was interrupted and did not return a result.]"
UNREADABLE = "[Tool call was not executed: its arguments were not valid JSON.]"
NO_ID = "call_without_id"


class DanglingToolCallMiddleware(Middleware):
    """Repairs the request, never the thread: a run that was cut off leaves calls without results, or late ones."""

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        if _is_sound(transcript.messages):
            return transcript
        return transcript.with_messages(_repaired(transcript.messages))


def _is_sound(messages: Sequence[AnyMessage]) -> bool:
    """The common case, in one pass without copies."""
    open_ids: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_ids:
                return False
            open_ids.discard(message.tool_call_id)
            continue
        if open_ids:
            return False
        if isinstance(message, AIMessage):
            if message.invalid_tool_calls or not _calls_are_named(message):
                return False
            open_ids = {call["id"] for call in message.tool_calls}
    return not open_ids


def _calls_are_named(message: AIMessage) -> bool:
    """Whether its calls are all in ``tool_calls``, each with an id of its own."""
    if not message.tool_calls:
        return not message.additional_kwargs.get("tool_calls")
    ids = {call["id"] for call in message.tool_calls}
    return len(ids) == len(message.tool_calls) and all(ids)


def _repaired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    results = _results_by_owner(messages)
    repaired: list[AnyMessage] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AIMessage):
            repaired.append(message)
            continue
        calls, unreadable = _calls(message, index)
        repaired.append(message if _calls_are_named(message) and not unreadable else _with_calls(message, calls))
        answers = results.get(index, {})
        if len(answers) == len(calls):
            repaired.extend(answers.values())  # as they came, as in requests before there was anything to repair
        else:
            repaired.extend(answers.get(call["id"]) or _synthetic(call, unreadable) for call in calls)
    return repaired


def _results_by_owner(messages: Sequence[AnyMessage]) -> dict[int, dict[str | None, ToolMessage]]:
    """Results by the index of their AI message and call id. The first result of a call counts.

    Some providers reuse ids, so a result belongs to the latest message before it that still waits for this id.
    """
    waiting: dict[str | None, deque[int]] = {}
    results: dict[int, dict[str | None, ToolMessage]] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            for call in _calls(message, index)[0]:
                waiting.setdefault(call["id"], deque()).append(index)
        elif isinstance(message, ToolMessage) and waiting.get(message.tool_call_id):
            owner = waiting[message.tool_call_id].pop()
            results.setdefault(owner, {})[message.tool_call_id] = message
    return results


def _calls(message: AIMessage, index: int) -> tuple[list[ToolCall], set[str | None]]:
    """All calls of a message under ids of their own, and which of them had unreadable arguments."""
    found: list[tuple[Any, Any, Any]] = [(c["id"], c["name"], c["args"]) for c in message.tool_calls]
    if not found and not message.invalid_tool_calls:
        found = list(_raw_calls(message.additional_kwargs.get("tool_calls")))
    found += [(c["id"], c["name"], None) for c in message.invalid_tool_calls]
    calls: list[ToolCall] = []
    unreadable: set[str | None] = set()
    taken: set[str] = set()
    for position, (id_, name, args) in enumerate(found):
        own = str(id_) if id_ and str(id_) not in taken else f"{NO_ID}_{index}_{position}"
        taken.add(own)
        if args is None:
            unreadable.add(own)
        calls.append(tool_call(name=str(name or "unknown"), args=args or {}, id=own))
    return calls, unreadable


def _raw_calls(raw: Any) -> Iterable[tuple[Any, Any, dict[str, Any] | None]]:
    """Calls that only stand in ``additional_kwargs``, as OpenAI's wire format or flat; without arguments if they are unreadable."""
    for call in raw if isinstance(raw, list) else ():
        if not isinstance(call, dict):
            continue
        function: Any = call.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments", call.get("args", call.get("arguments")))
        yield call.get("id"), call.get("name") or function.get("name"), _object(arguments)


def _object(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            return None
    return arguments if isinstance(arguments, dict) else {} if arguments is None else None


def _with_calls(message: AIMessage, calls: list[ToolCall]) -> AIMessage:
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": kwargs})


def _synthetic(call: ToolCall, unreadable: set[str | None]) -> ToolMessage:
    text = UNREADABLE if call["id"] in unreadable else INTERRUPTED + cut_short(call["name"], call["id"])
    return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"] or "", status="error")
