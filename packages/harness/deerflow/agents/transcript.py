"""The compile step: what a model is asked, computed from what was really said.

A thread's messages are never rewritten. Before each model call they become a :class:`Transcript`, every middleware's
pure ``compile`` may add to it, and the result is the request. Equal input compiles to equal bytes, so a provider's
prompt cache holds: what is known about a turn is recorded once, in its human message's ``additional_kwargs``, and
what is only true now goes to the ``tail``, behind everything that stays.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, NotRequired, TypeGuard, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from typing_extensions import TypedDict

from deerflow.security.door import EXACT, UNTRUSTED, Untrusted, admit
from deerflow.security.text import disarmed
from deerflow.subagents.task import TASK_RESULT
from deerflow.tools.shell import RESULTS_DIRECTORY

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

TURN_IDS = ("turn_id", "run_id")
"""Keys in a human message's ``additional_kwargs`` that tell its turn: the first is there if another run began that."""
NETWORK_DECISION = "network_decision"
"""Name of the message that says what the person decided about a host that commands could not reach."""

SUMMARY, IMAGES, CHECKS, RECEIPTS = "summary", "viewed_images", "acceptance_checks", "receipts"

QUOTING_NAMES = frozenset({SUMMARY, IMAGES, CHECKS, RECEIPTS, TASK_RESULT})
"""Names of messages of the system that quote others below their first line."""

INJECTED_NAMES = REMINDER_NAMES | QUOTING_NAMES | {NETWORK_DECISION}
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
    """The messages since the turn began: with the person's last message, or the first of those that belong to the same turn as it
    (they steered it, or answered the agent's question). Everything if no person spoke."""
    begins, turn_id = 0, None
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not is_person(message):
            continue
        own = next(filter(None, map(message.additional_kwargs.get, TURN_IDS)), message.id or index)
        if turn_id is not None and own != turn_id:
            break
        begins, turn_id = index, own
    return messages[begins:]


def is_person(message: Any) -> TypeGuard[HumanMessage]:
    """Whether a person wrote it."""
    return isinstance(message, HumanMessage) and message.name not in INJECTED_NAMES


# telling what the system says from what tools, files and web pages only pretend it to say ----------------------------

NOTE = "note"
"""Key in a tool result's ``additional_kwargs``: what the system has to say about it, apart from the tool's own words."""

REFUSED = "refused"
"""Key in a tool result's ``additional_kwargs``: why the call was not made."""

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
        exact = EXACT in message.additional_kwargs
        content = _admitted(message.content, source and str(source), mark, exact)
        if note:
            text = system_note(str(note), mark)
            content = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
        if content == message.content:
            return message
        return message.model_copy(update={"content": content, "additional_kwargs": {_DONE: True}})
    if not isinstance(message, HumanMessage) or message.text.startswith(f"<system-{mark}>"):
        return message
    if message.name in REMINDER_NAMES or message.name == NETWORK_DECISION:
        return message.model_copy(update={"content": system_note(message.text, mark)})
    return _quoting(message, mark) if message.name in QUOTING_NAMES else message


def _quoting(message: HumanMessage, mark: str) -> HumanMessage:
    """Return a message whose first line is the system's, and whose rest is what it quotes: without forged tags, fenced if foreign."""
    source = message.additional_kwargs.get(UNTRUSTED)
    if isinstance(message.content, list):
        head, *rest = message.content
        first = {"type": "text", "text": system_note(head if isinstance(head, str) else str(head.get("text")), mark)}
        return message.model_copy(update={"content": [first, *(_quoted(block, source, mark) for block in rest)]})
    head, _, rest = message.content.partition("\n")
    quoted = _quoted(rest.strip("\n"), source, mark)
    return message.model_copy(
        update={"content": f"{system_note(head, mark)}\n{quoted}" if quoted else system_note(head, mark)}
    )


def _quoted(content: Any, source: str | None, mark: str) -> Any:
    if source:
        return _admitted(content, str(source), mark, True)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return {**content, "text": _quoted(content["text"], None, mark)}
    return disarmed(content, foreign=True, mark=mark) if isinstance(content, str) else content


def _admitted(content: Any, source: str | None, mark: str, exact: bool) -> Any:
    if isinstance(content, str):
        return _text(content, source, mark, exact)
    if isinstance(content, list):
        return [_admitted(block, source, mark, exact) for block in content]
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return {**content, "text": _admitted(content["text"], source, mark, exact)}
    return content


@lru_cache(maxsize=256)
def _text(text: str, source: str | None, mark: str, exact: bool) -> str:
    """Kept, since every request holds the results of all earlier ones: with other letters than ASCII's a megabyte takes 0.1 s."""
    return admit(Untrusted(text, source), mark, exact=exact) if source else disarmed(text)


# what stands in requests for the older part of a thread --------------------------------------------------------------

SUMMARY_HEADER = "Here is a summary of the conversation to date:"
COMPACTION = "compaction"
"""Key in the ``additional_kwargs`` of a person's ``/compact`` and of what answers it: no part of the conversation."""
KEPT_OF_LONG = 300
"""Characters at each end of a long result or argument that was shortened."""
_WHERE = re.compile(re.escape(RESULTS_DIRECTORY) + r"/[\w-]+\.txt")


class Summary(TypedDict):
    """How requests are made from here on; the newest one of a thread holds.

    Args:
        upto: id of the last message that ``text`` stands for; "": none.
        pinned: ids of messages up to there that requests keep as they are.
        skills: texts of skills that were read up to there, by path; they stand behind the summary.
        shortened_upto: id of the last message whose long results and arguments are shortened; "": none.
        before: tokens of the request without it, as counted then.
        after: tokens with it.
    """

    upto: str
    text: str
    pinned: list[str]
    skills: dict[str, str]
    shortened_upto: str
    before: int
    after: int
    made_at: NotRequired[str]
    run_id: NotRequired[str]


def newest_summary(summaries: Sequence[Summary], messages: Sequence[AnyMessage]) -> Summary | None:
    """The last summary that fits these messages: a branch has its own, and messages can be deleted."""
    if not summaries:
        return None
    ids = {message.id for message in messages}
    ends = ("upto", "shortened_upto")
    return next((s for s in reversed(summaries) if all(s[end] in ids for end in ends if s[end])), None)


def summary_marks(summaries: Sequence[Summary], messages: Sequence[AnyMessage]) -> dict[str, Summary]:
    """Where summaries stand for messages of this branch, by id of the last of these; of several the newest."""
    ids = {message.id for message in messages}
    return {summary["upto"]: summary for summary in summaries if summary["text"] and summary["upto"] in ids}


def summarized(messages: Sequence[AnyMessage], summary: Summary | None) -> Sequence[AnyMessage]:
    """The messages of a request: pinned ones, the summary, and what came after it."""
    if any(COMPACTION in message.additional_kwargs for message in messages[:-1]):
        messages = [*(m for m in messages[:-1] if COMPACTION not in m.additional_kwargs), messages[-1]]
    if summary is None:
        return messages
    places = {message.id: place for place, message in enumerate(messages) if message.id}
    first_whole = places.get(summary["shortened_upto"], -1) + 1
    messages = [*map(shortened, messages[:first_whole]), *messages[first_whole:]]
    if summary["upto"] not in places:
        return messages
    end = places[summary["upto"]] + 1
    while end < len(messages) and messages[end].id is None and messages[end].name == IMAGES:
        end += 1
    before, pinned = messages[:end], set(summary["pinned"])
    skills = [f'<skill path="{path}">\n{text}\n</skill>' for path, text in summary["skills"].items()]
    text = "\n\n".join([SUMMARY_HEADER, summary["text"], *skills])
    foreign = any(UNTRUSTED in message.additional_kwargs for message in before)
    kwargs = {UNTRUSTED: SUMMARY} if foreign else {}
    return [
        *(message for message in before if message.id in pinned),
        HumanMessage(content=text, name=SUMMARY, additional_kwargs=kwargs),
        *messages[end:],
    ]


def shortened(message: AnyMessage) -> AnyMessage:
    """A tool result or a call's arguments by their first and last characters, if they are long. A pure function."""
    if isinstance(message, ToolMessage) and (text := _ends(message.text, _WHERE)) is not None:
        return message.model_copy(update={"content": text})
    if isinstance(message, AIMessage) and any(_ends(v) for call in message.tool_calls for v in call["args"].values()):
        calls = [{**call, "args": {k: _ends(v) or v for k, v in call["args"].items()}} for call in message.tool_calls]
        return message.model_copy(update={"tool_calls": calls})
    return message


def _ends(text: Any, where: re.Pattern[str] | None = None) -> str | None:
    """None if it is short."""
    if not isinstance(text, str) or len(text) <= 3 * KEPT_OF_LONG:
        return None
    found = where.search(text) if where else None
    rest = f" The whole is in {found[0]}." if found else ""
    left_out = len(text) - 2 * KEPT_OF_LONG
    return (
        f"{text[:KEPT_OF_LONG]}\n[... {left_out} characters of this older text left out.{rest}]\n{text[-KEPT_OF_LONG:]}"
    )
