"""Messages, states and whatever a run reports, as JSON that clients of the LangGraph API read."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any

import orjson
from langchain_core.messages import AIMessageChunk, BaseMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

HIDDEN_KEYS = frozenset({"thread_data", "sandbox", "jump_to", "structured_response", "remaining_steps"})
"""Channels of the state that are no business of a client: host paths, and what steers the graph."""

_CHUNK_FIELDS = ("name", "additional_kwargs", "tool_call_chunks", "usage_metadata", "response_metadata")
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
_PLAIN = frozenset({str, int, float, bool, type(None)})
_DEEPEST = 200
_LINE_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def encode(value: Any) -> bytes:
    """``value`` as UTF-8 JSON without a line break of any kind. Never raises.

    What JSON lacks becomes what is nearest: NaN null, bytes base64, half a surrogate pair U+FFFD, an integer of more than
    64 bits its digits, an object its fields or its text. What is nested deeper than 200 levels is cut.
    """
    try:
        encoded = orjson.dumps(value, default=_default, option=_OPTIONS)
    except TypeError:
        encoded = orjson.dumps(_clean(value, 0), option=_OPTIONS)
    # Many a client splits a stream at these, too, though only CR and LF end a line of it.
    for separator, escaped in _LINE_SEPARATORS:
        if separator in encoded:
            encoded = encoded.replace(separator, escaped)
    return bytes(memoryview(encoded))  # a copy of its size: what orjson returns holds 4 KiB, however short it is


def plain(value: Any) -> Any:
    """``value`` with everything that JSON does not know turned into something it knows. Never raises."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (str, int, float)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, BaseMessage):
        return message_json(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Interrupt):
        return {"value": plain(value.value), "id": value.id}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, BaseModel):
        return plain(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str(value)


def message_json(message: BaseMessage) -> dict[str, Any]:
    """A whole message: LangChain's own fields."""
    return plain(message.model_dump())


def chunk_json(chunk: AIMessageChunk) -> dict[str, Any] | None:
    """The fields of a streamed chunk that hold something; None if none does."""
    data: dict[str, Any] = {"type": "AIMessageChunk", "id": chunk.id, "content": plain(chunk.content)}
    for name in _CHUNK_FIELDS:
        if value := getattr(chunk, name):
            data[name] = plain(value)
    if metadata := data.pop("response_metadata", None):
        # LangChain repeats it with every chunk; the whole message has it.
        metadata.pop("model_provider", None)
        if metadata:
            data["response_metadata"] = metadata
    if calls := data.get("tool_call_chunks"):
        data["tool_call_chunks"] = [{key: value for key, value in call.items() if value is not None} for call in calls]
    return data if data["content"] or len(data) > 3 else None


class MessageCache:
    """Messages rendered once each, by identity: the states of a thread hold the same ones. Do not change what it returns."""

    def __init__(self, render: Callable[[Any], dict[str, Any]] = message_json) -> None:
        self._render = render
        self._known: dict[int, tuple[BaseMessage, dict[str, Any]]] = {}

    def __call__(self, message: BaseMessage) -> dict[str, Any]:
        known = self._known.get(id(message))
        if known is None:
            # The message is kept as well, so that its id() stays its own.
            known = self._known[id(message)] = (message, self._render(message))
        return known[1]

    def __len__(self) -> int:
        return len(self._known)


INTERRUPT = "__interrupt__"
"""Key in the values of a graph that waits: what it asks, as clients of LangGraph's platform read it."""


def values_json(
    values: Mapping[str, Any], message: Callable[[BaseMessage], dict[str, Any]] = message_json
) -> dict[str, Any]:
    """A thread's values for clients: without host paths and without pictures' bytes.

    Args:
        message: renders a message.
    """
    shown: dict[str, Any] = {}
    for key, value in values.items():
        if key == "messages":
            shown[key] = [message(each) if isinstance(each, BaseMessage) else plain(each) for each in value]
        elif key == INTERRUPT:
            shown[key] = [plain(each) for each in value]
        elif key not in HIDDEN_KEYS and not key.startswith("__"):
            shown[key] = plain(value)
    if images := shown.get("viewed_images"):
        shown["viewed_images"] = {path: {"mime_type": image.get("mime_type")} for path, image in images.items()}
    return shown


def _default(value: Any) -> Any:
    try:
        return plain(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _clean(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, str):
        return str.encode(value, "utf-8", "surrogatepass").decode("utf-8", "replace")
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping):
        return {_key(key): _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean(item, depth + 1) for item in value]
    return _clean(_default(value), depth + 1)


def _key(key: Any) -> str:
    return _clean(key if isinstance(key, str) else str(_default(key)), 0)
