"""Chats as Claude exports them: ``conversations.json``, each with ``chat_messages`` in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deerflow_app.moving_in.threads import MovedChat, MovedMessage, moment

ORIGIN = "claude"


def is_it(item: Mapping[str, Any]) -> bool:
    return "chat_messages" in item


def read(item: Mapping[str, Any]) -> MovedChat:
    """Read one conversation. Raises KeyError, TypeError, ValueError, AttributeError if it is broken."""
    found: list[MovedMessage] = []
    for index, message in enumerate(item["chat_messages"]):
        text = "\n\n".join(_texts(message))
        if text.strip():
            role = "human" if message["sender"] == "human" else "ai"
            found.append(MovedMessage(role, text, str(message.get("uuid") or index), moment(message.get("created_at"))))
    created_at, updated_at = moment(item.get("created_at")), moment(item.get("updated_at"))
    key = str(item.get("uuid") or f"{item.get('name')}/{item.get('created_at')}")
    return MovedChat(key, str(item.get("name") or ""), found, created_at, updated_at)


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    blocks = [block["text"] for block in message.get("content") or () if block.get("type") == "text"]
    yield from blocks or [str(message.get("text") or "")]
    for attached in message.get("attachments") or ():
        yield f"[{attached.get('file_name') or 'file'}]\n{attached.get('extracted_content') or ''}"
    for file in message.get("files") or ():
        yield f"[{file.get('file_name') or 'file'}]"
