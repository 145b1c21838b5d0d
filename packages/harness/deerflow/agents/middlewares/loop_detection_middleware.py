"""Repetition without progress: first a warning, then a last answer without tools."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deerflow.agents.middlewares.base import (
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    content_text,
    continued,
    ends_turn,
    error_result,
    is_summary_request,
    last_ai,
    messages_of,
    pending_calls,
    reminder,
    with_messages,
    without_raw_calls,
)
from deerflow.agents.middlewares.tool_error_handling_middleware import UNREADABLE
from deerflow.agents.receipts import file_receipts
from deerflow.agents.transcript import MessageMemo, Transcript, current_turn
from deerflow.config.schema import LoopDetectionConfig
from deerflow.context import RunContext
from deerflow.models.failures import status_of
from deerflow.models.messages import called
from deerflow.security.text import inline
from deerflow.subagents.task import LOOP_STOP
from deerflow.tools.shell import bash_tool, read_process_tool

logger = logging.getLogger(__name__)

READ_BUCKET = 200
"""Lines: reading nearby ranges of a file is the same call."""

FORCED_STOP = "[FORCED STOP] The work was stopped because it repeated itself"

_TELLING_ARGS = ("command", "path", "url", "query", "pattern", "glob", "cmd")
_WAITING = re.compile(r"\b(?:sleep\s+[\d.]*[1-9]|wait\b|watch\b|inotifywait\b|tail\s+-\w*[fF])")
"""Found in commands that wait for something else to happen."""


class LoopDetectionMiddleware(Middleware):
    """Counts within the current turn, from its messages alone.

    A repetition is the same set of calls with the same result and the same content of all written files: editing and
    testing again is progress, and a call that waits is none. Calls of one tool are counted if the settings say so. At a hard
    limit the calls are answered "not executed" and the model is asked for its final answer; if it calls tools even then, the
    calls are removed from that answer.
    """

    def __init__(self, settings: LoopDetectionConfig | None = None) -> None:
        super().__init__()
        self.settings = settings or LoopDetectionConfig()

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        warning = self._warning(current_turn(transcript.messages))
        return transcript.with_reminder(warning, name="loop_warning") if warning else transcript

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        if is_summary_request(request):
            return await handler(request)
        result = await handler(request)
        pending = pending_calls(result)
        if not pending or ends_turn(result):
            return result
        why = self._why_stop(current_turn(request.state["messages"]), pending)
        if not why:
            return result
        logger.warning("Loop detected: %s", why)
        return await final_answer(
            request, handler, result, pending, why, f"{FORCED_STOP}: {why}.", mark={LOOP_STOP: why}
        )

    def _warning(self, turn: Sequence[Any]) -> str:
        most = self.settings.warn_threshold
        steps = _steps(turn, self.settings.window_size)
        if not steps:
            return ""
        same = _repeated(steps, steps[-1].calls)
        last = next(message for message in reversed(turn) if isinstance(message, AIMessage) and message.tool_calls)
        if most is not None and same >= most:
            return (
                f"[LOOP DETECTED] You called {_named(last.tool_calls)} {same} times with the same result. Do something else, "
                "or give the user your answer with what you have."
            )
        counts, now = _tool_counts(turn), _tool_counts([last])
        for name in now:
            most = self.settings.frequency(name).warn
            if most is not None and counts[name] >= most > counts[name] - now[name]:
                return (
                    f"[LOOP DETECTED] You called {name} {counts[name]} times in this turn. If you are not getting closer, change the "
                    "approach, or give the user your answer with what you have."
                )
        return ""

    def _why_stop(self, turn: Sequence[Any], pending: Sequence[Any]) -> str:
        most = self.settings.hard_limit
        same = 1 + _repeated(_steps(turn, self.settings.window_size - 1), hash_tool_calls(pending))
        if most is not None and same >= most:
            return f"{_named(pending)} was called {same} times with the same result"
        counts = _tool_counts(turn)
        for name in [called(call)[0] for call in pending]:
            counts[name] += 1
            most = self.settings.frequency(name).hard_limit
            if most is not None and counts[name] >= most:
                return f"{name} was called {counts[name]} times in one turn"
        return ""


async def final_answer(
    request: Request,
    handler: ModelHandler,
    result: ModelResult,
    pending: Sequence[Any],
    why: str,
    notice: str,
    *,
    mark: Mapping[str, Any],
) -> ModelResult:
    """Answer the calls, ask once more, and end the turn whatever comes.

    Args:
        why: stands in the calls' results and in the question.
        notice: ends an answer that is none.
        mark: what ``additional_kwargs`` of the answer say of this end.
    """
    refused = [error_result(call, f"Error: not executed: {why}. Give your final answer now.") for call in pending]
    so_far: list[BaseMessage] = [*messages_of(result), *refused]
    note = reminder(
        "loop_warning",
        f"[FORCED STOP] Tools are closed for this turn: {why}. Tell the user what you found, what is missing and why.",
    )
    final = await without_tools(continued(request, *so_far, note), handler)
    answer = last_ai(final)
    if answer is None:
        return with_messages(result, [*so_far, AIMessage(content=notice, additional_kwargs={**mark})])
    return with_messages(final, [*so_far, stripped(answer, notice, mark)])


async def without_tools(request: Request, handler: ModelHandler) -> ModelResult:
    """Ask with tools forbidden; where a provider refuses that setting, trust the reminder."""
    forbidden: Any = {"type": "none"} if request.model._llm_type.startswith("anthropic") else "none"
    try:
        return await handler(request.override(tool_choice=forbidden))
    except Exception as error:
        if status_of(error) not in (400, 404, 422):
            raise
        logger.warning("The provider refused tool_choice none: %s", error)
        return await handler(request)


def stripped(message: AIMessage, notice: str, mark: Mapping[str, Any]) -> AIMessage:
    """A final answer: no calls left in any form, some text in any case."""
    kwargs = {**without_raw_calls(message), **mark}
    if not message.tool_calls and not message.invalid_tool_calls and message.text.strip():
        return message.model_copy(update={"additional_kwargs": kwargs})
    metadata = dict(message.response_metadata)
    if metadata.get("finish_reason") == "tool_calls":
        metadata["finish_reason"] = "stop"
    update = {"additional_kwargs": kwargs, "response_metadata": metadata, "content": _stopped(message.content, notice)}
    return message.model_copy(update={"tool_calls": [], "invalid_tool_calls": [], **update})


def _stopped(content: Any, notice: str) -> Any:
    """The content with the stop notice behind it and without blocks that are calls. A new object."""
    if isinstance(content, list):
        kept = [block for block in content if not (isinstance(block, dict) and block.get("type") in _CALL_BLOCKS)]
        return [*kept, {"type": "text", "text": notice}]
    return f"{content}\n\n{notice}" if content.strip() else notice


_CALL_BLOCKS = frozenset(
    {"tool_use", "tool_call", "function_call", "input_json_delta", "invalid_tool_call", "tool_call_chunk"}
)


# counting -------------------------------------------------------------------------------------------------------------


def hash_tool_calls(calls: Sequence[Any]) -> str:
    """A short hash of a message's calls, whatever their order. Calls with equal hashes do the same."""
    keys = sorted(f"{call.get('name') or ''}:{_key(call.get('name') or '', call.get('args'))}" for call in calls)
    return hashlib.md5(json.dumps(keys).encode(), usedforsecurity=False).hexdigest()[:12]


def _key(name: str, args: Any) -> str:
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return "unreadable"
    if not isinstance(args, dict):
        return json.dumps(args, default=str)
    if name == "read_file":
        start, end = sorted((_line(args.get("start_line")), _line(args.get("end_line"))))
        return f"{args.get('path')}:{(start - 1) // READ_BUCKET}-{(end - 1) // READ_BUCKET}"
    if any(key in args for key in _TELLING_ARGS):  # then a description only says why
        args = {key: value for key, value in args.items() if key != "description"}
    return json.dumps(args, sort_keys=True, default=str)


def _named(calls: Sequence[Any]) -> str:
    """A message's calls, for whoever reads why the work was stopped."""
    shown: list[str] = []
    for call in calls:
        args = call.get("args")
        telling = next((args[key] for key in _TELLING_ARGS if key in args), None) if isinstance(args, dict) else None
        shown.append(
            inline(f"{call.get('name')} ({telling or json.dumps(args, default=str, ensure_ascii=False)})", 120)
        )
    return " with ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def _line(value: Any) -> int:
    try:
        return max(1, int(value))
    except (TypeError, ValueError):
        return 1


class _Step(NamedTuple):
    calls: str
    outcome: tuple[str, ...]
    waits: bool


def _repeated(steps: Sequence[_Step], calls: str) -> int:
    """Return the number of steps that made these calls and came to the result of the last of them."""
    same = [step for step in steps if step.calls == calls]
    return 0 if not same or same[-1].waits else sum(step.outcome == same[-1].outcome for step in same)


def _steps(turn: Sequence[Any], limit: int) -> list[_Step]:
    """The last messages with calls: what was called, what came back, and the files that were written so far."""
    found: list[tuple[AIMessage, list[ToolMessage]]] = []
    results: list[ToolMessage] = []
    for message in reversed(turn):
        if len(found) == limit:
            break
        if isinstance(message, ToolMessage):
            results.append(message)
        elif isinstance(message, AIMessage):
            if message.tool_calls:
                found.append((message, results))
            results = []
    files: dict[str, Any] = {}
    written = ""
    steps: list[_Step] = []
    for message, results in reversed(found):
        for result in reversed(results):
            if receipts := file_receipts(result):
                files |= {file["path"]: file for file in receipts}
                written = json.dumps(files, sort_keys=True, default=str)
        outcome = (*sorted(map(_outcome, results)), written)
        steps.append(_Step(_hash_of_step(message, results), outcome, _waits(message, results)))
    return steps


def _hash_of_step(message: AIMessage, results: Sequence[ToolMessage]) -> str:
    """As the calls came from the model: those with unreadable arguments are equal."""
    unreadable = {result.tool_call_id for result in results if UNREADABLE in result.additional_kwargs}
    if not unreadable:
        return _hash_of_calls(message)
    return hash_tool_calls(
        [{"name": c["name"], "args": "?" if c["id"] in unreadable else c["args"]} for c in message.tool_calls]
    )


_hash_of_calls: MessageMemo[AIMessage, str] = MessageMemo(lambda message: hash_tool_calls(message.tool_calls))
"""Kept: each step looks at all before it."""


def _outcome(result: ToolMessage) -> str:
    if UNREADABLE in result.additional_kwargs:
        return UNREADABLE
    return (
        result.content if isinstance(result.content, str) else json.dumps(result.content, sort_keys=True, default=str)
    )


def _waits(message: AIMessage, results: Sequence[ToolMessage]) -> bool:
    """Return whether a step waits for work elsewhere: even without news it is no step back."""
    return _has_waiting_command(message) or any(
        result.name == read_process_tool.name and content_text(result.content).partition("\n")[0].endswith(" (running)")
        for result in results
    )


def _waiting_command(message: AIMessage) -> bool:
    commands = (str(call["args"].get("command")) for call in message.tool_calls if call["name"] == bash_tool.name)
    return any(_WAITING.search(command) for command in commands)


_has_waiting_command: MessageMemo[AIMessage, bool] = MessageMemo(_waiting_command)


def _tool_counts(turn: Sequence[Any]) -> Counter[str]:
    return Counter(called(call)[0] for message in turn if isinstance(message, AIMessage) for call in message.tool_calls)
