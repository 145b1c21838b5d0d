"""What stands in requests for the older part of a thread. The stored messages stay whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NotRequired

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from typing_extensions import TypedDict

from deerflow.agents.transcript import IMAGES, SUMMARY
from deerflow.tools.shell import RESULTS_DIRECTORY

HEADER = "Here is a summary of the conversation to date:"
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


def newest(summaries: Sequence[Summary], messages: Sequence[AnyMessage]) -> Summary | None:
    """The last summary that fits these messages: a branch has its own, and messages can be deleted."""
    if not summaries:
        return None
    ids = {message.id for message in messages}
    ends = ("upto", "shortened_upto")
    return next((s for s in reversed(summaries) if all(s[end] in ids for end in ends if s[end])), None)


def marks(summaries: Sequence[Summary], messages: Sequence[AnyMessage]) -> dict[str, Summary]:
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
    text = "\n\n".join([HEADER, summary["text"], *skills])
    return [
        *(message for message in before if message.id in pinned),
        HumanMessage(content=text, name=SUMMARY),
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
