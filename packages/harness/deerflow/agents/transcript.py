"""The compile step: what a model is asked, computed from what was really said.

A thread's messages are never rewritten. Before each model call they become a :class:`Transcript`, every middleware's
pure ``compile`` may add to it, and the result is the request. Equal input compiles to equal bytes, so a provider's
prompt cache holds: what is known about a turn is recorded once, in its human message's ``additional_kwargs``, and
what is only true now goes to the ``tail``, behind everything that stays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from langchain_core.messages import AnyMessage, HumanMessage

from deerflow.subagents.task import TASK_RESULT

T = TypeVar("T")
R = TypeVar("R")

REMINDER_NAMES = frozenset(
    {
        "loop_warning",
        "todo_reminder",
        "todo_completion_reminder",
        "empty_answer_reminder",
        "running_processes",
        "summary_request",
        "spending_limit",
    }
)
"""Names of human messages that stand at the end of one request only."""

SUMMARY, IMAGES, CHECKS = "summary", "viewed_images", "acceptance_checks"

INJECTED_NAMES = REMINDER_NAMES | {SUMMARY, IMAGES, CHECKS, TASK_RESULT}
"""Names of human messages that no person wrote."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages of a request: ``messages`` keep their bytes over turns, ``tail`` holds for this call only.

    Args:
        state: the thread's, to read other parts of it than messages.
    """

    messages: tuple[AnyMessage, ...]
    tail: tuple[HumanMessage, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def with_messages(self, messages: Iterable[AnyMessage]) -> Transcript:
        return replace(self, messages=tuple(messages))

    def with_reminder(self, text: str, *, name: str) -> Transcript:
        """Add an ephemeral note at the tail: a human message, since some providers refuse late system messages."""
        return replace(self, tail=(*self.tail, HumanMessage(content=text, name=name)))

    def request(self) -> list[AnyMessage]:
        return [*self.messages, *self.tail]


class MessageMemo(Generic[T, R]):
    """Remembers what a pure function made of each message, so that a compile step costs only what is new."""

    def __init__(self, render: Callable[..., R], size: int = 4096) -> None:
        self._render = render
        self._size = size
        self._rendered: OrderedDict[int, tuple[T, R]] = OrderedDict()

    def __call__(self, message: T, *facts: str) -> R:
        """``facts`` are the same for all messages of a thread."""
        known = self._rendered.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        rendered = self._render(message, *facts)
        self._rendered[id(message)] = (message, rendered)
        if len(self._rendered) > self._size:
            self._rendered.popitem(last=False)
        return rendered


def current_turn(messages: Sequence[Any]) -> Sequence[Any]:
    """The messages since a person last spoke, that message included; everything if no person did."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, HumanMessage) and message.name not in INJECTED_NAMES:
            return messages[index:]
    return messages
