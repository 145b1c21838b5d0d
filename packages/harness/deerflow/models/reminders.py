"""Telling a person's message from a note that a middleware put at the end of one request."""

from __future__ import annotations

from langchain_core.messages import BaseMessage, HumanMessage


def is_reminder(message: BaseMessage) -> bool:
    """Whether ``message`` holds for this request only: notes have a name, and no id since they are never stored."""
    return isinstance(message, HumanMessage) and bool(message.name) and message.id is None
