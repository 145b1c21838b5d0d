"""A scripted endpoint that speaks Anthropic's Messages API, streamed and plain."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.scripted_sse import Body, Event, Events, HttpError, ScriptedServer

__all__ = ["Cut", "HttpError", "Reply", "ScriptedAnthropic", "error"]


@dataclass(frozen=True)
class Reply:
    """One assistant message: thoughts, text, tool calls ``(name, input)``, usage beyond the defaults."""

    text: str = ""
    tool_calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    thinking: str = ""
    signature: str = "c2lnbmF0dXJl"
    usage: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """A stream that ends after ``after`` events: by a closed socket, an ``error`` event, or as if it were complete."""

    reply: Reply
    after: int
    error: str | None = None
    clean: bool = False


def error(status: int, kind: str, message: str = "scripted", **headers: str) -> HttpError:
    """Anthropic's error envelope."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpError(status, {"type": "error", "error": {"type": kind, "message": message}}, names)


class ScriptedAnthropic(ScriptedServer):
    """``with ScriptedAnthropic() as endpoint``: ``ClaudeChatModel(base_url=endpoint.base_url, ...)``."""

    def __init__(self) -> None:
        super().__init__()
        self._ids = itertools.count(1)

    def render(self, reply: Any, body: dict[str, Any]) -> HttpError | Events | Body:
        if isinstance(reply, HttpError):
            return reply
        if isinstance(reply, Cut):
            events: list[Event | str] = list(self._events(reply.reply, body))[: reply.after]
            if reply.error:
                events.append({"type": "error", "error": {"type": reply.error, "message": "scripted"}})
            return Events(tuple(events), cut=not (reply.clean or reply.error))
        return Events(tuple(self._events(reply, body))) if body.get("stream") else Body(self._message(reply, body))

    def _blocks(self, reply: Reply) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if reply.thinking:
            blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": reply.signature})
        if reply.text:
            blocks.append({"type": "text", "text": reply.text})
        for name, arguments in reply.tool_calls:
            blocks.append({"type": "tool_use", "id": f"toolu_{next(self._ids)}", "name": name, "input": arguments})
        return blocks

    def _message(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": f"msg_{next(self._ids)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": self._blocks(reply),
            "stop_reason": "tool_use" if reply.tool_calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5, **reply.usage},
        }

    def _events(self, reply: Reply, body: dict[str, Any]) -> list[Event]:
        message = self._message(reply, body)
        blocks = message["content"]
        events: list[Event] = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
        for index, block in enumerate(blocks):
            events += _block_events(index, block)
        delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": message["usage"]})
        events.append({"type": "message_stop"})
        return events


def _block_events(index: int, block: dict[str, Any]) -> list[Event]:
    if block["type"] == "text":
        empty, deltas = (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": t} for t in _halves(block["text"])],
        )
    elif block["type"] == "thinking":
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": t} for t in _halves(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        empty = {**block, "input": {}}
        pieces = _halves(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    start: Event = {"type": "content_block_start", "index": index, "content_block": empty}
    steps: list[Event] = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [start, *steps, {"type": "content_block_stop", "index": index}]


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
