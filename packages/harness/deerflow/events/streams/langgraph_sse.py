"""Events of a run as the streaming endpoints of the LangGraph API send them: server-sent events, lines ending with CR LF."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import orjson
from langchain_core.messages import AIMessageChunk, message_chunk_to_message

from deerflow.errors import InvalidRequestError
from deerflow.events.graph_stream import LLM_RETRY
from deerflow.events.jsonable import encode, message_json
from deerflow.events.store import RunEvent

STREAM_MODES = (
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "events",
    "tasks",
    "checkpoints",
    "debug",
)
HEARTBEAT = b": heartbeat\r\n\r\n"
"""A comment: clients learn from it that the connection lives. The JavaScript SDK learns the cadence, too."""
MERGED_EVENTS = 64
_ALWAYS = frozenset({"metadata", "error", "end"})
_MERGEABLE = {"type", "id", "content", "additional_kwargs", "tool_call_chunks"}


def frame(event: str, json: bytes, seq: int) -> bytes:
    """One event; ``json`` is one line."""
    return b"event: %b\r\ndata: %b\r\nid: %d\r\n\r\n" % (event.encode(), json, seq)


class Frames:
    """One client's view of a stream.

    Args:
        modes: the stream modes asked for.
        subgraphs: whether to show subgraphs; their events are named ``mode|namespace|…``.
        snapshot: the thread's values as they are now, or None if there are none.
        after: the position up to which the client has everything.

    Raises:
        InvalidRequestError: there is no such mode.
    """

    def __init__(
        self,
        modes: Sequence[str],
        subgraphs: bool,
        snapshot: Callable[[], Awaitable[dict[str, Any] | None]],
        after: int = 0,
    ) -> None:
        if unknown := [mode for mode in modes if mode not in STREAM_MODES]:
            raise InvalidRequestError(f"{unknown[0]!r} is not a stream mode. Known: {', '.join(STREAM_MODES)}.")
        self.ended = False
        """Whether the last event of the run has been rendered."""
        self.start = 0 if "messages" in modes else after
        """Where to read from: whole messages can only be shown by who has seen them grow."""
        self._after = after
        self._methods = _ALWAYS | {"messages" if mode == "messages-tuple" else mode for mode in modes}
        self._chunks = "messages-tuple" in modes
        self._growing = _GrowingMessages() if "messages" in modes else None
        self._subgraphs = subgraphs
        self._snapshot = snapshot
        self._shown: int | None = None

    async def render(self, batch: Sequence[RunEvent]) -> bytes:
        """What the client gets of ``batch``, as whole events; perhaps nothing."""
        events = [
            event for event in batch if event.method in self._methods and (self._subgraphs or not event.namespace)
        ]
        if any(voids_partial_answer(event) for event in batch):
            self._shown = None  # Only a state shows that what was streamed in part is void.
        newest = max((event.seq for event in events if event.method == "values"), default=0)
        rendered: list[bytes] = []
        seen = sum(event.seq <= self._after for event in events)
        for event in chain(merged(events[:seen]), merged(events[seen:])):
            if event.method == "messages":
                rendered += self._messages(event)
            elif event.method == "values":
                if event.seq == newest and event.seq > self._after and (state := await self._state()) is not None:
                    rendered.append(frame("values", state, event.seq))
            elif event.seq > self._after:
                rendered.append(frame(_name(event.method, event), event.json, event.seq))
                self.ended = self.ended or event.method == "end"
        return b"".join(rendered)

    def _messages(self, event: RunEvent) -> list[bytes]:
        frames: list[bytes] = []
        for name, json in self._growing.add(event.json) if self._growing else ():
            frames.append(frame(_name(f"messages/{name}", event), json, event.seq))
        if self._chunks:
            frames.append(frame(_name("messages", event), event.json, event.seq))
        return frames if event.seq > self._after else []

    async def _state(self) -> bytes | None:
        """The newest state, unless the client has just that."""
        values = await self._snapshot()
        if values is None:
            return None
        encoded = encode(values)
        before, self._shown = self._shown, hash(encoded)
        return None if before == self._shown else encoded


def _name(method: str, event: RunEvent) -> str:
    return "|".join((method, *event.namespace))


def voids_partial_answer(event: RunEvent) -> bool:
    """Whether half of an answer may have been streamed that will not be continued."""
    if event.method == "custom" and not event.namespace and LLM_RETRY.encode() in event.json:
        data = event.data
        return isinstance(data, dict) and data.get("type") == LLM_RETRY
    return event.method == "metadata"


# merging chunks -----------------------------------------------------------------------------------------------------


def merged(events: Sequence[RunEvent]) -> Iterator[RunEvent]:
    """``events`` with neighbouring chunks of one message as one chunk, at the position of the last.

    Live readers get single events, and so single tokens; a reader that lags behind gets fewer, larger ones.
    """
    last: RunEvent | None = None
    data: Any = None
    count = 0
    for event in events:
        following = event.data if event.method == "messages" else None
        both = None
        if last is not None and following is not None and event.namespace == last.namespace and count < MERGED_EVENTS:
            both = _sum(data, following)
        if both is None and last is not None:
            yield _at(last, data, count)
        if following is None:
            last = None
            yield event
        else:
            last, data, count = event, both or following, count + 1 if both else 1
    if last is not None:
        yield _at(last, data, count)


def _at(event: RunEvent, data: Any, count: int) -> RunEvent:
    return event if count == 1 else RunEvent.encoded(event.seq, event.run_id, "messages", encode(data), event.namespace)


def _sum(first: Any, second: Any) -> list[Any] | None:
    """Two chunks as one, or None if they have to stay two."""
    (one, about), (two, about_two) = first, second
    if one.get("type") != "AIMessageChunk" or not one.keys() | two.keys() <= _MERGEABLE or about != about_two:
        return None
    if any(one.get(key) != two.get(key) for key in ("type", "id")):
        return None
    if not isinstance(one.get("content"), str) or not isinstance(two.get("content"), str):
        return None
    both = {**one, **two, "content": one["content"] + two["content"]}
    for key, add in (("additional_kwargs", _sum_reasoning), ("tool_call_chunks", _sum_calls)):
        if key in one and key in two:
            if (added := add(one[key], two[key])) is None:
                return None
            both[key] = added
    return [both, about]


def _sum_reasoning(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any] | None:
    texts = [*one.values(), *two.values()]
    if one.keys() | two.keys() != {"reasoning_content"} or not all(isinstance(text, str) for text in texts):
        return None
    return {"reasoning_content": "".join(texts)}


def _sum_calls(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """More of the last call's arguments; anything else is left to clients, who know how to merge."""
    more = two[0] if one and len(two) == 1 else {}
    if more.get("index") is None or more["index"] != one[-1].get("index") or more.get("name") or more.get("id"):
        return None
    return [*one[:-1], {**one[-1], "args": (one[-1].get("args") or "") + (more.get("args") or "")}]


class _GrowingMessages:
    """Messages as far as they have been streamed: what the stream mode ``messages`` shows."""

    def __init__(self) -> None:
        self._growing: dict[str, AIMessageChunk] = {}
        self._known: set[str] = set()

    def add(self, json: bytes) -> list[tuple[str, bytes]]:
        """The events that a chunk of a message makes: names below ``messages/`` and data."""
        message, about = orjson.loads(json)
        message_id = str(message.get("id"))
        events: list[tuple[str, bytes]] = []
        if message_id not in self._known:
            self._known.add(message_id)
            events.append(("metadata", encode({message_id: {"metadata": about}})))
        if message.get("type") == "AIMessageChunk":
            chunk = AIMessageChunk(**{"content": "", **message, "type": "AIMessageChunk"})
            before = self._growing.get(message_id)
            whole = self._growing[message_id] = chunk if before is None else before + chunk
            events.append(("partial", encode([message_json(message_chunk_to_message(whole))])))
        else:
            self._growing.pop(message_id, None)
            events.append(("complete", encode([message])))
        return events
