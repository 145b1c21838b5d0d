"""The events of a run as events of the agent streaming protocol (``langchain-protocol``; what ``threads.stream`` clients read).

One event of the log becomes several of the protocol. Their positions are derived from its own, so that every connection
numbers them alike: clients open streams anew whenever they want to see more, and drop what they have seen by its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deerflow.events.graph_stream import LLM_RETRY
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.client_events import messages_in, text_of

if TYPE_CHECKING:
    from deerflow.events.store import RunEvent

Data = dict[str, Any]
Namespace = tuple[str, ...]

SLOTS = 64
"""How many positions an event of the log has room for: protocol positions are ``seq * SLOTS`` and what follows."""

ENDINGS = {"success": "completed", "error": "failed", "timeout": "failed", "interrupted": "interrupted"}


ROLES = {"AIMessageChunk": "ai", "ai": "ai", "human": "human", "system": "system", "tool": "tool"}


# messages ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Block:
    """A block of a message, or some more of one, which ``key`` tells from others of its kind.

    ``kind`` is what it is while it grows: text, reasoning or tool_call_chunk; others are emitted whole, in ``content``.
    """

    kind: str
    key: Any = None
    text: str = ""
    id: str | None = None
    name: str | None = None
    content: Data | None = None

    def begun(self) -> Data:
        """The block with what it holds so far."""
        match self.kind:
            case "text" | "reasoning":
                return {"type": self.kind, self.kind: self.text}
            case "tool_call_chunk":
                return {"type": self.kind, "id": self.id, "name": self.name, "args": self.text}
            case _:
                return self.content or {"type": self.kind}

    def finished(self) -> Data:
        if self.kind != "tool_call_chunk":
            return self.begun()
        try:
            args = json.loads(self.text or "{}")
        except ValueError:
            args = None
        if isinstance(args, dict):
            return {"type": "tool_call", "id": self.id, "name": self.name or "", "args": args}
        error = "The arguments are no JSON object."
        return {"type": "invalid_tool_call", "id": self.id, "name": self.name, "args": self.text, "error": error}


@dataclass(slots=True)
class _Message:
    id: str
    role: str
    metadata: Data
    extra: Data = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)
    places: dict[tuple[str, Any], int] = field(default_factory=dict)
    usage: Data | None = None
    response: Data = field(default_factory=dict)


class MessageStreams:
    """The messages of one attempt at a run, as they grow: start, content blocks with their deltas, finish. Needs to see every event
    of the attempt, in order.

    Clients fold deltas into the message that was started last in a namespace, so that no event needs to repeat an id: there is
    one open message per namespace, and another one that comes in between closes it. Should the first go on, it is opened anew
    with what it held.
    """

    def __init__(self) -> None:
        self._open: dict[Namespace, _Message] = {}
        self._parked: dict[str, _Message] = {}
        self._emitted: set[str] = set()

    def chunk(self, namespace: Namespace, message: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Data]:
        """A streamed piece of a message of the model."""
        emitted: list[Data] = []
        current = self._current(namespace, message, metadata, emitted)
        for piece in _pieces(message):
            emitted += _grow(current, piece)
        if usage := message.get("usage_metadata"):
            current.usage = _added(current.usage, usage)
        current.response |= message.get("response_metadata") or {}
        return emitted

    def whole(self, namespace: Namespace, message: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Data]:
        """A complete message: the last word on one that was streamed, else all there is to tell of it."""
        role, id_ = ROLES.get(str(message.get("type"))), str(message.get("id") or "")
        if role is None or id_ in self._emitted:
            return []
        emitted: list[Data] = []
        current = self._current(namespace, message, metadata, emitted)
        _complete(current, message, emitted)
        return emitted + self.close(namespace)

    def settle(self, namespace: Namespace, message: Mapping[str, Any]) -> list[Data]:
        """The node is done with ``message``: the last word on it, if it was streamed."""
        id_ = str(message.get("id") or "")
        current = self._open.get(namespace)
        streamed = id_ in self._parked or (current is not None and current.id == id_)
        return self.whole(namespace, message, {}) if streamed else []

    def close(self, namespace: Namespace) -> list[Data]:
        """Finish the message that is open in ``namespace``."""
        current = self._open.pop(namespace, None)
        if current is None:
            return []
        self._emitted.add(current.id)
        return [*_block_ends(current), _message_end(current)]

    def close_all(self) -> Iterator[tuple[Namespace, Data]]:
        for namespace in list(self._open):
            for data in self.close(namespace):
                yield namespace, data

    def _current(
        self, namespace: Namespace, message: Mapping[str, Any], metadata: Mapping[str, Any], emitted: list[Data]
    ) -> _Message:
        id_ = str(message.get("id") or "")
        current = self._open.get(namespace)
        if current is not None and current.id == id_:
            return current
        if current is not None:
            self._parked[current.id] = current
            emitted += [*_block_ends(current), _message_end(current)]
        current = self._parked.pop(id_, None) or _new_message(id_, message, metadata)
        self._open[namespace] = current
        emitted.append(
            {"event": "message-start", "role": current.role, "id": id_, **current.extra, "metadata": current.metadata}
        )
        emitted += [
            {"event": "content-block-start", "index": index, "content": block.begun()}
            for index, block in enumerate(current.blocks)
        ]
        return current


def _new_message(id_: str, message: Mapping[str, Any], metadata: Mapping[str, Any]) -> _Message:
    role = ROLES.get(str(message.get("type")), "ai")
    about = {"langgraph_node": metadata["langgraph_node"]} if metadata.get("langgraph_node") else {}
    if (message.get("additional_kwargs") or {}).get("hide_from_ui"):
        about["hide_from_ui"] = True
    extra = {key: message[key] for key in ("name", "tool_call_id") if message.get(key)}
    return _Message(id_, role, about, extra)


def _grow(message: _Message, piece: _Block) -> list[Data]:
    emitted: list[Data] = []
    index = message.places.get((piece.kind, piece.key))
    if index is None:
        index = message.places[piece.kind, piece.key] = len(message.blocks)
        block = replace(piece, text="")
        message.blocks.append(block)
        emitted.append({"event": "content-block-start", "index": index, "content": block.begun()})
    block = message.blocks[index]
    block.id, block.name = block.id or piece.id, block.name or piece.name
    if piece.text:
        block.text += piece.text
        emitted.append({"event": "content-block-delta", "index": index, "delta": _delta(piece)})
    return emitted


def _delta(piece: _Block) -> Data:
    if piece.kind == "tool_call_chunk":
        return {"type": "tool-call-delta", "args": piece.text}
    return {"type": f"{piece.kind}-delta", piece.kind: piece.text}


def _pieces(message: Mapping[str, Any]) -> Iterator[_Block]:
    if reasoning := (message.get("additional_kwargs") or {}).get("reasoning_content"):
        yield _Block("reasoning", None, str(reasoning))
    content = message.get("content")
    for part in [content] if isinstance(content, str) else content or ():
        yield from _content_pieces(part)
    for call in message.get("tool_call_chunks") or ():
        key = call.get("index") if call.get("index") is not None else call.get("id")
        yield _Block("tool_call_chunk", key, call.get("args") or "", call.get("id"), call.get("name"))


def _content_pieces(part: Any) -> Iterator[_Block]:
    """Blocks as providers give them; those of tool calls come as ``tool_call_chunks`` as well."""
    if isinstance(part, str):
        if part:
            yield _Block("text", None, part)
        return
    kind, index = str(part.get("type")), part.get("index")
    match kind:
        case "text":
            yield _Block("text", index, str(part.get("text") or ""))
        case "reasoning" | "thinking":
            yield _Block("reasoning", index, str(part.get(kind) or ""))
        case "tool_use" | "tool_call" | "tool_call_chunk" | "function_call" | "input_json_delta":
            return
        case _:
            yield _Block(kind, index, content=dict(part))


def _complete(message: _Message, whole: Mapping[str, Any], emitted: list[Data]) -> None:
    """Bring ``message`` to what ``whole`` says; what was not streamed is emitted as blocks of its own."""
    if not message.blocks:
        for piece in _pieces({**whole, "tool_call_chunks": ()}):
            begun = piece if message.role == "ai" else replace(piece, text="")
            emitted.append({"event": "content-block-start", "index": len(message.blocks), "content": begun.begun()})
            message.blocks.append(piece)
    texts = [block for block in message.blocks if block.kind == "text"]
    if len(texts) == 1 and isinstance(whole.get("content"), str) and whole["content"]:
        texts[0].text = whole["content"]
    calls = {block.id: block for block in message.blocks if block.kind == "tool_call_chunk"}
    for call in whole.get("tool_calls") or ():
        args = json.dumps(call.get("args") or {}, ensure_ascii=False)
        if block := calls.get(call.get("id")):
            block.text, block.name = args, call.get("name")
            continue
        block = _Block("tool_call_chunk", None, args, call.get("id"), call.get("name"))
        emitted.append({"event": "content-block-start", "index": len(message.blocks), "content": block.begun()})
        message.blocks.append(block)
    message.usage = whole.get("usage_metadata") or message.usage
    message.response |= whole.get("response_metadata") or {}


def _block_ends(message: _Message) -> Iterable[Data]:
    for index, block in enumerate(message.blocks):
        yield {"event": "content-block-finish", "index": index, "content": block.finished()}


def _message_end(message: _Message) -> Data:
    data: Data = {"event": "message-finish"}
    if message.usage:
        data["usage"] = {key: value for key, value in message.usage.items() if value != {}}
    if reason := message.response.get("finish_reason") or message.response.get("stop_reason"):
        data["reason"] = reason
    if model := message.response.get("model_name"):
        data["metadata"] = {"model_name": model}
    return data


def _added(usage: Data | None, more: Mapping[str, Any]) -> Data:
    """Chunks of one message each tell a part of its usage."""
    total = dict(usage or {})
    for key, value in more.items():
        if isinstance(value, Mapping):
            total[key] = _added(total.get(key), value)
        elif isinstance(value, int):
            total[key] = total.get(key, 0) + value
    return total


# the renderer -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """An event of the protocol. ``data`` is None for root ``values`` and the checkpoint before them: whoever sends them looks
    them up, since snapshots are not part of the log."""

    seq: int
    event_id: str
    run_id: str
    method: str
    namespace: list[str]
    data: Any
    final: bool = False
    """Whether its run ends here."""

    def event(self, timestamp: int) -> Data:
        """Args: ``timestamp`` in milliseconds since 1970, at which it was emitted."""
        params = {"namespace": self.namespace, "timestamp": timestamp, "data": self.data}
        return {"type": "event", "event_id": self.event_id, "seq": self.seq, "method": self.method, "params": params}


Emitted = tuple[str, Namespace, Any]
_SNAPSHOT: tuple[Emitted, ...] = (("checkpoints", (), None), ("values", (), None))
"""Clients take a checkpoint for that of the values which follow it."""


@dataclass(slots=True)
class _Attempt:
    """An attempt at a run, with what has to be remembered of it. It is over when the log goes on in another epoch."""

    epoch: int
    run_id: str
    messages: MessageStreams = field(default_factory=MessageStreams)
    started: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    entered: dict[Namespace, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    """The call of each namespace in which a subagent works."""
    error: str | None = None

    def emitted(self, event: RunEvent, answers: Sequence[str]) -> Iterable[Emitted]:
        namespace, data = event.namespace, event.data
        match event.method:
            case "metadata":
                return self._begin(data, answers)
            case "messages":
                return self._message(namespace, *data)
            case "updates":
                return self._updates(namespace, data)
            case "input":
                return [("updates", namespace, {"node": "__start__", **data})]
            case "values" if not namespace:
                return _SNAPSHOT
            case "values" | "tasks":
                return [(event.method, namespace, data)]
            case "checkpoints":
                return [("checkpoints", namespace, _envelope(data))]
            case "custom":
                return self._custom(namespace, data)
            case "error":
                self.error = str(data.get("message") or data.get("error"))
                return []
            case "end":
                return self._end(str(data.get("status")))
            case _:
                return []

    def _begin(self, data: Mapping[str, Any], answers: Sequence[str]) -> Iterator[Emitted]:
        """The second attempt takes nothing up that the first left half said."""
        if int(data.get("attempt") or 1) > 1:
            yield "messages", (), {"event": "error", "message": "The run was taken up again.", "code": "aborted"}
        yield "lifecycle", (), {"event": "running", "run_id": self.run_id}
        if answers:
            yield "input.answered", (), {"interrupt_ids": list(answers)}

    def _custom(self, namespace: Namespace, data: Any) -> Iterator[Emitted]:
        """An answer that is asked for anew is over before the values that are without it."""
        if isinstance(data, Mapping) and data.get("type") == LLM_RETRY:
            for closing in self.messages.close(namespace):
                yield "messages", namespace, closing
        if isinstance(data, Mapping) and data.get("type") == "task_started":
            self.tasks |= {str(inner): str(data.get("task_id")) for inner in data.get("namespace") or ()}
        yield "custom", namespace, _custom(data)

    def _message(
        self, namespace: Namespace, message: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> Iterator[Emitted]:
        streams = self.messages
        chunk = message.get("type") == "AIMessageChunk"
        for data in (streams.chunk if chunk else streams.whole)(namespace, message, metadata):
            yield "messages", namespace, data
        if not chunk:
            yield from self._tools(namespace, message)

    def _updates(self, namespace: Namespace, updates: Mapping[str, Any]) -> Iterator[Emitted]:
        for node, writes in updates.items():
            if node == "__interrupt__":
                yield from self._interrupts(namespace, writes)
                continue
            for message in messages_in({node: writes}):
                for data in self.messages.settle(namespace, message):
                    yield "messages", namespace, data
                yield from self._tools(namespace, message)
            yield "updates", namespace, {"node": node, "values": writes}

    def _interrupts(self, namespace: Namespace, interrupts: Iterable[Mapping[str, Any]]) -> Iterator[Emitted]:
        """Those of a subgraph are reported once more by every graph around it."""
        for interrupt in interrupts:
            if interrupt["id"] not in self.asked:
                self.asked.add(interrupt["id"])
                value = interrupt.get("value")
                # The JavaScript client reads payload, the Python one value.
                yield "input.requested", namespace, {"interrupt_id": interrupt["id"], "payload": value, "value": value}

    def _tools(self, namespace: Namespace, message: Mapping[str, Any]) -> Iterator[Emitted]:
        """Tools are at work from the message that calls them to the one that brings the result."""
        for call in message.get("tool_calls") or ():
            yield from self._tool_started(namespace, str(call.get("id")), str(call.get("name")), call.get("args"))
        id_ = message.get("tool_call_id")
        if message.get("type") != "tool" or not id_ or id_ in self.finished:
            return
        yield from self._tool_started(namespace, id_, str(message.get("name") or ""), None)
        self.finished.add(id_)
        failed, content = message.get("status") == "error", message.get("content")
        tasks = self.tasks
        ours = lambda inner: inner[-1].endswith(f":{id_}") or tasks.get(inner[-1]) == id_  # noqa: E731
        yield from self._leaving(ours, "failed" if failed else "completed")
        if failed:
            yield "tools", namespace, {"event": "tool-error", "tool_call_id": id_, "message": text_of(content)}
        else:
            yield "tools", namespace, {"event": "tool-finished", "tool_call_id": id_, "output": content}

    def _tool_started(self, namespace: Namespace, id_: str, name: str, args: Any) -> Iterator[Emitted]:
        if id_ in self.started:
            return
        self.started.add(id_)
        data = {"event": "tool-started", "tool_call_id": id_, "tool_name": name}
        yield "tools", namespace, data if args is None else {**data, "input": args}

    def entering(self, namespace: Namespace) -> Iterator[Emitted]:
        """A subgraph starts with the first thing that is heard of it."""
        for length in range(1, len(namespace) + 1):
            inner = namespace[:length]
            if inner in self.entered:
                continue
            name, _, id_ = inner[-1].partition(":")
            id_ = self.tasks.get(inner[-1], id_)
            self.entered[inner] = name
            data: Data = {"event": "started", "graph_name": name}
            if id_ in self.started:
                data["cause"] = {"type": "toolCall", "tool_call_id": id_}
            yield "lifecycle", inner, data

    def _leaving(self, ends: Any, status: str) -> Iterator[Emitted]:
        over = [inner for inner in self.entered if ends(inner)]
        for inner in sorted(self.entered, key=len, reverse=True):
            if any(inner[: len(outer)] == outer for outer in over):
                name = self.entered.pop(inner)
                yield "lifecycle", inner, {"event": status, "graph_name": name}

    def _end(self, status: str) -> Iterator[Emitted]:
        """Values come before the last word: with it, clients drop the messages that no values have carried."""
        for namespace, data in self.messages.close_all():
            yield "messages", namespace, data
        event = ENDINGS.get(status, "failed")
        yield from self._leaving(lambda _: True, event)
        yield from _SNAPSHOT
        data = {"event": event, "run_id": self.run_id, "status": status}
        if event == "failed":
            data["error"] = self.error or ("The run took too long." if status == "timeout" else "The run failed.")
        yield "lifecycle", (), data


class Renderer:
    """Turns the events of a thread's log into frames. Has to begin where an epoch begins: see :func:`epoch_start`."""

    def __init__(self) -> None:
        self._attempt = _Attempt(-1, "")

    def render(self, event: RunEvent, answers: Sequence[str] = ()) -> list[Frame]:
        """Args: ``answers``: which interrupts the run answers, needed with its ``metadata`` event."""
        epoch = event.seq // EVENTS_PER_CLAIM
        if epoch != self._attempt.epoch or event.run_id != self._attempt.run_id:
            self._attempt = _Attempt(epoch, event.run_id)
        emitted = list(self._attempt.entering(event.namespace))
        emitted += self._attempt.emitted(event, answers)
        return _numbered(event, emitted)


def log_position(seq: int) -> int:
    """The event of the log that the frame at ``seq`` belongs to."""
    return seq // SLOTS


def protocol_position(seq: int) -> int:
    """The position of the last frame that the event of the log at ``seq`` can have."""
    return seq * SLOTS + SLOTS - 1


def epoch_start(epoch: int) -> int:
    """The position in the log after which all events of ``epoch`` lie."""
    return max(0, epoch * EVENTS_PER_CLAIM - 1)


def _numbered(event: RunEvent, emitted: list[Emitted]) -> list[Frame]:
    """Beyond the room of an event positions repeat, all but the last one short of it: who resumes there gets all again."""
    frames: list[Frame] = []
    for index, (method, namespace, data) in enumerate(emitted):
        last = index == len(emitted) - 1
        slot = index if len(emitted) <= SLOTS else SLOTS - 1 if last else min(index, SLOTS - 2)
        seq = event.seq * SLOTS + slot
        # Clients tell by this form which run a root lifecycle event belongs to.
        run_bound = method == "lifecycle" and not namespace
        overflow = "" if index < SLOTS - 1 or len(emitted) <= SLOTS else f".{index}"
        event_id = f"synth:{event.run_id}:{seq}" if run_bound else f"{seq}{overflow}"
        frames.append(Frame(seq, event_id, event.run_id, method, list(namespace), data, final=event.method == "end"))
    return frames


def _custom(payload: Any) -> Data:
    """Named by what it calls itself, so that a client may listen to ``custom:<name>`` alone."""
    name = payload.get("name") or payload.get("type") if isinstance(payload, Mapping) else None
    return {"name": name, "payload": payload} if isinstance(name, str) else {"payload": payload}


def _envelope(checkpoint: Mapping[str, Any]) -> Data:
    """A checkpoint without the state it holds."""

    def id_of(config: Any) -> str | None:
        return ((config or {}).get("configurable") or {}).get("checkpoint_id")

    metadata = checkpoint.get("metadata") or {}
    found = {
        "id": id_of(checkpoint.get("config")),
        "parent_id": id_of(checkpoint.get("parent_config")),
        "step": metadata.get("step"),
        "source": metadata.get("source"),
    }
    return {key: value for key, value in found.items() if value is not None}
