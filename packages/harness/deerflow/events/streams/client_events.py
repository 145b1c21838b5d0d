"""What a turn says while it runs: the events of a run's log turned into those of the public streaming contract."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

if TYPE_CHECKING:
    from deerflow.events.record import RunEvent

_USAGE_KEYS = ("input_tokens", "output_tokens", "total_tokens")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a turn.

    - ``messages-tuple``: a piece of a message. AI text ``{type, content, id, reasoning_content?, usage_metadata?}`` with
      ``content`` as a delta; AI calls ``{type, content: "", id, tool_calls: [{name, args, id}]}``, complete, once per
      message; tool results ``{type, content, name, tool_call_id, id, status}``.
    - ``values``: ``{title, messages, artifacts, todos}`` after each step.
    - ``custom``: what tools and middlewares report, untouched.
    - ``end``: ``{usage: {input_tokens, output_tokens, total_tokens}, error}``, always last.
    """

    type: Literal["values", "messages-tuple", "custom", "end"]
    data: dict[str, Any]


class MessageDicts:
    """Messages as dictionaries, each made once: snapshots of a long thread hold the same messages again and again."""

    def __init__(self, size: int = 8192) -> None:
        self._size = size
        self._known: OrderedDict[int, tuple[AnyMessage, dict[str, Any]]] = OrderedDict()

    def __call__(self, message: AnyMessage) -> dict[str, Any]:
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, message_dict(message))
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        return known[1]


@dataclass
class TurnEvents:
    """Turns the events of a run's log into those of the public streaming contract.

    Args:
        state: the thread's values as they are now, for the ``values`` event.
        dicts: shared by the turns of a client.
    """

    state: Callable[[], Mapping[str, Any] | None]
    dicts: MessageDicts = field(default_factory=MessageDicts)
    _streamed: set[str] = field(default_factory=set)
    _usage: dict[str, dict[str, int]] = field(default_factory=dict)
    _error: dict[str, Any] | None = None
    _whole: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """What the messages said that were told, by id: a run whose process died says again what may not have been heard."""

    def of(self, batch: Sequence[RunEvent]) -> Iterator[StreamEvent]:
        """Of a batch only the last ``values`` is told: the values are those of now."""
        newest = max((index for index, event in enumerate(batch) if event.method == "values"), default=-1)
        for index, event in enumerate(batch):
            if event.namespace:
                continue
            if event.method == "messages":
                yield from self._delta(event.data[0])
            elif event.method == "updates":
                for message in messages_told(event.data):
                    yield from self._completed(message)
            elif event.method == "values" and index == newest:
                yield from self._snapshot()
            elif event.method == "custom":
                yield StreamEvent("custom", event.data)
            elif event.method == "error":
                self._error = {"kind": event.data["error"], "message": event.data["message"]}
            elif event.method == "end":
                yield self.end()

    def end(self) -> StreamEvent:
        usage = {key: sum(counted.get(key) or 0 for counted in self._usage.values()) for key in _USAGE_KEYS}
        return StreamEvent("end", {"usage": usage, "error": self._error})

    def _delta(self, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Text as it is generated. Everything that is complete only at the end of a step comes with the update."""
        if piece["type"] != "AIMessageChunk":
            return
        content, reasoning = text_of(piece["content"]), piece.get("additional_kwargs", {}).get("reasoning_content")
        if not content and not reasoning:
            return
        self._streamed.add(piece["id"] or "")
        data: dict[str, Any] = {"type": "ai", "content": content, "id": piece["id"]}
        if reasoning:
            data["reasoning_content"] = reasoning
        yield StreamEvent("messages-tuple", data)

    def _snapshot(self) -> Iterator[StreamEvent]:
        values = self.state()
        if values is not None:
            yield StreamEvent(
                "values",
                {
                    "title": values.get("title"),
                    "messages": [self.dicts(message) for message in values.get("messages") or ()],
                    "artifacts": list(values.get("artifacts") or []),
                    "todos": values.get("todos") or [],
                },
            )

    def _completed(self, message: Mapping[str, Any]) -> Iterator[StreamEvent]:
        calls = [(call["id"], call["name"], call["args"]) for call in message.get("tool_calls") or ()]
        said = (text_of(message["content"]), calls, message.get("status"))
        if message_id := message["id"]:
            if self._whole.get(message_id) == said:
                return
            self._whole[message_id] = said
        if message["type"] == "tool":
            keys = ("name", "tool_call_id", "id", "status")
            told = {key: message.get(key) for key in keys}
            yield StreamEvent("messages-tuple", {"type": "tool", "content": text_of(message["content"]), **told})
        elif message["type"] == "ai":
            yield from self._answer(message)

    def _answer(self, message: Mapping[str, Any]) -> Iterator[StreamEvent]:
        events: list[dict[str, Any]] = []
        head = {"type": "ai", "content": "", "id": message["id"]}
        error = message.get("additional_kwargs", {}).get("error")
        text = text_of(message["content"])
        if text and (message["id"] or "") not in self._streamed:
            events.append({**head, "content": text} | ({"error": error} if error else {}))
        if calls := message.get("tool_calls"):
            events.append(
                {**head, "tool_calls": [{key: call[key] for key in ("name", "args", "id")} for call in calls]}
            )
        if counted := message.get("usage_metadata"):
            usage = {key: int(counted.get(key) or 0) for key in _USAGE_KEYS}
            self._usage[message["id"] or str(len(self._usage))] = usage
            if events and "tool_calls" in events[-1]:
                events[-1]["usage_metadata"] = usage
            else:
                events.append({**head, "usage_metadata": usage})
        self._error = error
        return (StreamEvent("messages-tuple", event) for event in events)


def text_of(content: Any) -> str:
    """The text in a message's content, which may be a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [block if isinstance(block, dict) else {"type": "text", "text": str(block)} for block in content or ()]
    return "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")


def messages_told(update: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The whole messages in the data of an ``updates`` event."""
    for writes in update.values():
        for write in writes if isinstance(writes, list) else [writes]:
            if isinstance(write, Mapping):
                messages = write.get("messages")
                yield from messages if isinstance(messages, list) else []


def message_dict(message: AnyMessage) -> dict[str, Any]:
    """A message as the public streaming contract shows it."""
    if isinstance(message, AIMessage):
        data: dict[str, Any] = {"type": "ai", "content": message.text, "id": message.id}
        if message.tool_calls:
            data["tool_calls"] = [
                {"name": call["name"], "args": call["args"], "id": call["id"]} for call in message.tool_calls
            ]
        if usage := _usage(message):
            data["usage_metadata"] = usage
        for key in ("reasoning_content", "error"):
            if value := message.additional_kwargs.get(key):
                data[key] = value
        return data
    if isinstance(message, ToolMessage):
        return {
            "type": "tool",
            "content": message.text,
            "name": message.name,
            "tool_call_id": message.tool_call_id,
            "id": message.id,
            "status": message.status,
        }
    if isinstance(message, (HumanMessage, SystemMessage)):
        data = {"type": message.type, "content": message.text, "id": message.id}
        if files := message.additional_kwargs.get("files"):
            data["files"] = files
        return data
    return {"type": "unknown", "content": str(message.content), "id": message.id}


def _usage(message: AIMessage) -> dict[str, int]:
    if not message.usage_metadata:
        return {}
    return {key: int(message.usage_metadata.get(key) or 0) for key in _USAGE_KEYS}
