"""Whatever goes wrong with a tool call becomes a result that the model can act on."""

from __future__ import annotations

import asyncio
import csv
import difflib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from langchain_core.messages import InvalidToolCall, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import (
    CAUSE,
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    ToolFailure,
    ToolHandler,
    ToolResult,
    cause_of,
    content_text,
    context_of,
    cut_off,
    end_of,
    error_result,
    last_ai,
    messages_of,
    model_entry,
    pending_calls,
    tool_messages,
    with_messages,
    with_own_ids,
    with_replaced,
    without_raw_calls,
)
from deerflow.context import RunContext
from deerflow.models.messages import as_written, meant_arguments
from deerflow.models.thoughts import settle_thoughts
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, SandboxError
from deerflow.tools.shell import result_path

logger = logging.getLogger(__name__)

DETAIL_LIMIT = 500
EXCERPT = 200
MAX_OUTPUT_CHARS = 60_000
KEPT_CHARS = 8_000
UNREADABLE = "unreadable_arguments"
"""Key in a result's ``additional_kwargs``: the call's arguments were no JSON."""

_INVOCATION_ERROR = re.compile(
    r"Error invoking tool '(?P<name>[^']*)' with kwargs .* with error:\n(?P<error>.*)", re.DOTALL
)


class ToolErrorHandlingMiddleware(Middleware):
    """Exceptions, unreadable arguments, unknown tools and oversized output, each answered so that the run goes on.

    Args:
        max_output_chars: a longer result is written to a file in the workspace.
        kept_chars: what stays of it in the conversation.
    """

    def __init__(self, *, max_output_chars: int = MAX_OUTPUT_CHARS, kept_chars: int = KEPT_CHARS) -> None:
        super().__init__()
        self.max_output_chars = max_output_chars
        self.kept_chars = min(kept_chars, max_output_chars)

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        return _with_readable_calls(with_own_ids(_with_own_words(await handler(request), request)), request)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        context = context_of(request)
        try:
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            if is_invalid_resume(error):
                raise
            logger.warning("Tool %s failed", request.tool_call["name"], exc_info=error)
            detail = _without_host_paths(" ".join(str(error).split()) or type(error).__name__, context)[:DETAIL_LIMIT]
            text = _failure_text(request.tool_call["name"], error, detail)
            result = error_result(request.tool_call, text, ToolFailure.FAILED, detail)
        result = with_replaced(result, lambda message: _clearer(message, request))
        short = {id(message): await self._shortened(message, context) for message in tool_messages(result)}
        return with_replaced(result, lambda message: short[id(message)])

    async def _shortened(self, message: ToolMessage, context: RunContext | None) -> ToolMessage:
        """Up to so many characters of text as it is, else its beginning and end, what it holds, and where the rest is.

        Blocks that are no text, such as pictures, stay.
        """
        text = content_text(message.content)
        if len(text) <= self.max_output_chars:
            return message
        path = await _spill(message, text, context)
        where = (
            f"The whole result is in {path}: use grep or read_file with line ranges." if path else "The rest is lost."
        )
        half = self.kept_chars // 2
        head, tail = text[:half], text[-half:]
        holds = await asyncio.to_thread(structure, text)
        left_out = len(text) - len(head) - len(tail)
        synopsis = f"{head}\n\n[... {left_out} of {len(text)} characters left out. {where}\n{holds}]\n\n{tail}"
        if isinstance(message.content, str):
            return message.model_copy(update={"content": synopsis})
        others = [block for block in message.content if isinstance(block, dict) and block.get("type") != "text"]
        return message.model_copy(update={"content": [{"type": "text", "text": synopsis}, *others]})


# exceptions -----------------------------------------------------------------------------------------------------------


def _failure_text(name: str, error: Exception, detail: str) -> str:
    return (
        f"Error: Tool '{name or 'unknown_tool'}' failed with {type(error).__name__}: {detail}\n"
        "Continue with what you have, correct the arguments, or use another tool."
    )


def _without_host_paths(text: str, context: RunContext | None) -> str:
    """The thread's directories by the names under which the model knows them."""
    workspace = context.machine.workspace if context else None
    if workspace is None:
        return text
    virtual = {
        workspace.workspace: WORKSPACE,
        workspace.uploads: UPLOADS,
        workspace.outputs: OUTPUTS,
        workspace.root: "/mnt/user-data",
    }
    for host, seen in virtual.items():
        text = re.sub(rf"{re.escape(str(host))}(?![\w.-])", seen, text)
    return text


# results --------------------------------------------------------------------------------------------------------------


def _clearer(message: ToolMessage, request: ToolCallRequest) -> ToolMessage:
    """Say better what LangGraph's tool node says about a call that it could not make."""
    if message.status != "error":
        return message
    name = request.tool_call["name"]
    text = content_text(message.content)
    if request.tool is None and text.startswith(f"Error: {name} is not a valid tool"):
        return _with_cause(message, _unknown_tool_text(name, request), ToolFailure.UNKNOWN_TOOL, name)
    if match := _INVOCATION_ERROR.fullmatch(text):
        problem = match["error"].removesuffix(" Please fix the error and try again.").strip()
        problem = problem[:DETAIL_LIMIT]
        text = (
            f"Error: the arguments of '{match['name']}' are not valid: {problem}\nCorrect them and call the tool again."
        )
        return _with_cause(message, text, ToolFailure.INVALID_ARGUMENTS, problem)
    return message


def _with_cause(message: ToolMessage, text: str, cause: ToolFailure, detail: str) -> ToolMessage:
    kwargs = message.additional_kwargs | {CAUSE: cause_of(cause, detail)}
    return message.model_copy(update={"content": text, "additional_kwargs": kwargs})


def _unknown_tool_text(name: str, request: ToolCallRequest) -> str:
    names = sorted(tool.name for tool in getattr(request.runtime, "tools", None) or ())
    close = difflib.get_close_matches(name, names, n=3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return f"Error: there is no tool '{name}'.{hint} Available tools: {', '.join(names) or 'none'}."


# unreadable calls -----------------------------------------------------------------------------------------------------


def _with_own_words(result: ModelResult, request: Request) -> ModelResult:
    """``result`` in our words, whatever class of model gave it: thoughts in its text beside it, the reason of its end known."""
    message, entry = last_ai(result), model_entry(request)
    meant = entry.end_reasons.get(end_of(message)) if message is not None and entry else None
    if message is None or not (settle_thoughts(changed := message.model_copy()) or meant):
        return result
    if meant:
        changed.response_metadata = {**changed.response_metadata, "finish_reason": meant}
    return with_messages(result, [changed if m is message else m for m in messages_of(result)])


def _with_readable_calls(result: ModelResult, request: Request) -> ModelResult:
    """Calls whose arguments are no JSON would end the run without a word: they get a result that says why.

    The same for a call that the output limit cut off, which LangChain completes by guessing.
    """
    message = last_ai(result)
    if message is None or not (message.tool_calls or message.invalid_tool_calls):
        return result
    if cut_off(message) == "content_filter":  # half a call must not run, and asking again would end the same
        update = {"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": without_raw_calls(message)}
        changed = message.model_copy(update=update)
        return with_messages(result, [changed if m is message else m for m in messages_of(result)])
    cut = cut_off(message) == "length"
    tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
    readable = [typed_call(call, tools) for call in message.tool_calls]
    if not message.invalid_tool_calls and not cut and readable == message.tool_calls:
        return result
    invalid: list[InvalidToolCall] = []
    for call in message.invalid_tool_calls:
        arguments = None if cut else meant_arguments(as_written(call["args"] or ""))
        if arguments is None:
            invalid.append(call)
        else:
            readable.append(typed_call(tool_call(name=call["name"] or "unknown", args=arguments, id=call["id"]), tools))
    unreadable = [tool_call(name=c["name"] or "unknown", args={}, id=c["id"]) for c in invalid]
    texts = {
        call["id"]: _unreadable_text(call["name"] or "", as_written(call["args"] or ""), call["error"])
        for call in invalid
    }
    if cut:
        last = (unreadable or readable)[-1]
        texts[last["id"]] = _cut_text(last["name"])
    calls = [*readable, *unreadable]
    pending = {call["id"] for call in pending_calls(result)} & texts.keys()
    cause = ToolFailure.UNREADABLE_ARGUMENTS
    errors = [
        error_result(call, texts[call["id"]], cause, **{UNREADABLE: True}) for call in calls if call["id"] in pending
    ]
    update = {"tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": without_raw_calls(message)}
    changed = message.model_copy(update=update)
    return with_messages(result, [*(changed if m is message else m for m in messages_of(result)), *errors])


def typed_call(call: ToolCall, tools: Mapping[str, BaseTool]) -> ToolCall:
    """``call`` with lists and objects in place of those that a model wrote as text."""
    written = [name for name, value in call["args"].items() if isinstance(value, str) and value[:1] in ("[", "{")]
    if not written or call["name"] not in tools:
        return call
    schema, args = tools[call["name"]].args, dict(call["args"])
    for name in written:
        if not (wanted := _types(schema.get(name) or {})) or "string" in wanted:
            continue
        try:
            value = json.loads(args[name])
        except ValueError:
            continue
        if ("array" if isinstance(value, list) else "object") in wanted:
            args[name] = value
    return {**call, "args": args}


def _types(schema: Mapping[str, Any]) -> set[str]:
    """The types that a parameter may have; empty: any."""
    options = [schema, *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    named = {str(option["type"]) for option in options if "type" in option}
    return named | ({"object"} if any("$ref" in option for option in options) else set())


def _cut_text(name: str) -> str:
    return (
        f"Error: the call of '{name}' was not executed: your answer reached the output limit in the middle of its arguments. "
        "Do it in smaller steps, e.g. write a long file in several parts."
    )


def _unreadable_text(name: str, raw: str, error: str | None) -> str:
    excerpt = raw if len(raw) <= 2 * EXCERPT else f"{raw[:EXCERPT]} ... {raw[-EXCERPT:]}"
    return (
        f"Error: the call of '{name}' was not executed: its arguments are not a valid JSON object ({_json_problem(raw, error)})."
        f"\nYou wrote:\n{excerpt}\nCall the tool again with valid JSON: escape quotes and line breaks in strings."
    )


def _json_problem(raw: str, error: str | None) -> str:
    try:
        json.loads(raw)
    except ValueError as problem:
        return str(problem)
    return " ".join((error or "not an object").split())[:EXCERPT]


# long results --------------------------------------------------------------------------------------------------------


async def _spill(message: ToolMessage, text: str, context: RunContext | None) -> str | None:
    if context is None or context.machine.provider is None:
        return None
    path = result_path(message.tool_call_id)
    try:
        await (await context.sandbox()).write(path, text.encode())
    except SandboxError as error:
        logger.warning("Could not write the long result of %s to %s: %s", message.name, path, error)
        return None
    return path


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
