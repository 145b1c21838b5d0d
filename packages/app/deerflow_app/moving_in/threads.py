"""The one way in for conversations of all sources, and how their messages are made."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from deerflow.errors import NotFoundError, RequestError
from deerflow.identity import Principal
from deerflow.storage.sql import storable_text
from deerflow.storage.threads import shortened
from deerflow.threads.adoption import UNFINISHED, AdoptedConversation, adopt
from deerflow.threads.checkpoint import provisional_title
from deerflow.threads.service import ThreadService
from deerflow_app.moving_in.report import MoveReport

KIND = "threads"
NAMESPACE = uuid.UUID("6f1d7c52-7a0e-5b7e-9c55-6a1a3f0f6a41")
"""Of the ids of threads that come from chats."""
UNTITLED = "Untitled"


@dataclass(frozen=True, slots=True)
class MovedMessage:
    """A message of either side. ``key`` names it within its chat."""

    role: Literal["human", "ai"]
    text: str
    key: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MovedChat:
    """A chat of another program, one way through its tree. ``key`` names it among the person's."""

    key: str
    title: str
    messages: Sequence[MovedMessage]
    created_at: datetime | None
    updated_at: datetime | None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


class ThreadImport:
    """Args:
    dry_run: say what would come, and write nothing.
    """

    def __init__(self, threads: ThreadService, report: MoveReport, *, dry_run: bool) -> None:
        self._threads = threads
        self._report = report
        self._dry_run = dry_run

    async def take(self, principal: Principal, given: AdoptedConversation) -> bool:
        """Make a thread of ``given`` and count it. Return False if it did not come."""
        name = given.title
        try:
            came = await (
                self._would_come(principal, given) if self._dry_run else adopt(self._threads, principal, given)
            )
        except RequestError as error:
            self._report.add(KIND, "not", name, str(error))
            return False
        self._report.add(KIND, "came" if came else "there")
        return came

    async def chat(self, principal: Principal, origin: str, chat: MovedChat) -> None:
        """Make a thread of a chat. One without messages does not come."""
        if not chat.messages:
            self._report.add(KIND, "not", one_line(chat.title), "it has no messages.")
            return
        thread_id = str(uuid.uuid5(NAMESPACE, f"{origin}/{principal.user_id}/{chat.key}"))
        now = datetime.now(UTC)
        moments = [each.at for each in chat.messages if each.at is not None]
        created_at = chat.created_at or min(moments, default=now)
        updated_at = chat.updated_at or max(moments, default=created_at)
        messages = [message_of(each, thread_id) for each in chat.messages]
        title = titled(chat.title, messages)
        await self.take(
            principal, AdoptedConversation(thread_id, origin, title, messages, created_at, updated_at, chat.metadata)
        )

    async def _would_come(self, principal: Principal, given: AdoptedConversation) -> bool:
        try:
            known = await self._threads.repository.get(principal, given.thread_id)
        except NotFoundError:
            return True
        return UNFINISHED in known.metadata


def message_of(each: MovedMessage, thread_id: str) -> AnyMessage:
    """Return a message of a chat as one of a thread, whose id follows from where it stands."""
    message_id = str(uuid.uuid5(NAMESPACE, f"{thread_id}/{each.key}"))
    stamp: dict[str, Any] = {} if each.at is None else {"timestamp": each.at.isoformat()}
    made = HumanMessage if each.role == "human" else AIMessage
    return made(content=storable_text(each.text).strip("\n"), id=message_id, additional_kwargs=stamp)


def without(text: str, opening: re.Pattern[str], closing: str) -> str:
    """Return ``text`` without the parts that begin with ``opening`` and end with ``closing``, in linear time."""
    kept: list[str] = []
    at = 0
    while (found := opening.search(text, at)) is not None and (end := text.find(closing, found.end())) >= 0:
        kept.append(text[at : found.start()])
        at = end + len(closing)
    return "".join((*kept, text[at:]))


def titled(title: Any, messages: Sequence[AnyMessage]) -> str:
    """Return a thread's title; without one how its first message begins."""
    first = next((message for message in messages if isinstance(message, HumanMessage)), HumanMessage(""))
    return one_line(title) or provisional_title(first) or UNTITLED


def one_line(text: Any) -> str:
    """Return a name on one line."""
    return shortened(str(text or ""))


def moment(given: Any) -> datetime | None:
    """Return a moment that stands there in seconds, milliseconds or more since 1970, or as ISO 8601, in UTC if it names no zone."""
    try:
        if isinstance(given, str) and not given.replace(".", "", 1).isdigit():
            found = datetime.fromisoformat(given)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        seconds = float(given)
        while seconds > 1e11:
            seconds /= 1000
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (TypeError, ValueError, OverflowError, OSError):
        return None
