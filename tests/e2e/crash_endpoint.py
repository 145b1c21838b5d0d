"""A model whose answer follows from the transcript alone, so that a run gets the same one however often it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bench.replies import Delay, Reply, Text, ToolCalls
from bench.request_log import Record
from bench.scenarios import fitted, text_of
from bench.scripted_openai import ScriptedOpenAI

FILE = "calls.log"
_TASK = re.compile(r"append (\d+) lines")
_CUT_IN_SECONDS = 0.03
"""How long a command goes on after its effect, so that a kill meets both halves of a call."""


def task(calls: int) -> str:
    return f"Please append {calls} lines, one by one."


def line(number: int) -> str:
    return f"call-{number}"


class CallsEndpoint(ScriptedOpenAI):
    """Asks for one ``bash`` call after the other, each appending ``call-N`` to a file, then says a final word.

    Args:
        between: seconds between two pieces of an answer.
    """

    def __init__(self, *, between: float = 0.002) -> None:
        super().__init__()
        self._between = between

    @property
    def answers(self) -> int:
        """How many there were."""
        return len(self.records)

    def reply_to(self, record: Record) -> Reply:
        asked = _asked(record.body)
        if asked is None or not record.body.get("tools"):
            return super().reply_to(record)
        wanted, done = asked
        return Delay(0.0, _step(record.body, wanted, done), self._between)


def _asked(request: Mapping[str, Any]) -> tuple[int, int] | None:
    """How many calls the newest task wants, and how many have a result."""
    done = 0
    for message in reversed(request["messages"]):
        if message["role"] == "tool":
            done += 1
        elif message["role"] == "user" and (found := _TASK.search(text_of(message))):
            return int(found[1]), done
    return None


def _step(request: Mapping[str, Any], wanted: int, done: int) -> Reply:
    if done >= wanted:
        return Text(f"All {wanted} lines are there: I wrote them one after the other, as you wished.")
    number = done + 1
    command = f"echo {line(number)} >> {FILE}; sleep {_CUT_IN_SECONDS}; echo wrote {line(number)}"
    call = fitted(request["tools"], "bash", {"description": f"append line {number}", "command": command})
    return ToolCalls(call, text=f"Now I append line {number} of {wanted} to the file.")
