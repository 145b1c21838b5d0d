"""From the events of a Responses stream to message chunks. Pure: no network, one object per response."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.exceptions import ModelAPIError, ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langchain_core.messages.tool import tool_call_chunk

from deerflow.models.tool_arguments import spoiler

Event = Mapping[str, Any]

RATE_LIMIT_CODES = frozenset({"rate_limit_exceeded", "usage_limit_reached", "insufficient_quota"})
REQUEST_CODES = frozenset({"context_length_exceeded", "invalid_prompt", "invalid_request_error"})


class CodexStreamError(ModelAPIError):
    """The Codex endpoint reported a failure inside a stream. ``code`` is its own name for it."""

    code = ""


class CodexRequestError(ModelInvalidRequestError):
    """The Codex endpoint refused the request inside a stream; sending it again cannot help."""

    code = ""


class CodexLimitError(ModelRateLimitError):
    """The account's limit was reached, as reported inside a stream."""

    code = ""


def event_of(line: str) -> Event | None:
    """The event in one line of a server-sent event stream; None for anything else."""
    if not line.startswith("data:"):
        return None
    data = line[5:].strip()
    if not data or data == "[DONE]":
        return None
    try:
        event = json.loads(data)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


@dataclass(slots=True)
class _Item:
    """What of one output item was already passed on."""

    text: str = ""
    thoughts: str = ""
    arguments: str = ""
    named: bool = False
    closed: bool = False


@dataclass(slots=True)
class ResponseReader:
    """Turns events into chunks. Whatever the deltas left out comes from the finished items, then from the end."""

    model_name: str
    completed: bool = False
    _items: dict[int, _Item] = field(default_factory=dict)

    def read(self, event: Event) -> Iterator[AIMessageChunk]:
        """The chunks of one event.

        Raises:
            CodexStreamError, CodexRequestError, CodexLimitError: the endpoint reported a failure.
        """
        kind = event.get("type")
        item = self._items.setdefault(int(event.get("output_index") or 0), _Item())
        if kind == "response.output_text.delta":
            item.text += event.get("delta") or ""
            yield AIMessageChunk(content=event.get("delta") or "")
        elif kind == "response.reasoning_summary_text.delta":
            item.thoughts += event.get("delta") or ""
            yield _thought(event.get("delta") or "")
        elif kind == "response.reasoning_summary_part.added" and item.thoughts:
            item.thoughts += "\n\n"
            yield _thought("\n\n")
        elif kind == "response.output_item.added":
            yield from self._open_call(event)
        elif kind == "response.function_call_arguments.delta":
            item.arguments += event.get("delta") or ""
            yield self._arguments(event, event.get("delta") or "")
        elif kind == "response.output_item.done":
            yield from self._close(int(event.get("output_index") or 0), event.get("item") or {})
        elif kind in ("response.completed", "response.incomplete"):
            yield from self._end(event.get("response") or {}, kind)
        elif kind in ("response.failed", "error"):
            raise _failure(event)

    def _open_call(self, event: Event) -> Iterator[AIMessageChunk]:
        call = event.get("item") or {}
        index = int(event.get("output_index") or 0)
        if call.get("type") == "function_call" and not self._items[index].named:
            self._items[index].named = True
            yield _call(index, call.get("name"), call.get("call_id"), "")

    def _arguments(self, event: Event, delta: str) -> AIMessageChunk:
        return _call(int(event.get("output_index") or 0), None, None, delta)

    def _close(self, index: int, done: Mapping[str, Any]) -> Iterator[AIMessageChunk]:
        item = self._items.setdefault(index, _Item())
        if item.closed:
            return
        item.closed = True
        if done.get("type") == "message":
            if rest := _rest(_joined(done.get("content"), ""), item.text):
                item.text += rest
                yield AIMessageChunk(content=rest)
        elif done.get("type") == "reasoning":
            if rest := _rest(_joined(done.get("summary"), "\n\n"), item.thoughts):
                item.thoughts += rest
                yield _thought(rest)
        elif done.get("type") == "function_call":
            yield from self._open_call({"output_index": index, "item": done})
            arguments = str(done.get("arguments") or "")
            yield _call(index, None, None, _rest(arguments, item.arguments) + spoiler(arguments))

    def _end(self, response: Mapping[str, Any], kind: str) -> Iterator[AIMessageChunk]:
        for index, done in enumerate(response.get("output") or []):
            if isinstance(done, Mapping):
                yield from self._close(index, done)
        self.completed = True
        cut = kind == "response.incomplete"
        called = any(item.named for item in self._items.values())
        metadata = {
            "model_name": response.get("model") or self.model_name,
            "model_provider": "openai-codex",
            "id": response.get("id"),
            "finish_reason": "length" if cut else "tool_calls" if called else "stop",
        }
        yield AIMessageChunk(
            content="", response_metadata=metadata, usage_metadata=_usage(response.get("usage")), chunk_position="last"
        )


def _thought(text: str) -> AIMessageChunk:
    return AIMessageChunk(content="", additional_kwargs={"reasoning_content": text})


def _call(index: int, name: str | None, call_id: str | None, arguments: str) -> AIMessageChunk:
    chunk = tool_call_chunk(name=name, args=arguments, id=call_id, index=index)
    return AIMessageChunk(content="", tool_call_chunks=[chunk])


def _rest(whole: str, begun: str) -> str:
    return whole[len(begun) :] if whole.startswith(begun) else ""


def _joined(parts: object, separator: str) -> str:
    texts = [str(part.get("text") or part.get("refusal") or "") for part in parts or [] if isinstance(part, Mapping)]  # pyright: ignore[reportGeneralTypeIssues]
    return separator.join(text for text in texts if text)


def _usage(usage: Mapping[str, Any] | None) -> UsageMetadata | None:
    if not usage:
        return None
    sent, received = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    thought = (usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0
    return UsageMetadata(
        input_tokens=sent,
        output_tokens=received,
        total_tokens=int(usage.get("total_tokens") or sent + received),
        input_token_details=InputTokenDetails(cache_read=cached),
        output_token_details=OutputTokenDetails(reasoning=thought),
    )


def _failure(event: Event) -> Exception:
    error = (event.get("response") or {}).get("error") or event.get("error") or event
    code, text = str(error.get("code") or error.get("type") or "unknown"), str(error.get("message") or "no details")
    kind = CodexLimitError if code in RATE_LIMIT_CODES else CodexStreamError
    failure = (CodexRequestError if code in REQUEST_CODES else kind)(f"The Codex endpoint failed ({code}): {text}")
    failure.code = code
    return failure
