"""A turn in a chat: what it answers, for whom, where, and as which run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deerflow.features.channels.conversations import ChatConversation
from deerflow.features.channels.inbox import InboxRow
from deerflow.features.channels.lines import Line
from deerflow.features.channels.outbox import Target
from deerflow.features.channels.types import Place
from deerflow.identity import Principal


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A run that goes on in a chat.

    Args:
        rows: the messages or the click that it answers.
        principal: who wrote them.
        owner: of the thread, who acts; another person than ``principal`` in a shared chat.
        text, context: of a command, instead of the messages' own text.
        body: of a decision: what the run is started with.
    """

    line: Line
    rows: Sequence[InboxRow]
    principal: Principal
    owner: Principal
    conversation: ChatConversation
    run_id: str
    text: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Mapping[str, Any] | None = None
    said: Mapping[str, Any] | None = None
    """The person's message with its files, once they are here."""

    @property
    def is_own(self) -> bool:
        """Return whether the person writes in a thread of their own."""
        return self.owner.user_id == self.principal.user_id

    @property
    def place(self) -> Place:
        return self.rows[0].event.place

    @property
    def target(self) -> Target:
        return Target(self.line.id, self.place, self.rows[-1].event.wake)

    @property
    def thread_id(self) -> str:
        assert self.conversation.thread_id is not None
        return self.conversation.thread_id
