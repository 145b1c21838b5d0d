"""Huawei's MindIE server: an OpenAI-compatible API that knows tools only as text."""

from __future__ import annotations

import html
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import model_validator

from deerflow.models.openai import OpenAIWire

TAG = re.compile(r"<(/?)(tool_call|function|parameter)(?:=([^<>]*))?>")
INTEGER = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")

Schemas = Mapping[str, Mapping[str, Any]]
"""JSON schemas of the parameters, by tool name."""


@dataclass(slots=True)
class ParsedText:
    """What a text turned out to hold."""

    content: str
    tool_calls: list[ToolCall] = field(default_factory=list)
    invalid_tool_calls: list[InvalidToolCall] = field(default_factory=list)


def render_calls(calls: Sequence[ToolCall]) -> str:
    """Write calls as text; values are escaped, so that none can close its own tag."""
    lines: list[str] = []
    for call in calls:
        lines += ["<tool_call>", f"<function={call['name']}>"]
        for name, value in call["args"].items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines += [f"<parameter={name}>", html.escape(text, quote=False), "</parameter>"]
        lines += ["</function>", "</tool_call>"]
    return "\n".join(lines)


def parse_calls(text: str, schemas: Schemas) -> ParsedText:
    """Take the calls out of a model's text.

    A value is read as its tool's schema says; without one, numbers, booleans, null and JSON are recognised. Calls may
    be nested in superfluous tags, and values may hold tags as long as they are balanced. A call whose value breaks off
    is invalid: half a command must not run.
    """
    found, outside = ParsedText(text), list[str]()
    resume = depth = value_start = tags_in_value = 0
    function = parameter = ""
    for tag in TAG.finditer(text):
        closing, kind, name = tag[1] == "/", tag[2], (tag[3] or "").strip()
        if parameter:
            if kind != "parameter":
                continue
            if closing and not tags_in_value:
                value = html.unescape(text[value_start : tag.start()].removeprefix("\n").removesuffix("\n"))
                schema = (schemas.get(function, {}).get("properties") or {}).get(parameter)
                found.tool_calls[-1]["args"][parameter] = decode(value, schema)
                parameter = ""
            else:
                tags_in_value += -1 if closing else 1
        elif kind == "tool_call" and not closing:
            if not depth:
                outside.append(text[resume : tag.start()])
                resume = tag.start()
            depth += 1
        elif kind == "tool_call" and depth:
            function = ""
            depth -= 1
            resume = resume if depth else tag.end()
        elif kind == "function" and depth:
            function = "" if closing else name
            if function:
                found.tool_calls.append(tool_call(name=function, args={}, id=_call_id()))
        elif kind == "parameter" and function and name and not closing:
            parameter, value_start, tags_in_value = name, tag.end(), 0
    if parameter:
        found.tool_calls.pop()
        error = f"The call of {function} breaks off inside of its parameter {parameter}."
        broken = invalid_tool_call(name=function, args=text[resume:], id=_call_id(), error=error)
        found.invalid_tool_calls.append(broken)
    if found.tool_calls or found.invalid_tool_calls:
        found.content = "".join([*outside, *([] if depth else [text[resume:]])]).strip()
    return found


def decode(text: str, schema: Mapping[str, Any] | None) -> Any:
    """Read a parameter's text as the value that its schema asks for, or as what it looks like if there is no schema."""
    declared, stripped, word = _types(schema or {}), text.strip(), text.strip().lower()
    types = declared or {"null", "boolean", "number", "object", "array"}
    if "null" in types and word in ("null", "none"):
        return None
    if types & {"object", "array"} and stripped.startswith(("{", "[") if declared else ("{", "[", '"')):
        try:
            return json.loads(stripped)
        except json.JSONDecodeError:
            return text
    if "string" in types:
        return text
    if "boolean" in types and word in ("true", "false"):
        return word == "true"
    if types & {"number", "integer"} and NUMBER.fullmatch(stripped):
        return int(stripped) if INTEGER.fullmatch(stripped) else float(stripped)
    return text


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type")
    types: set[str] = {declared} if isinstance(declared, str) else set(declared or ())
    for option in [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]:
        types |= _types(option)
    if not types and "enum" in schema:
        return {"string"} if all(isinstance(value, str) for value in schema["enum"]) else set()
    return types


def _call_id() -> str:
    return f"call_{uuid.uuid4().hex[:10]}"


PIECE = 15
"""Characters per chunk where streaming is only played."""

FENCED = re.compile(r"(```.*?(?:```|\Z))", re.DOTALL)


class MindIEChatModel(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` for MindIE: tool calls and their results travel as text, empty contents as a space.

    MindIE streams no tool calls, so with tools bound the whole answer is fetched and then streamed in pieces.
    """

    connect_timeout: float = 30.0
    """Seconds to connect. These four hold unless ``timeout`` is given."""
    read_timeout: float = 900.0
    """Seconds between two reads."""
    write_timeout: float = 60.0
    """Seconds between two writes."""
    pool_timeout: float = 30.0
    """Seconds to wait for a free connection."""

    @model_validator(mode="before")
    @classmethod
    def _compose_timeout(cls, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("timeout") is not None or values.get("request_timeout") is not None:
            return values
        seconds: dict[str, float | None] = {}
        for name in ("connect", "read", "write", "pool"):
            value = values.get(f"{name}_timeout", cls.model_fields[f"{name}_timeout"].default)
            seconds[name] = None if value is None else float(value)
        return {**values, "timeout": httpx.Timeout(**seconds)}

    def _wire_message(self, message: BaseMessage, wire: dict[str, Any]) -> dict[str, Any]:
        wire = super()._wire_message(message, wire)
        content = wire["content"]
        if isinstance(message, ToolMessage):
            return {"role": "user", "content": _tool_response(content)}
        if isinstance(message, AIMessage) and wire.pop("tool_calls", None):
            broken = [call["args"] for call in message.invalid_tool_calls if call["args"]]
            calls = "\n".join([render_calls(message.tool_calls), *broken]).strip()
            spoken = content if isinstance(content, str) and content.strip() else ""
            content = f"{spoken}\n{calls}" if spoken and calls else spoken or calls
        return {**wire, "content": content or " "}

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _with_calls(await super()._agenerate(messages, stop, run_manager, **kwargs), kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        stream_usage: bool | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if not kwargs.get("tools"):
            async for chunk in super()._astream(messages, stop, run_manager, stream_usage=stream_usage, **kwargs):
                yield chunk
            return
        for chunk in _pieces(await self._agenerate(messages, stop, **kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _tool_response(content: Any) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": "<tool_response>"}, *content, {"type": "text", "text": "</tool_response>"}]
    inside = content.replace("</tool_response>", "&lt;/tool_response&gt;")
    return f"<tool_response>\n{inside}\n</tool_response>"


def _with_calls(result: ChatResult, kwargs: dict[str, Any]) -> ChatResult:
    """Read the calls out of the text, and line breaks that came as backslash and n."""
    functions = [tool.get("function") or {} for tool in kwargs.get("tools") or ()]
    schemas = {str(function.get("name")): function.get("parameters") or {} for function in functions}
    for generation in result.generations:
        message = generation.message
        if not isinstance(message, AIMessage) or not isinstance(message.content, str):
            continue
        text = message.content
        if not message.tool_calls:
            found = parse_calls(text, schemas)
            text, message.tool_calls = found.content, found.tool_calls
            message.invalid_tool_calls = [*message.invalid_tool_calls, *found.invalid_tool_calls]
        message.content = _with_line_breaks(text)
    return result


def _with_line_breaks(text: str) -> str:
    parts = FENCED.split(text)
    return "".join(part if index % 2 else part.replace("\\n", "\n") for index, part in enumerate(parts))


def _pieces(result: ChatResult) -> Iterator[ChatGenerationChunk]:
    """Play an answer as a stream: its text in small pieces, then calls, usage and the rest in a last one."""
    generation = result.generations[0]
    message = generation.message
    assert isinstance(message, AIMessage)
    metadata = {"model_provider": "openai"}
    text = message.text
    for at in range(0, len(text), PIECE):
        yield ChatGenerationChunk(message=AIMessageChunk(content=text[at : at + PIECE], response_metadata=metadata))
    calls = [(call["name"], json.dumps(call["args"], ensure_ascii=False), call["id"]) for call in message.tool_calls]
    calls += [(call["name"], call["args"], call["id"]) for call in message.invalid_tool_calls]
    info = {"finish_reason": (generation.generation_info or {}).get("finish_reason")}
    info["model_name"] = (result.llm_output or {}).get("model_name")
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            additional_kwargs=message.additional_kwargs,
            response_metadata=metadata,
            tool_call_chunks=[
                tool_call_chunk(name=name, args=args, id=id_, index=index)
                for index, (name, args, id_) in enumerate(calls)
            ],
            usage_metadata=message.usage_metadata,
        ),
        generation_info={name: value for name, value in info.items() if value},
    )
