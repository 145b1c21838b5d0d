"""Chats as ChatGPT exports them: ``conversations.json``, each a tree of nodes with ``current_node``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deerflow_app.moving_in.threads import MovedChat, MovedMessage, moment, without

ORIGIN = "chatgpt"
_ROLES = {"user": "human", "assistant": "ai"}
_TEXTS = ("text", "multimodal_text")
"""Kinds of content that people read, and not the thoughts and calls of models."""
_MARK, _END = re.compile("\ue200"), "\ue201"
"""Around references to results of searches, which are not in the export."""


def is_it(item: Mapping[str, Any]) -> bool:
    return "mapping" in item


def read(item: Mapping[str, Any]) -> MovedChat:
    """Read one conversation. Raises KeyError, TypeError, ValueError, AttributeError if it is broken."""
    messages = [found for node in _way(item) if (found := _message(node)) is not None]
    metadata = {"archived": True} if item.get("is_archived") else {}
    created_at, updated_at = moment(item.get("create_time")), moment(item.get("update_time"))
    key = str(item.get("conversation_id") or item.get("id") or f"{item.get('title')}/{item.get('create_time')}")
    return MovedChat(key, str(item.get("title") or ""), messages, created_at, updated_at, metadata)


def _way(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the nodes from the first to the current one; without that, to the last that was made."""
    nodes: Mapping[str, Mapping[str, Any]] = item["mapping"]
    at: Any = item.get("current_node")
    if at not in nodes:
        at = max(nodes, key=lambda key: (nodes[key].get("message") or {}).get("create_time") or 0, default=None)
    way: dict[str, Mapping[str, Any]] = {}
    while at is not None and at in nodes and at not in way:
        way[at] = {"id": at, **nodes[at]}
        at = nodes[at].get("parent")
    return [*reversed(way.values())]


def _message(node: Mapping[str, Any]) -> MovedMessage | None:
    message = node.get("message") or {}
    role = _ROLES.get(str((message.get("author") or {}).get("role")))
    content, metadata = message.get("content") or {}, message.get("metadata") or {}
    hidden = metadata.get("is_visually_hidden_from_conversation") or message.get("recipient", "all") != "all"
    if role is None or hidden or content.get("content_type", "text") not in _TEXTS:
        return None
    text = without("\n\n".join(_parts(content)), _MARK, _END)
    if not text.strip():
        return None
    return MovedMessage("human" if role == "human" else "ai", text, str(node["id"]), moment(message.get("create_time")))


def _parts(content: Mapping[str, Any]) -> Iterator[str]:
    for part in content.get("parts") or ():
        if isinstance(part, str):
            yield part
        elif isinstance(part.get("text"), str):  # what was spoken
            yield part["text"]
        else:
            yield f"[{str(part.get('content_type') or 'file').removesuffix('_asset_pointer').replace('_', ' ')}]"
