"""Huawei's MindIE server: an OpenAI-compatible API that knows tools only as text."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import model_validator

from deerflow.models.openai import OpenAIWire
from deerflow.models.openai_xml_calls import Found, parameter_schemas, parse_calls, render_calls

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

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _with_calls(super()._generate(messages, stop, run_manager, **kwargs), kwargs)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _with_calls(await super()._agenerate(messages, stop, run_manager, **kwargs), kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        stream_usage: bool | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if not kwargs.get("tools"):
            yield from super()._stream(messages, stop, run_manager, stream_usage=stream_usage, **kwargs)
            return
        for chunk in _pieces(self._generate(messages, stop, **_unstreamed(kwargs))):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

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
