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
class Found:
    """What a text turned out to hold."""

    content: str
    tool_calls: list[ToolCall] = field(default_factory=list)
    invalid_tool_calls: list[InvalidToolCall] = field(default_factory=list)


def render_calls(calls: Sequence[ToolCall]) -> str:
    """Write calls as text; values are escaped, so that none can close its own tag."""
    return "\n".join(_render_call(call) for call in calls)


def parse_calls(text: str, schemas: Schemas) -> Found:
    """Take the calls out of a model's text.

    A value is read as its tool's schema says; without one, numbers, booleans, null and JSON are recognised. Calls may
    be nested in superfluous tags, and values may hold tags as long as they are balanced. A call whose value breaks off
    is invalid: half a command must not run.
    """
    return _Parser(text, schemas).run()


def parameter_schemas(tools: Sequence[Mapping[str, Any]] | None) -> dict[str, Mapping[str, Any]]:
    functions = [tool.get("function") or {} for tool in tools or ()]
    return {str(function.get("name")): function.get("parameters") or {} for function in functions}


def _render_call(call: ToolCall) -> str:
    lines = ["<tool_call>", f"<function={call['name']}>"]
    for name, value in call["args"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"<parameter={name}>", html.escape(text, quote=False), "</parameter>"]
    return "\n".join([*lines, "</function>", "</tool_call>"])


class _Parser:
    def __init__(self, text: str, schemas: Schemas) -> None:
        self.text = text
        self.schemas = schemas
        self.found = Found("")
        self.outside: list[str] = []
        self.resume = 0
        self.depth = 0
        self.function: str | None = None
        self.arguments: dict[str, Any] = {}
        self.parameter: str | None = None
        self.parameter_depth = 0
        self.value_start = 0

    def run(self) -> Found:
        for tag in TAG.finditer(self.text):
            closing, kind, name = tag.group(1) == "/", tag.group(2), tag.group(3)
            if self.parameter is not None:
                self._inside_value(tag, kind, closing)
            elif kind == "tool_call":
                self._tool_call(tag, closing)
            elif self.depth and kind == "function":
                self._finish_call()
                self.function = None if closing else (name or "").strip() or None
            elif self.function and kind == "parameter" and not closing and name:
                self.parameter, self.value_start, self.parameter_depth = name.strip(), tag.end(), 0
        return self._result()

    def _inside_value(self, tag: re.Match[str], kind: str, closing: bool) -> None:
        if kind != "parameter":
            return
        if not closing:
            self.parameter_depth += 1
        elif self.parameter_depth:
            self.parameter_depth -= 1
        else:
            assert self.function is not None and self.parameter is not None
            value = html.unescape(self.text[self.value_start : tag.start()].removeprefix("\n").removesuffix("\n"))
            schema = (self.schemas.get(self.function, {}).get("properties") or {}).get(self.parameter)
            self.arguments[self.parameter] = decode(value, schema)
            self.parameter = None

    def _tool_call(self, tag: re.Match[str], closing: bool) -> None:
        if not closing:
            if not self.depth:
                self.outside.append(self.text[self.resume : tag.start()])
                self.resume = tag.start()
            self.depth += 1
        elif self.depth:
            self._finish_call()
            self.depth -= 1
            if not self.depth:
                self.resume = tag.end()

    def _finish_call(self) -> None:
        if self.function:
            self.found.tool_calls.append(tool_call(name=self.function, args=self.arguments, id=_call_id()))
        self.function, self.arguments = None, {}

    def _result(self) -> Found:
        found = self.found
        if self.parameter is not None:
            error = f"The call of {self.function} breaks off inside of its parameter {self.parameter}."
            raw = self.text[self.resume :]
            found.invalid_tool_calls.append(invalid_tool_call(name=self.function, args=raw, id=_call_id(), error=error))
        else:
            self._finish_call()
        if not found.tool_calls and not found.invalid_tool_calls:
            return Found(self.text)
        if not self.depth:
            self.outside.append(self.text[self.resume :])
        found.content = "".join(self.outside).strip()
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
        names = ("connect", "read", "write", "pool")
        seconds = {name: cls.model_fields[f"{name}_timeout"].default for name in names}
        seconds |= {name: values[f"{name}_timeout"] for name in names if f"{name}_timeout" in values}
        rest = {name: value for name, value in values.items() if name != "request_timeout"}
        return {**rest, "timeout": httpx.Timeout(**{name: _seconds(value) for name, value in seconds.items()})}

    def _wire_message(self, message: BaseMessage, wire: dict[str, Any]) -> dict[str, Any]:
        content = _flat(wire.get("content"))
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
        for chunk in _pieces(await self._agenerate(messages, stop, **_unstreamed(kwargs))):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def _flat(content: Any) -> Any:
    """Text blocks as one string. Content with anything else in it, an image say, stays the list it is."""
    if not isinstance(content, list):
        return content or ""
    texts = [block if isinstance(block, str) else block.get("text") for block in content]
    if all(isinstance(block, str) or block.get("type") == "text" for block in content):
        return "\n".join(text for text in texts if text)
    return content


def _tool_response(content: Any) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": "<tool_response>"}, *content, {"type": "text", "text": "</tool_response>"}]
    inside = content.replace("</tool_response>", "&lt;/tool_response&gt;")
    return f"<tool_response>\n{inside}\n</tool_response>"


def _unstreamed(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name not in ("stream", "stream_options")}


def _with_calls(result: ChatResult, kwargs: dict[str, Any]) -> ChatResult:
    """Read the calls out of the text, and line breaks that came as backslash and n."""
    schemas = parameter_schemas(kwargs.get("tools"))
    for generation in result.generations:
        message = generation.message
        if not isinstance(message, AIMessage) or not isinstance(message.content, str):
            continue
        found = Found(message.content) if message.tool_calls else parse_calls(message.content, schemas)
        message.content = _with_line_breaks(found.content)
        message.tool_calls = [*message.tool_calls, *found.tool_calls]
        message.invalid_tool_calls = [*message.invalid_tool_calls, *found.invalid_tool_calls]
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
