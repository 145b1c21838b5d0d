"""Messages as the agent streaming protocol tells them: start, content blocks with their deltas, finish.

Clients fold deltas into the message that was started last in a namespace, so that no event needs to repeat an id: there is one
open message per namespace, and another one that comes in between closes it. Should the first go on, it is opened anew with
what it held.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Data = dict[str, Any]
ROLES = {"AIMessageChunk": "ai", "ai": "ai", "human": "human", "system": "system", "tool": "tool"}


@dataclass(slots=True)
class _Block:
    """``kind`` is what it is while it grows: text, reasoning or tool_call_chunk; others are emitted whole, in ``content``."""

    kind: str
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


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some more of a block. ``key`` tells blocks of one kind apart."""

    kind: str
    key: Any
    text: str = ""
    id: str | None = None
    name: str | None = None
    content: Data | None = None


class MessageStreams:
    """The messages of one attempt at a run, as they grow. Needs to see every event of the attempt, in order."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Message] = {}
        self._parked: dict[str, _Message] = {}
        self._emitted: set[str] = set()

    def chunk(self, namespace: tuple[str, ...], message: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Data]:
        """A streamed piece of a message of the model."""
        emitted: list[Data] = []
        current = self._current(namespace, message, metadata, emitted)
        for piece in _pieces(message):
            emitted += _grow(current, piece)
        if usage := message.get("usage_metadata"):
            current.usage = _added(current.usage, usage)
        current.response |= message.get("response_metadata") or {}
        return emitted

    def whole(self, namespace: tuple[str, ...], message: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Data]:
        """A complete message: the last word on one that was streamed, else all there is to tell of it."""
        role, id_ = ROLES.get(str(message.get("type"))), str(message.get("id") or "")
        if role is None or id_ in self._emitted:
            return []
        emitted: list[Data] = []
        current = self._current(namespace, message, metadata, emitted)
        _complete(current, message, emitted)
        return emitted + self.close(namespace)

    def settle(self, namespace: tuple[str, ...], message: Mapping[str, Any]) -> list[Data]:
        """The node is done with ``message``: the last word on it, if it was streamed."""
        id_ = str(message.get("id") or "")
        current = self._open.get(namespace)
        streamed = id_ in self._parked or (current is not None and current.id == id_)
        return self.whole(namespace, message, {}) if streamed else []

    def close(self, namespace: tuple[str, ...]) -> list[Data]:
        """Finish the message that is open in ``namespace``."""
        current = self._open.pop(namespace, None)
        if current is None:
            return []
        self._emitted.add(current.id)
        return [*_block_ends(current), _message_end(current)]

    def close_all(self) -> Iterator[tuple[tuple[str, ...], Data]]:
        for namespace in list(self._open):
            for data in self.close(namespace):
                yield namespace, data

    def _current(
        self, namespace: tuple[str, ...], message: Mapping[str, Any], metadata: Mapping[str, Any], emitted: list[Data]
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
    extra = {key: message[key] for key in ("name", "tool_call_id") if message.get(key)}
    return _Message(id_, role, about, extra)


def _grow(message: _Message, piece: _Piece) -> list[Data]:
    emitted: list[Data] = []
    index = message.places.get((piece.kind, piece.key))
    if index is None:
        index = message.places[piece.kind, piece.key] = len(message.blocks)
        block = _Block(piece.kind, id=piece.id, name=piece.name, content=piece.content)
        message.blocks.append(block)
        emitted.append({"event": "content-block-start", "index": index, "content": block.begun()})
    block = message.blocks[index]
    block.id, block.name = block.id or piece.id, block.name or piece.name
    if piece.text:
        block.text += piece.text
        emitted.append({"event": "content-block-delta", "index": index, "delta": _delta(piece)})
    return emitted


def _delta(piece: _Piece) -> Data:
    if piece.kind == "tool_call_chunk":
        return {"type": "tool-call-delta", "args": piece.text}
    return {"type": f"{piece.kind}-delta", piece.kind: piece.text}


def _pieces(message: Mapping[str, Any]) -> Iterator[_Piece]:
    if reasoning := (message.get("additional_kwargs") or {}).get("reasoning_content"):
        yield _Piece("reasoning", None, str(reasoning))
    content = message.get("content")
    for part in [content] if isinstance(content, str) else content or ():
        yield from _content_pieces(part)
    for call in message.get("tool_call_chunks") or ():
        key = call.get("index") if call.get("index") is not None else call.get("id")
        yield _Piece("tool_call_chunk", key, call.get("args") or "", call.get("id"), call.get("name"))


def _content_pieces(part: Any) -> Iterator[_Piece]:
    """Blocks as providers give them; those of tool calls come as ``tool_call_chunks`` as well."""
    if isinstance(part, str):
        if part:
            yield _Piece("text", None, part)
        return
    kind, index = str(part.get("type")), part.get("index")
    match kind:
        case "text":
            yield _Piece("text", index, str(part.get("text") or ""))
        case "reasoning" | "thinking":
            yield _Piece("reasoning", index, str(part.get(kind) or ""))
        case "tool_use" | "tool_call" | "tool_call_chunk" | "function_call" | "input_json_delta":
            return
        case _:
            yield _Piece(kind, index, content=dict(part))


def _complete(message: _Message, whole: Mapping[str, Any], emitted: list[Data]) -> None:
    """Bring ``message`` to what ``whole`` says; what was not streamed is emitted as blocks of its own."""
    if not message.blocks:
        for piece in _pieces({**whole, "tool_call_chunks": ()}):
            index = len(message.blocks)
            message.blocks.append(_Block(piece.kind, piece.text, content=piece.content))
            begun = (
                message.blocks[-1].begun()
                if message.role == "ai"
                else _Block(piece.kind, content=piece.content).begun()
            )
            emitted.append({"event": "content-block-start", "index": index, "content": begun})
    texts = [block for block in message.blocks if block.kind == "text"]
    if len(texts) == 1 and isinstance(whole.get("content"), str) and whole["content"]:
        texts[0].text = whole["content"]
    calls = {block.id: block for block in message.blocks if block.kind == "tool_call_chunk"}
    for call in whole.get("tool_calls") or ():
        args = json.dumps(call.get("args") or {}, ensure_ascii=False)
        if block := calls.get(call.get("id")):
            block.text, block.name = args, call.get("name")
            continue
        block = _Block("tool_call_chunk", args, call.get("id"), call.get("name"))
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
