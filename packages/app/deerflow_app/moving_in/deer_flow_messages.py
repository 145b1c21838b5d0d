"""Messages out of deer-flow's checkpoints, which LangGraph has written.

LangGraph's serializer is asked for plain data alone: a checkpoint may name any Python class, and none is imported or called.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from deerflow.config.paths import VIRTUAL_ROOT
from deerflow.storage.sql import storable, storable_text
from deerflow.threads.input import client_messages
from deerflow_app.moving_in.threads import moment, without

MESSAGES = "messages"
_CLASSES = {
    **dict.fromkeys(("HumanMessage", "HumanMessageChunk"), "human"),
    **dict.fromkeys(("AIMessage", "AIMessageChunk"), "ai"),
    **dict.fromkeys(("ToolMessage", "ToolMessageChunk"), "tool"),
    "RemoveMessage": "remove",
}
"""Classes whose data is read. Texts of others (of the system, above all) do not come."""
_REMOVE_ALL = "__remove_all__"
_OF_FILES = ("filename", "size", "path", "status")
_UPLOADS, _END = re.compile("<uploaded_files>"), "</uploaded_files>"
"""Around a block that earlier versions put before the person's words."""
_NEWEST = "SELECT * FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
_ONE = "SELECT * FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
_WRITES = """SELECT type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = ?
    ORDER BY task_id, idx"""


@dataclass(frozen=True, slots=True)
class MessageState:
    """Contents of a thread's newest checkpoint. ``left_out``: messages that do not come."""

    messages: list[AnyMessage]
    title: str
    artifacts: list[str]
    at: datetime | None
    left_out: int


def newest_state(database: sqlite3.Connection, thread_id: str) -> MessageState | None:
    """Return a thread's state, or None if it has no checkpoint. Blocks.

    Raises:
        ValueError: the checkpoint cannot be read; says why.
        sqlite3.Error: the database is damaged.
    """
    row = database.execute(_NEWEST, (thread_id,)).fetchone()
    if row is None:
        return None
    checkpoint = _loaded(row["type"], row["checkpoint"])
    values = checkpoint.get("channel_values") or {}
    kept = [each for each in _messages(database, thread_id, row) if each.get("type") != "system"]
    messages = [found for each in kept if (found := _message(each)) is not None]
    artifacts = values.get("artifacts")
    named = artifacts if isinstance(artifacts, list) else []
    paths = [path for path in named if isinstance(path, str) and path.startswith(f"{VIRTUAL_ROOT}/")]
    title = values.get("title")
    left_out = len(kept) - len(messages)
    at = moment(checkpoint.get("ts"))
    return MessageState(client_messages(messages), title if isinstance(title, str) else "", paths, at, left_out)


def _messages(database: sqlite3.Connection, thread_id: str, row: sqlite3.Row) -> list[dict[str, Any]]:
    """Return the messages as plain data: from the checkpoint, or from the steps since the last one that holds them all."""
    steps: list[list[Any]] = []
    seen: set[str] = set()
    at: sqlite3.Row | None = row
    while at is not None and at["checkpoint_id"] not in seen:
        seen.add(at["checkpoint_id"])
        values = _loaded(at["type"], at["checkpoint"]).get("channel_values") or {}
        if MESSAGES in values:
            return _merged([values[MESSAGES], *(write for step in reversed(steps) for write in step)])
        parent = at["parent_checkpoint_id"]
        written = database.execute(_WRITES, (thread_id, parent, MESSAGES)).fetchall() if parent else ()
        steps.append([_loaded(write["type"], write["value"]) for write in written])
        at = database.execute(_ONE, (thread_id, parent)).fetchone() if parent else None
    return _merged(write for step in reversed(steps) for write in step)


def _merged(writes: Iterable[Any]) -> list[dict[str, Any]]:
    """Append, replace by id and remove, as LangGraph does."""
    merged: dict[str, dict[str, Any]] = {}
    for write in writes:
        for message in write if isinstance(write, list) else [write]:
            if not isinstance(message, dict):
                continue
            key = str(message.get("id") or f"without id {len(merged)}")
            if message.get("type") != "remove":
                merged[key] = message
            elif key == _REMOVE_ALL:
                merged.clear()
            else:
                merged.pop(key, None)
    return [*merged.values()]


def _message(given: Mapping[str, Any]) -> AnyMessage | None:
    """Return a message with its text and calls alone; None if it is of no kind that comes."""
    kwargs = given.get("additional_kwargs")
    kwargs = kwargs if isinstance(kwargs, Mapping) else {}
    kept: dict[str, Any] = {"hide_from_ui": True} if kwargs.get("hide_from_ui") else {}
    if files := _files(kwargs.get("files")):
        kept["files"] = files
    text, name = _text(given.get("content")), given.get("name")
    base: dict[str, Any] = storable({"id": given.get("id"), "name": name, "additional_kwargs": kept})
    try:
        match given.get("type"):
            case "human" | "HumanMessageChunk":
                return HumanMessage(content=storable_text(without(text, _UPLOADS, _END)).strip("\n"), **base)
            case "ai" | "AIMessageChunk":
                calls = [
                    {key: call.get(key) for key in ("name", "args", "id")} for call in given.get("tool_calls") or ()
                ]
                return AIMessage(content=storable_text(text), tool_calls=storable(calls), **base)
            case "tool" | "ToolMessageChunk":
                call = storable(str(given.get("tool_call_id") or ""))
                status = "error" if given.get("status") == "error" else "success"
                return ToolMessage(content=storable_text(text), tool_call_id=call, status=status, **base)
            case _:
                return None
    except (ValueError, TypeError, AttributeError):
        return None


def _files(given: Any) -> list[dict[str, Any]]:
    """Return the uploads that came with a message, as they are described here."""
    described = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    named = [one for one in described if isinstance(one.get("filename"), str)]
    return [{key: one[key] for key in _OF_FILES if isinstance(one.get(key), str | int)} for one in named]


def _text(content: Any) -> str:
    """Return the text of a message. Pictures, which stand in it byte by byte, leave a mark."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts: list[str] = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, Mapping) and isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif isinstance(block, Mapping) and "image" in str(block.get("type")):
            parts.append("[image]")
    return "\n\n".join(part for part in parts if part)


# plain data ---------------------------------------------------------------------------------------------------------


def _loaded(kind: str | None, data: Any) -> Any:
    """Return what stands there as plain data. Raises ValueError."""
    try:
        if kind == "json":  # of versions long ago
            return json.loads(data, object_hook=_of_constructor)
        return _SERIALIZER.loads_typed((kind or "msgpack", data))
    except NotImplementedError:
        raise ValueError(
            f"a checkpoint is stored as {kind!r}, which is not opened, since that could run code."
        ) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"a checkpoint cannot be read: {error}") from None


def _plain(code: int, data: bytes) -> Any:
    """Return what LangGraph would make an object of: the data of a message, the value of a snapshot; of all else nothing."""
    inner = _SERIALIZER.loads_typed(("msgpack", data))
    if code == jsonplus.EXT_DELTA_SNAPSHOT:
        return inner
    if code in (jsonplus.EXT_PYDANTIC_V1, jsonplus.EXT_PYDANTIC_V2) and len(inner) > 2:
        return _of_class(str(inner[1]), inner[2])
    return None


def _of_constructor(given: dict[str, Any]) -> Any:
    if given.get("type") != "constructor" or not isinstance(given.get("id"), list) or not given["id"]:
        return given
    return _of_class(str(given["id"][-1]), given.get("kwargs"))


def _of_class(name: str, data: Any) -> Any:
    return {**data, "type": _CLASSES[name]} if name in _CLASSES and isinstance(data, Mapping) else None


_SERIALIZER = JsonPlusSerializer(pickle_fallback=False, __unpack_ext_hook__=_plain)
