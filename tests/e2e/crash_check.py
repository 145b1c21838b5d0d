"""What must be true of a run that was killed while it was on its way, and what of that is merely counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

from tests.e2e.crash_client import Body, Event, Followed, text_of, texts, told
from tests.e2e.crash_endpoint import line

CUT_OFF = "may or may not have taken effect"
RESTARTED = "The sandbox had ended and was restarted"
"""Stands before what the next command says."""
DIED_FIRST = "The sandbox ended unexpectedly"
"""The sandbox noticed the end of its parent before that was gone: a result like any other, of a call that was cut."""
Shape = list[tuple[Any, ...]]


@dataclass
class Findings:
    """Sums over runs. ``failures`` says in words what should not have been."""

    runs: int = 0
    attempts: int = 0
    interrupted_calls: int = 0
    without_effect: int = 0
    """Interrupted calls that had none."""
    duplicates: int = 0
    lost_events: int = 0
    only_in_values: int = 0
    """Messages that a client saw in a snapshot alone: they were written, and the process died before it told of them."""
    connections: int = 0
    events: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counted = [f"{name.name.replace('_', ' ')}: {getattr(self, name.name)}" for name in fields(self)[:-1]]
        return "\n".join([", ".join(counted), *self.failures])


def shape(messages: Sequence[Body]) -> Shape:
    """Types, texts and tool calls."""
    return [
        (
            message["type"],
            text_of(message),
            [(call["name"], call["args"]) for call in message.get("tool_calls") or ()],
        )
        for message in messages
    ]


def check_run(found: Findings, followed: Followed, run: Body) -> None:
    """The run itself, and what a client saw of it."""
    found.runs += 1
    found.attempts += run["attempt"]
    found.connections += followed.connections
    found.events += len(followed.events)
    where = f"run {followed.run_id} of thread {followed.thread_id}: "
    if run["status"] != "success":
        found.failures.append(f"{where}it ended with {run['status']}: {run['error']}")
    if followed.events[-1].data.get("status") != run["status"]:
        found.failures.append(f"{where}its stream said {followed.events[-1].data}")
    ids = [event.id for event in followed.events]
    if any(later <= earlier for earlier, later in pairwise(ids)):
        found.failures.append(f"{where}ids do not grow")
    if sum(event.name == "end" for event in followed.events) != 1:
        found.failures.append(f"{where}more than one end")


def check_seen(found: Findings, followed: Followed, messages: Sequence[Body]) -> None:
    """What the client put together from events is the transcript as it was when the run had ended."""
    wanted = {message["id"]: text_of(message) for message in messages}
    seen = texts(followed.events)
    where = f"run {followed.run_id} of thread {followed.thread_id}, {followed.connections} connections: "
    for message_id in wanted.keys() | seen.keys():
        if seen.get(message_id) != wanted.get(message_id):
            found.lost_events += 1
            found.failures.append(
                f"{where}the client saw {seen.get(message_id)!r} for {wanted.get(message_id)!r} ({message_id}) in "
                + ", ".join(map(_summary, followed.events))
            )
    heard = told(followed.events)
    found.only_in_values += sum(
        message["id"] not in heard for message in messages[_begin(followed, messages) :] if message["type"] != "human"
    )


def check_transcript(found: Findings, thread_id: str, messages: Sequence[Body], undisturbed: Shape) -> list[int]:
    """As that of an undisturbed run, save for calls that were cut; returns their numbers."""
    cut: list[int] = []
    calls = 0
    actual = shape(messages)
    for entry in actual:
        if entry[0] == "tool":
            calls += 1
            if CUT_OFF in entry[1] or DIED_FIRST in entry[1]:
                cut.append(calls)
    found.interrupted_calls += len(cut)
    found.failures.extend(f"thread {thread_id}: {text}" for text in _differences(actual, undisturbed))
    return cut


def check_lines(found: Findings, thread_id: str, lines: Counter[str], calls: int, cut: Sequence[int]) -> None:
    """Each call had its effect once; one that was cut, at most once."""
    for number in range(1, calls + 1):
        times = lines.pop(line(number), 0)
        found.duplicates += times > 1
        found.without_effect += times == 0 and number in cut
        if times > 1 or (times == 0 and number not in cut):
            found.failures.append(f"thread {thread_id}: {line(number)} took effect {times} times")
    if lines:
        found.failures.append(f"thread {thread_id}: there are other lines: {dict(lines)}")


def _summary(event: Event) -> str:
    """Such as ``12 values(22 to a4a4)``: an event's place and name, and the messages that it holds."""
    messages: list[Body] = []
    if event.name == "values":
        messages = event.data.get("messages", [])
    elif event.name == "messages":
        messages = [event.data[0]]
    ids = f"({len(messages)} to {str(messages[-1]['id'])[:12]})" if messages else ""
    return f"{event.id} {event.name}{ids}"


def _differences(actual: Shape, wanted: Shape) -> Iterator[str]:
    if len(actual) != len(wanted):
        yield f"{len(actual)} messages instead of {len(wanted)}: {[entry[:2] for entry in actual]}"
    for number, (one, other) in enumerate(zip(actual, wanted, strict=False)):
        told = one[0] == other[0] == "tool" and (
            CUT_OFF in one[1] or DIED_FIRST in one[1] or (RESTARTED in one[1] and one[1].endswith(other[1]))
        )
        if one != other and not told:
            yield f"message {number} is {one} instead of {other}"


def _begin(followed: Followed, messages: Sequence[Body]) -> int:
    """Where the run's own messages begin: behind its person's."""
    return max((number + 1 for number, message in enumerate(messages) if message["type"] == "human"), default=0)
