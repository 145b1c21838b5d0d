"""The events of a run as those of the public streaming contract: what ``DeerFlowClient.stream`` yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from deerflow.events.jsonable import MessageCache, message_json
from deerflow.models.messages import as_called

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

    from deerflow.events.store import RunEvent

_USAGE_KEYS = ("input_tokens", "output_tokens", "total_tokens")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a turn.

    - ``messages-tuple``: a piece of a message. AI text ``{type, content, id, reasoning_content?, usage_metadata?}`` with
      ``content`` as a delta; AI calls ``{type, content: "", id, tool_calls: [{name, args, id}]}``, complete, once per
      message, each as one of the tool that it is for; tool results ``{type, content, name, tool_call_id, id, status}``.
    - ``values``: ``{title, messages, artifacts, todos}`` after each step.
    - ``custom``: what tools and middlewares report, untouched.
    - ``end``: ``{usage: {input_tokens, output_tokens, total_tokens}, error, stop_reason, verification?, refused?}``, always
      last: the word for the answer, if it claims something, and ``[{tool, why}]`` of calls that were not made.
    """

    type: Literal["values", "messages-tuple", "custom", "end"]
    data: dict[str, Any]


@dataclass
class TurnEvents:
    """Turns the events of a run's log into those of the public streaming contract.

    Args:
        state: the thread's values as they are now, for the ``values`` event.
    """

    state: Callable[[], Mapping[str, Any] | None]
    _dicts: MessageCache = field(default_factory=lambda: MessageCache(message_dict))
    _streamed: set[str] = field(default_factory=set)
    _usage: dict[str, dict[str, int]] = field(default_factory=dict)
    _error: dict[str, Any] | None = None
    _whole: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Contents of the emitted messages, by id: a run whose process died replays what may have been lost."""

    def of(self, batch: Sequence[RunEvent]) -> Iterator[StreamEvent]:
        """Of a batch only the last ``values`` is emitted: the values are those of now."""
        newest = max((index for index, event in enumerate(batch) if event.method == "values"), default=-1)
        for index, event in enumerate(batch):
            if event.namespace:
                self._count(event)
                continue
            if event.method == "messages":
                yield from self._delta(event.data[0])
            elif event.method == "updates":
                for message in messages_in(event.data):
                    yield from self._completed(message)
            elif event.method == "values" and index == newest:
                yield from self._snapshot()
            elif event.method == "custom":
                yield StreamEvent("custom", event.data)
            elif event.method == "error":
                self._error = {"kind": event.data["error"], "message": event.data["message"]}
            elif event.method == "end":
                told = {key: event.data[key] for key in ("verification", "refused") if key in event.data}
                yield self.end(event.data.get("stop_reason"), **told)

    def _count(self, event: RunEvent) -> None:
        """What subagents use counts, too."""
        for message in messages_in(event.data) if event.method == "updates" else ():
            if usage := shown_message(message).get("usage_metadata"):
                self._usage[message["id"]] = usage

    def end(self, stop_reason: str | None = None, **more: Any) -> StreamEvent:
        usage = {key: sum(counted.get(key) or 0 for counted in self._usage.values()) for key in _USAGE_KEYS}
        return StreamEvent("end", {"usage": usage, "error": self._error, "stop_reason": stop_reason, **more})

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
        if (values := self.state()) is not None:
            messages = [self._dicts(message) for message in values.get("messages") or ()]
            yield StreamEvent("values", _shown(values, messages))

    def _completed(self, message: Mapping[str, Any]) -> Iterator[StreamEvent]:
        calls = [(call["id"], call["name"], call["args"]) for call in message.get("tool_calls") or ()]
        contents = (text_of(message["content"]), calls, message.get("status"))
        if message_id := message["id"]:
            if self._whole.get(message_id) == contents:
                return
            self._whole[message_id] = contents
        if message["type"] == "tool":
            yield StreamEvent("messages-tuple", shown_message(message))
        elif message["type"] == "ai":
            yield from self._answer(message)

    def _answer(self, message: Mapping[str, Any]) -> Iterator[StreamEvent]:
        events: list[dict[str, Any]] = []
        head = {"type": "ai", "content": "", "id": message["id"]}
        error = message.get("additional_kwargs", {}).get("error")
        text = text_of(message["content"])
        if text and (message["id"] or "") not in self._streamed:
            events.append({**head, "content": text} | ({"error": error} if error else {}))
        shown = shown_message(message)
        if calls := shown.get("tool_calls"):
            events.append({**head, "tool_calls": calls})
        if usage := shown.get("usage_metadata"):
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


def messages_in(update: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The whole messages in the data of an ``updates`` event."""
    for writes in update.values():
        for write in writes if isinstance(writes, list) else [writes]:
            if isinstance(write, Mapping):
                messages = write.get("messages") or ()
                yield from [messages] if isinstance(messages, Mapping) else messages


def message_dict(message: AnyMessage) -> dict[str, Any]:
    """A message as the public streaming contract shows it."""
    return shown_message(message_json(message))


def shown_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of LangChain's JSON form as the public streaming contract shows it."""
    kind, more = message.get("type"), message.get("additional_kwargs") or {}
    data: dict[str, Any] = {"type": kind, "content": text_of(message.get("content")), "id": message.get("id")}
    if kind == "ai":
        if calls := message.get("tool_calls"):
            data["tool_calls"] = [
                {key: call.get(key) for key in ("name", "args", "id")} for call in map(as_called, calls)
            ]
        if usage := message.get("usage_metadata"):
            data["usage_metadata"] = {key: int(usage.get(key) or 0) for key in _USAGE_KEYS}
        data |= {key: more[key] for key in ("reasoning_content", "error") if more.get(key)}
    elif kind == "tool":
        data |= {key: message.get(key) for key in ("name", "tool_call_id", "status")}
    elif files := more.get("files"):
        data["files"] = files
    return data


def shown_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A thread's values of LangChain's JSON form, with messages as :func:`shown_message`."""
    return _shown(values, [shown_message(message) for message in values.get("messages") or ()])


def _shown(values: Mapping[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "title": values.get("title"),
        "messages": messages,
        "artifacts": list(values.get("artifacts") or ()),
        "todos": values.get("todos") or [],
    }
