"""Messages and states as plain JSON values, the way clients of the LangGraph API read them."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from datetime import date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessageChunk, BaseMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

HIDDEN_KEYS = frozenset({"thread_data", "sandbox", "jump_to", "structured_response", "remaining_steps"})
"""Channels of the state that are no business of a client: host paths, and what steers the graph."""

_CHUNK_FIELDS = ("name", "additional_kwargs", "tool_call_chunks", "usage_metadata", "response_metadata")


def plain(value: Any) -> Any:
    """``value`` with everything that JSON does not know turned into something it knows. Never raises."""
    if value is None or isinstance(value, (str, int, float, bool)):
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
    if isinstance(value, (UUID, PurePath)):
        return str(value)
    return str(value)


def message_json(message: BaseMessage) -> dict[str, Any]:
    """A whole message: LangChain's own fields."""
    return plain(message.model_dump())


def chunk_json(chunk: AIMessageChunk) -> dict[str, Any] | None:
    """A streamed piece of a message: only what it says. None if it says nothing."""
    data: dict[str, Any] = {"type": "AIMessageChunk", "id": chunk.id, "content": plain(chunk.content)}
    for name in _CHUNK_FIELDS:
        if value := getattr(chunk, name):
            data[name] = plain(value)
    if metadata := data.pop("response_metadata", None):
        # Said with every piece by LangChain, and of no use to anyone before the whole message tells it.
        metadata.pop("model_provider", None)
        if metadata:
            data["response_metadata"] = metadata
    if calls := data.get("tool_call_chunks"):
        data["tool_call_chunks"] = [{key: value for key, value in call.items() if value is not None} for call in calls]
    return data if data["content"] or len(data) > 3 else None


def values_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """A thread's values for clients: without host paths and without pictures' bytes."""
    shown = {key: plain(value) for key, value in values.items() if key not in HIDDEN_KEYS and not key.startswith("__")}
    if images := shown.get("viewed_images"):
        shown["viewed_images"] = {path: {"mime_type": image.get("mime_type")} for path, image in images.items()}
    return shown
