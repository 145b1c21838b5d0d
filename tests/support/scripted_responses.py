"""A scripted endpoint that speaks the streamed form of OpenAI's Responses API."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.scripted_sse import Body, Event, Events, HttpError, ScriptedServer

__all__ = ["Cut", "Events", "HttpError", "Response", "ScriptedResponses", "completed"]

USAGE: Mapping[str, Any] = {
    "input_tokens": 100,
    "output_tokens": 20,
    "total_tokens": 120,
    "input_tokens_details": {"cached_tokens": 60},
    "output_tokens_details": {"reasoning_tokens": 8},
}


@dataclass(frozen=True)
class Response:
    """One response: thoughts, text, calls ``(name, arguments as JSON text)``."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    thoughts: str = ""
    status: str = "completed"
    usage: Mapping[str, Any] = field(default_factory=lambda: USAGE)


@dataclass(frozen=True)
class Cut:
    """A stream that ends after ``after`` events, by a closed socket or, if ``clean``, as if it were complete."""

    response: Response
    after: int
    clean: bool = False


def completed(output: list[dict[str, Any]], status: str = "completed") -> Event:
    """The final event."""
    return {
        "type": f"response.{status}",
        "response": {"id": "resp_1", "model": "gpt-scripted", "status": status, "output": output, "usage": USAGE},
    }


class ScriptedResponses(ScriptedServer):
    """``with ScriptedResponses() as endpoint``: ``CodexChatModel(base_url=endpoint.base_url, ...)``."""

    def __init__(self) -> None:
        super().__init__()
        self._ids = itertools.count(1)

    def render(self, reply: Any, body: dict[str, Any]) -> HttpError | Events | Body:
        if isinstance(reply, Cut):
            return Events(tuple(self._events(reply.response)[: reply.after]), cut=not reply.clean)
        return Events(tuple(self._events(reply))) if isinstance(reply, Response) else reply

    def _events(self, reply: Response) -> list[Event | str]:
        events: list[Event | str] = [{"type": "response.created", "response": {"id": "resp_1"}}]
        output = self._output(reply)
        for index, item in enumerate(output):
            events += _item_events(index, item)
        final = completed(output, reply.status)
        return [*events, {**final, "response": {**final["response"], "usage": reply.usage}}, "data: [DONE]"]

    def _output(self, reply: Response) -> list[dict[str, Any]]:
        output: list[dict[str, Any]] = []
        if reply.thoughts:
            summary = [{"type": "summary_text", "text": reply.thoughts}]
            output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
        if reply.text:
            content = [{"type": "output_text", "text": reply.text, "annotations": []}]
            output.append({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
        for name, arguments in reply.calls:
            call_id = f"call_{next(self._ids)}"
            call = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
            output.append({**call, "arguments": arguments})
        return output


def _item_events(index: int, item: dict[str, Any]) -> list[Event]:
    kinds = {
        "reasoning": ("response.reasoning_summary_text.delta", lambda: item["summary"][0]["text"]),
        "message": ("response.output_text.delta", lambda: item["content"][0]["text"]),
        "function_call": ("response.function_call_arguments.delta", lambda: item["arguments"]),
    }
    kind, text_of = kinds[item["type"]]
    place = {"output_index": index, "item_id": item["id"], "content_index": 0, "summary_index": 0}
    text = text_of()
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    begun = {**item, "arguments": "", "summary": [], "content": []}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *[{"type": kind, **place, "delta": piece} for piece in pieces],
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]
