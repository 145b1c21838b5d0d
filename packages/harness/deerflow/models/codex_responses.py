"""OpenAI's Responses API as the Codex endpoint speaks it: requests from messages, message chunks from its events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.exceptions import ModelAPIError, ModelError, ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai.chat_models.base import _create_usage_metadata_responses

from deerflow.models.failures import model_error
from deerflow.models.sse import EventDecoder
from deerflow.models.tool_arguments import spoiler

DEFAULT_INSTRUCTIONS = "You are a helpful assistant."
ERRORS_BY_CODE: Mapping[str, type[ModelError]] = {
    "rate_limit_exceeded": ModelRateLimitError,
    "usage_limit_reached": ModelRateLimitError,
    "insufficient_quota": ModelRateLimitError,
    "context_length_exceeded": ModelInvalidRequestError,
    "invalid_prompt": ModelInvalidRequestError,
    "invalid_request_error": ModelInvalidRequestError,
}

Item = dict[str, Any]


# --- requests --------------------------------------------------------------------------------------------------------


def instructions_of(messages: Sequence[BaseMessage]) -> str:
    """All system messages, a blank line between them: the endpoint takes them in one field only."""
    return "\n\n".join(m.text for m in messages if isinstance(m, SystemMessage) and m.text) or DEFAULT_INSTRUCTIONS


def input_items(messages: Sequence[BaseMessage]) -> list[Item]:
    """The conversation without its system messages, as input items."""
    return [item for message in messages if not isinstance(message, SystemMessage) for item in _items(message)]


def tool_item(tool: Mapping[str, Any] | type | Callable[..., Any] | BaseTool) -> Item:
    """A tool in the flat form of the Responses API, whose own built-in tools pass unchanged."""
    if isinstance(tool, Mapping) and "type" in tool and "function" not in tool:
        return dict(tool)
    return {"type": "function", **convert_to_openai_tool(tool)["function"]}  # pyright: ignore[reportArgumentType]


def tool_choice_item(choice: str | bool | Mapping[str, Any] | None) -> Any:
    """A tool choice in the flat form: a mode, or one function by name."""
    if isinstance(choice, Mapping):
        function = choice.get("function")
        return {"type": "function", "name": function["name"]} if isinstance(function, Mapping) else dict(choice)
    modes = {None: None, "": None, True: "required", "any": "required", False: "none"}
    modes |= {mode: mode for mode in ("auto", "none", "required")}
    return modes.get(choice, {"type": "function", "name": choice})


def _items(message: BaseMessage) -> Iterator[Item]:
    if isinstance(message, ToolMessage):
        content = _content(message.content)
        has_more = any(part["type"] != "input_text" for part in content)
        output = content if has_more else message.text
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
    elif isinstance(message, AIMessage):
        if text := message.text:
            yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        calls = [
            (call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls
        ]
        # A call whose arguments were broken has a result too, so it must stay; its arguments need not be JSON.
        calls += [(call["id"], call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls]
        for call_id, name, arguments in calls:
            yield {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    else:
        yield {"type": "message", "role": "user", "content": _content(message.content)}


def _content(content: str | Sequence[Any]) -> list[Item]:
    return [_part(block) for block in ([content] if isinstance(content, str) else content)]


def _part(block: Any) -> Item:
    if isinstance(block, str):
        return {"type": "input_text", "text": block}
    kind = str(block.get("type"))
    if kind in ("image_url", "image"):
        return {"type": "input_image", "image_url": _image_url(block)}
    if kind.startswith("input_"):
        return dict(block)
    text = block.get("text", "") if kind == "text" else json.dumps(block, ensure_ascii=False, default=str)
    return {"type": "input_text", "text": text}


def _image_url(block: Mapping[str, Any]) -> str:
    source = block.get("source") or block
    url = source.get("image_url") or source.get("url")
    if isinstance(url, Mapping):
        url = url.get("url")
    mime_type = source.get("mime_type") or source.get("media_type") or "image/png"
    return url or f"data:{mime_type};base64,{source.get('base64') or source.get('data')}"


# --- answers ---------------------------------------------------------------------------------------------------------


class ResponseReader:
    """Turns the bytes of one response into chunks.

    What the deltas left out comes from the finished items, and what those left out from the final event.
    """

    def __init__(self, model_name: str) -> None:
        self.is_complete = False
        self._model_name = model_name
        self._decoder = EventDecoder()
        self._sent: dict[tuple[int, str], str] = {}
        """By output index and part, one of ``text``, ``thoughts`` and ``arguments``."""
        self._named: set[int] = set()
        self._finished: set[int] = set()

    def feed(self, received: bytes) -> Iterator[ChatGenerationChunk]:
        """The chunks that are complete with these bytes. What is no JSON object is skipped.

        Raises:
            ModelError: the endpoint reported a failure.
        """
        for _, data in self._decoder.feed(received):
            try:
                event = json.loads(data)
            except ValueError:
                continue
            for message in self._read(event) if isinstance(event, dict) else ():
                yield ChatGenerationChunk(message=message)

    def _read(self, event: Mapping[str, Any]) -> Iterator[AIMessageChunk]:
        index, delta = int(event.get("output_index") or 0), str(event.get("delta") or "")
        match event.get("type"):
            case "response.output_text.delta":
                yield self._send(index, "text", delta)
            case "response.reasoning_summary_text.delta":
                yield self._send(index, "thoughts", delta)
            case "response.reasoning_summary_part.added" if (index, "thoughts") in self._sent:
                yield self._send(index, "thoughts", "\n\n")
            case "response.function_call_arguments.delta":
                yield self._send(index, "arguments", delta)
            case "response.output_item.added":
                yield from self._name(index, event.get("item") or {})
            case "response.output_item.done":
                yield from self._finish(index, event.get("item") or {})
            case "response.completed" | "response.incomplete" as kind:
                yield from self._end(event.get("response") or {}, is_cut=kind == "response.incomplete")
            case "response.failed" | "error":
                error = (event.get("response") or {}).get("error") or event.get("error") or event
                code, text = error.get("code") or error.get("type") or "unknown", error.get("message") or "no details"
                kind = ERRORS_BY_CODE.get(code, ModelAPIError)
                raise model_error(kind, f"The Codex endpoint failed ({code}): {text}", code=code)
            case _:
                pass

    def _send(self, index: int, part: str, text: str) -> AIMessageChunk:
        self._sent[index, part] = self._sent.get((index, part), "") + text
        if part == "text":
            return AIMessageChunk(content=text)
        if part == "thoughts":
            return AIMessageChunk(content="", additional_kwargs={"reasoning_content": text})
        return AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(args=text, index=index)])

    def _name(self, index: int, item: Mapping[str, Any]) -> Iterator[AIMessageChunk]:
        if item.get("type") == "function_call" and index not in self._named:
            self._named.add(index)
            call = tool_call_chunk(name=item.get("name"), args="", id=item.get("call_id"), index=index)
            yield AIMessageChunk(content="", tool_call_chunks=[call])

    def _finish(self, index: int, item: Mapping[str, Any]) -> Iterator[AIMessageChunk]:
        if index in self._finished:
            return
        self._finished.add(index)
        yield from self._name(index, item)
        arguments = str(item.get("arguments") or "")
        part, whole = {
            "message": ("text", "".join(_texts(item.get("content")))),
            "reasoning": ("thoughts", "\n\n".join(_texts(item.get("summary")))),
            "function_call": ("arguments", arguments + spoiler(arguments)),
        }.get(str(item.get("type")), ("text", ""))
        sent = self._sent.get((index, part), "")
        if whole.startswith(sent) and len(whole) > len(sent):
            yield self._send(index, part, whole[len(sent) :])

    def _end(self, response: Mapping[str, Any], *, is_cut: bool) -> Iterator[AIMessageChunk]:
        for index, item in enumerate(response.get("output") or []):
            yield from self._finish(index, item)
        self.is_complete = True
        usage = response.get("usage")
        yield AIMessageChunk(
            content="",
            response_metadata={
                "model_name": response.get("model") or self._model_name,
                "model_provider": "openai-codex",
                "id": response.get("id"),
                "finish_reason": "length" if is_cut else "tool_calls" if self._named else "stop",
            },
            usage_metadata=_create_usage_metadata_responses(usage) if usage else None,
            chunk_position="last",
        )


def _texts(parts: Sequence[Mapping[str, Any]] | None) -> list[str]:
    return [text for part in parts or () if (text := part.get("text") or part.get("refusal"))]
