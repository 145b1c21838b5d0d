"""Chats as Open WebUI exports them: a list of rows, each with ``chat.history``, a tree of messages with ``currentId``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deerflow_app.moving_in.threads import MovedChat, MovedMessage, moment, without

ORIGIN = "open-webui"
_DETAILS = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)"')
"""The beginning of thoughts and calls of a model in the middle of its answers."""


def is_it(item: Mapping[str, Any]) -> bool:
    return "history" in _chat(item)


def read(item: Mapping[str, Any]) -> MovedChat:
    """Read one row. Raises KeyError, TypeError, ValueError, AttributeError if it is broken."""
    chat = _chat(item)
    found: list[MovedMessage] = []
    for index, message in enumerate(_way(chat)):
        text = "\n\n".join(_texts(message))
        role = message.get("role")
        if role in ("user", "assistant") and text.strip():
            side = "human" if role == "user" else "ai"
            found.append(MovedMessage(side, text, str(message.get("id") or index), moment(message.get("timestamp"))))
    created_at = moment(item.get("created_at") or chat.get("timestamp"))
    title, metadata = (
        str(item.get("title") or chat.get("title") or ""),
        {"archived": True} if item.get("archived") else {},
    )
    key = str(item.get("id") or chat.get("id") or f"{title}/{created_at}")
    return MovedChat(key, title, found, created_at, moment(item.get("updated_at")), metadata)


def _chat(item: Mapping[str, Any]) -> Mapping[str, Any]:
    chat = item.get("chat")
    return chat if isinstance(chat, Mapping) else item


def _way(chat: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages from the first to the current one; without a tree, the list that stands beside it."""
    history: Mapping[str, Any] = chat["history"]
    nodes: Mapping[str, Mapping[str, Any]] = history.get("messages") or {}
    at = history.get("currentId")
    if at not in nodes:
        return [*(chat.get("messages") or nodes.values())]
    way: dict[str, Mapping[str, Any]] = {}
    while at is not None and at in nodes and at not in way:
        way[at] = nodes[at]
        at = nodes[at].get("parentId")
    return [*reversed(way.values())]


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content") or ""
    if isinstance(content, str):
        yield without(content, _DETAILS, "</details>")
    else:
        yield from (str(part["text"]) for part in content if part.get("type") == "text")
    for file in message.get("files") or ():
        yield f"[{file.get('name') or file.get('type') or 'file'}]"
