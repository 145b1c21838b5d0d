"""The compile step: what a model is asked, computed from what was really said.

A thread's messages are never rewritten. Before each model call they become a :class:`Transcript`, every middleware's
pure ``compile`` may add to it, and the result is the request. Equal input compiles to equal bytes, so a provider's
prompt cache holds: what is known about a turn is recorded once, in its human message's ``additional_kwargs``, and
what is only true now goes to the ``tail``, behind everything that stays.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, NotRequired, TypeGuard, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from typing_extensions import TypedDict

from deerflow.models.derived import Derived
from deerflow.models.messages import CALL_TOOL
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
    """Keep what a pure function made of each message while the message is in use, so that a compile step costs only what is new.

    Args:
        render: its result holds no reference to the message, unless it is the message.
    """

    def __init__(self, render: Callable[..., R]) -> None:
        self._render = render
        self._rendered: Derived[Any] = Derived()

    def __call__(self, message: T, *facts: str) -> R:
        """Return the rendered message. ``facts`` are the same for all messages of a thread."""
        known = self._rendered.get(message, None)
        if known is not None:
            kept: Any = message if known is _UNCHANGED else known
            return kept
        rendered = self._render(message, *facts)
        if not isinstance(message, dict):  # a provider's own tool: no weak reference to it is possible
            self._rendered.put(message, None, _UNCHANGED if rendered is message else rendered)
        return rendered

    def __len__(self) -> int:
        return len(self._rendered)


_UNCHANGED = object()
"""Stands for the message itself in a memo, which would keep it alive otherwise."""


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

DECISION = "decision"
"""Key in a tool result's ``additional_kwargs``: that the call was not made as it stands in the model's message, but with what a
person made of its arguments, ``{"type": "edit", "args"}``, or not at all, since they answered it, ``{"type": "respond", "message"}``."""

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
    if message.name == SUMMARY and isinstance(message.content, list):
        return message.model_copy(update={"content": "\n\n".join(_of_summary(message.content, source, mark))})
    if isinstance(message.content, list):
        head, *rest = message.content
        first = {"type": "text", "text": system_note(head if isinstance(head, str) else str(head.get("text")), mark)}
        return message.model_copy(update={"content": [first, *(_quoted(block, source, mark) for block in rest)]})
    head, _, rest = message.content.partition("\n")
    quoted = _quoted(rest.strip("\n"), source, mark)
    return message.model_copy(
        update={"content": f"{system_note(head, mark)}\n{quoted}" if quoted else system_note(head, mark)}
    )


def _of_summary(blocks: Any, source: str | None, mark: str) -> Iterator[str]:
    """The parts of a summary: its header, what the model wrote, and what the person said, which is not foreign."""
    header, text, *said = blocks
    yield system_note(header["text"], mark)
    yield _quoted(text["text"], source, mark)
    for block in said:
        head, _, words = block["text"].partition("\n")
        yield f"{system_note(head, mark)}{words}"


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

SUMMARY_HEADER = "Here is a summary of the conversation to date"
SAID_HEADER = "Messages of the user, answered earlier, kept word for word:"
SAID = "said"
"""Key in a block of a summary that holds the person's own words."""
COMPACTION = "compaction"
"""Key in the ``additional_kwargs`` of a person's ``/compact`` and of what answers it: no part of the conversation."""
KEPT_OF_LONG = 300
"""Characters at each end of a long result or argument that was shortened."""
LONG = 8 << 10
"""Bytes from which on an argument of a call that is done, or what a person wrote, may stand in a file instead."""
KEPT_OF_WORDS = 2000
"""Characters at each end of a person's message that stands in a file."""
ARGUMENTS = "arguments_in"
"""Key in a tool result's ``additional_kwargs``: path of the file that holds the long arguments of its call."""
_WHERE = re.compile(re.escape(RESULTS_DIRECTORY) + r"/[\w-]+\.txt")


class Summary(TypedDict):
    """How requests are made from here on; the newest one of a thread holds.

    Args:
        upto: id of the last message that ``text`` stands for; "": none.
        pinned: ids of the person's messages up to there that requests keep word for word, inside the summary.
        open: those of them that were not answered yet when it was made: they stay messages, behind it.
        history: path of the file with the conversation up to there; "": none.
        files: paths of files with the whole of messages that are cut, by their id: of the person, and long results; "": none.
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
    open: NotRequired[list[str]]
    history: NotRequired[str]
    files: NotRequired[dict[str, str]]
    made_at: NotRequired[str]
    run_id: NotRequired[str]


def newest_summary(summaries: Sequence[Summary], messages: Sequence[AnyMessage]) -> Summary | None:
    """The last summary that fits these messages: a branch has its own, and messages can be deleted."""
    if not summaries:
        return None
    ids = {message.id for message in messages}

    def fits(summary: Summary) -> bool:
        named = {summary["upto"], summary["shortened_upto"], *summary.get("files", ())} - {""}
        return named <= ids

    return next(filter(fits, reversed(summaries)), None)


def summary_marks(summaries: Sequence[Summary], messages: Sequence[AnyMessage]) -> dict[str, Summary]:
    """Where summaries stand for messages of this branch, by id of the last of these; of several the newest."""
    ids = {message.id for message in messages}
    return {summary["upto"]: summary for summary in summaries if summary["text"] and summary["upto"] in ids}


def summarized(
    messages: Sequence[AnyMessage], summary: Summary | None, stored: Sequence[AnyMessage] = ()
) -> Sequence[AnyMessage]:
    """The messages of a request: the summary with what the person said, and what came after it.

    Args:
        stored: the thread's messages, for the person's own words.
    """
    if any(COMPACTION in message.additional_kwargs for message in messages[:-1]):
        messages = [*(m for m in messages[:-1] if COMPACTION not in m.additional_kwargs), messages[-1]]
    if summary is None:
        return messages
    places = {message.id: place for place, message in enumerate(messages) if message.id}
    first_whole = places.get(summary["shortened_upto"], -1) + 1
    files = summary.get("files", {})
    raw: dict[str | None, str] = {message.id: message.text for message in (*messages, *stored)}
    messages = [
        *(shortened(message, files.get(message.id or "", "")) for message in messages[:first_whole]),
        *messages[first_whole:],
    ]
    if files:
        words = _cut_words_of(files, raw, thread_mark(stored or messages))
        messages = [_with_words(m, raw[m.id], words[m.id]) if is_person(m) and m.id in words else m for m in messages]
        raw |= words
    if summary["upto"] not in places:
        return messages
    end = places[summary["upto"]] + 1
    while end < len(messages) and messages[end].id is None and messages[end].name == IMAGES:
        end += 1
    before, kept = messages[:end], set(summary.get("open", summary["pinned"][-1:]))
    said = [raw[one] for one in summary["pinned"] if one in raw and one not in kept]
    kwargs = {UNTRUSTED: SUMMARY} if any(UNTRUSTED in message.additional_kwargs for message in before) else {}
    # With the first message's id, of which tags get their mark.
    first = next((message.id for message in messages if isinstance(message, HumanMessage) and message.id), None)
    content = _summary_blocks(summary, said)
    return [
        HumanMessage(content=content, id=first, name=SUMMARY, additional_kwargs=kwargs),
        *(message for message in before if message.id in kept and message.name != SUMMARY),
        *messages[end:],
    ]


def _summary_blocks(summary: Summary, said: Sequence[str]) -> list[Any]:
    """Return the content of the message that stands for what was summarized: the summary with its skills, and the person's words."""
    skills = [f'<skill path="{path}">\n{text}\n</skill>' for path, text in summary["skills"].items()]
    where = f". All of it is in {path}: use grep" if (path := summary.get("history")) else ""
    texts = [f"{SUMMARY_HEADER}{where}:", "\n\n".join([summary["text"], *skills])]
    blocks: list[Any] = [{"type": "text", "text": text} for text in texts]
    if said:
        blocks.append({"type": "text", "text": "\n\n".join([SAID_HEADER, *said]), SAID: True})
    return blocks


def _cut_words_of(files: Mapping[str, str], raw: Mapping[str | None, str], mark: str) -> dict[str | None, str]:
    """Return the shortened texts of the person's messages that are kept in files, by their ids."""
    return {one: _cut_words(raw[one], path, mark) for one, path in files.items() if one in raw}


def _cut_words(text: str, path: str, mark: str) -> str:
    rest = f"The whole message is in {path}: use grep or read_file." if path else "The rest does not fit."
    kept = min(KEPT_OF_WORDS, len(text) // 4)
    note = system_note(f"{len(text) - 2 * kept} characters of this message are left out. {rest}", mark)
    return f"{text[:kept]}\n{note}\n{text[-kept:]}"


def _with_words(message: AnyMessage, raw: str, words: str) -> AnyMessage:
    """A person's message with other words; what the system says in front of them stays, and so do pictures."""
    content = message.content
    if isinstance(content, str):  # one that is cut already ends otherwise
        return (
            message.model_copy(update={"content": content.removesuffix(raw) + words})
            if content.endswith(raw)
            else message
        )
    own = [block for block in content if isinstance(block, dict) and block.get("text") and block["text"] in raw]
    if not own:
        return message
    cut = [{"type": "text", "text": words} if block is own[0] else block for block in content]
    return message.model_copy(update={"content": [block for block in cut if not any(block is one for one in own[1:])]})


def without_long_arguments(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Messages whose finished calls name the file of their long arguments instead of holding them. A pure function."""
    kept: dict[str | None, str] = {
        message.tool_call_id: str(message.additional_kwargs[ARGUMENTS])
        for message in messages
        if isinstance(message, ToolMessage) and ARGUMENTS in message.additional_kwargs
    }
    return [_pointing(message, kept) for message in messages] if kept else messages


def _pointing(message: AnyMessage, kept: Mapping[str | None, str]) -> AnyMessage:
    if not isinstance(message, AIMessage) or not any(call["id"] in kept for call in message.tool_calls):
        return message
    calls = [
        {**call, "args": _cut_args(call, kept[call["id"]])} if call["id"] in kept else call
        for call in message.tool_calls
    ]
    args = {call["id"]: call["args"] for call in calls}
    content = message.content
    if isinstance(content, list):
        content = [_cut_block(block, args) if isinstance(block, dict) else block for block in content]
    return message.model_copy(update={"tool_calls": calls, "content": content})


def _cut_block(block: dict[str, Any], args: Mapping[str | None, Any]) -> dict[str, Any]:
    """A provider's own block of a call, in the shapes of Anthropic and of OpenAI's responses."""
    if block.get("type") == "tool_use" and block.get("id") in args:
        return {**block, "input": args[block["id"]]}
    if block.get("type") == "function_call" and block.get("call_id") in args:
        return {**block, "arguments": json.dumps(args[block["call_id"]], ensure_ascii=False)}
    return block


def _cut_args(call: Mapping[str, Any], path: str) -> dict[str, Any]:
    args, inner = call["args"], call["args"].get("arguments")
    cut = {key: _ends(value, path=path) or value if is_long(value) else value for key, value in args.items()}
    if call["name"] == CALL_TOOL and isinstance(inner, Mapping):
        cut["arguments"] = _cut_args({"name": args.get("name"), "args": inner}, path)
    return cut


def is_long(value: Any) -> bool:
    """Return whether a text is so long that it may stand in a file."""
    return isinstance(value, str) and (
        len(value) >= LONG or 4 * len(value) >= LONG <= len(value.encode("utf-8", "replace"))
    )


def shortened(message: AnyMessage, path: str = "") -> AnyMessage:
    """A tool result or a call's arguments by their first and last characters, if they are long. A pure function.

    Args:
        path: of the file with the whole of it, where its text names none.
    """
    if isinstance(message, ToolMessage) and (text := _ends(message.text, _WHERE, path)) is not None:
        return message.model_copy(update={"content": text})
    if isinstance(message, AIMessage) and any(_ends(v) for call in message.tool_calls for v in call["args"].values()):
        calls = [{**call, "args": {k: _ends(v) or v for k, v in call["args"].items()}} for call in message.tool_calls]
        return message.model_copy(update={"tool_calls": calls})
    return message


def _ends(text: Any, where: re.Pattern[str] | None = None, path: str = "") -> str | None:
    """None if it is short."""
    if not isinstance(text, str) or len(text) <= 3 * KEPT_OF_LONG:
        return None
    found = where.search(text) if where else None
    path = found[0] if found else path
    rest = f" The whole is in {path}." if path else ""
    left_out = len(text) - 2 * KEPT_OF_LONG
    return (
        f"{text[:KEPT_OF_LONG]}\n[... {left_out} characters of this older text left out.{rest}]\n{text[-KEPT_OF_LONG:]}"
    )
