"""Telling what the system says from what tools, files and web pages only pretend it to say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from deerflow.agents.transcript import REMINDER_NAMES
from deerflow.security.door import Untrusted, admit
from deerflow.security.text import disarmed

NOTE = "note"
"""Key in a tool result's ``additional_kwargs``: what the system has to say about it, apart from the tool's own words."""

UNTRUSTED = "untrusted"
"""Key in a tool result's ``additional_kwargs``: where its text came from that neither the person nor the sandbox wrote."""

_DONE = "marked"
"""A chain may be fused in several groups, each of which marks."""


def thread_mark(messages: Iterable[AnyMessage]) -> str:
    """The random part of this thread's tags. Nobody in the sandbox knows the first message's id, which it follows from."""
    first = next((message.id for message in messages if isinstance(message, HumanMessage) and message.id), "") or ""
    return hashlib.sha256(first.encode()).hexdigest()[:8]


def system_note(text: str, mark: str) -> str:
    """``text`` as the system's own."""
    return f"<system-{mark}>\n{text}\n</system-{mark}>"


def marked(message: AnyMessage, mark: str) -> AnyMessage:
    """A reminder or a note as the system's own; a tool's words without what looks like that, and fenced if they are from outside."""
    if isinstance(message, ToolMessage):
        note = message.additional_kwargs.get(NOTE)
        if message.additional_kwargs.get(_DONE):
            return message
        source = message.additional_kwargs.get(UNTRUSTED)
        content = _admitted(message.content, source and str(source), mark)
        if note:
            text = system_note(str(note), mark)
            content = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
        if content == message.content:
            return message
        return message.model_copy(update={"content": content, "additional_kwargs": {_DONE: True}})
    if (
        isinstance(message, HumanMessage)
        and message.name in REMINDER_NAMES
        and not message.text.startswith(f"<system-{mark}>")
    ):
        return message.model_copy(update={"content": system_note(message.text, mark)})
    return message


def _admitted(content: Any, source: str | None, mark: str) -> Any:
    if isinstance(content, str):
        return _text(content, source, mark)
    if isinstance(content, list):
        return [_admitted(block, source, mark) for block in content]
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return {**content, "text": _admitted(content["text"], source, mark)}
    return content


@lru_cache(maxsize=256)
def _text(text: str, source: str | None, mark: str) -> str:
    """Kept, since every request holds the results of all earlier ones: with other letters than ASCII's a megabyte takes 0.1 s."""
    return admit(Untrusted(text, source), mark) if source else disarmed(text)
