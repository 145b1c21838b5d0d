"""Pieces of a streamed message put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from langchain_core.messages import AIMessageChunk, message_chunk_to_message

from deerflow.events.encoding import encode
from deerflow.events.graph_stream import LLM_RETRY
from deerflow.events.jsonable import message_json
from deerflow.events.record import RunEvent

_MERGEABLE = {"type", "id", "content", "additional_kwargs", "tool_call_chunks"}
MERGED_EVENTS = 64


def begins_anew(event: RunEvent) -> bool:
    """Whether half of an answer may have been streamed that will not be gone on with."""
    if event.method == "custom" and not event.namespace and LLM_RETRY.encode() in event.json:
        data = event.data
        return isinstance(data, dict) and data.get("type") == LLM_RETRY
    return event.method == "metadata"


def merged(events: Sequence[RunEvent]) -> Iterator[RunEvent]:
    """``events`` with neighbouring pieces of one message as one piece, at the position of the last.

    Who reads live gets single events, and so single tokens; who lags behind gets what has piled up with less ado.
    """
    pending: list[RunEvent] = []
    for event in events:
        if event.method != "messages" or (pending and event.namespace != pending[0].namespace):
            yield from _joined(pending)
            pending = []
        if event.method == "messages":
            pending.append(event)
        else:
            yield event
    yield from _joined(pending)


def _joined(events: list[RunEvent]) -> Iterator[RunEvent]:
    if len(events) < 2:
        yield from events
        return
    last, data, count = events[0], events[0].data, 1
    for event in events[1:]:
        following = event.data
        if count < MERGED_EVENTS and (both := _sum(data, following)):
            last, data, count = event, both, count + 1
            continue
        yield _at(last, data, count)
        last, data, count = event, following, 1
    yield _at(last, data, count)


def _at(event: RunEvent, data: Any, count: int) -> RunEvent:
    return event if count == 1 else RunEvent.encoded(event.seq, event.run_id, "messages", encode(data), event.namespace)


def _sum(first: Any, second: Any) -> list[Any] | None:
    """Two pieces as one, or None if they are to stay two."""
    (one, about), (two, about_two) = first, second
    if one.get("type") != "AIMessageChunk" or not one.keys() | two.keys() <= _MERGEABLE or about != about_two:
        return None
    if any(one.get(key) != two.get(key) for key in ("type", "id")):
        return None
    if not isinstance(one.get("content"), str) or not isinstance(two.get("content"), str):
        return None
    both = {**one, "content": one["content"] + two["content"]}
    for key, add in (("additional_kwargs", _sum_reasoning), ("tool_call_chunks", _sum_calls)):
        if key in one and key in two:
            if (added := add(one[key], two[key])) is None:
                return None
            both[key] = added
        elif key in two:
            both[key] = two[key]
    return [both, about]


def _sum_reasoning(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any] | None:
    texts = [*one.values(), *two.values()]
    if one.keys() | two.keys() != {"reasoning_content"} or not all(isinstance(text, str) for text in texts):
        return None
    return {"reasoning_content": "".join(texts)}


def _sum_calls(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """More of the last call's arguments; anything else is left to clients, who know how to merge."""
    more = two[0] if len(two) == 1 else {}
    if (
        not one
        or more.get("index") is None
        or more["index"] != one[-1].get("index")
        or more.get("name")
        or more.get("id")
    ):
        return None
    return [*one[:-1], {**one[-1], "args": (one[-1].get("args") or "") + (more.get("args") or "")}]


class GrowingMessages:
    """Messages as far as they have been streamed: what the stream mode ``messages`` shows."""

    def __init__(self) -> None:
        self._growing: dict[str, AIMessageChunk] = {}
        self._known: set[str] = set()

    def add(self, json: bytes) -> list[tuple[str, bytes]]:
        """The events that a piece of a message makes: names below ``messages/`` and data."""
        message, about = orjson.loads(json)
        message_id = str(message.get("id"))
        events: list[tuple[str, bytes]] = []
        if message_id not in self._known:
            self._known.add(message_id)
            events.append(("metadata", encode({message_id: {"metadata": about}})))
        if message.get("type") == "AIMessageChunk":
            piece = AIMessageChunk(**{"content": "", **message, "type": "AIMessageChunk"})
            before = self._growing.get(message_id)
            whole = self._growing[message_id] = piece if before is None else before + piece
            events.append(("partial", encode([message_json(message_chunk_to_message(whole))])))
        else:
            self._growing.pop(message_id, None)
            events.append(("complete", encode([message])))
        return events
