"""Conversations chosen by a marker in a user message, so that an agent can be driven without queueing replies.

``scenario:NAME`` names the conversation and ``key:ID`` its statistics. The last user message with a marker counts, so
a thread may change scenarios from turn to turn; the step inside one is the number of assistant messages behind it.

====================  =================================================================================
``plain[-N]``         N (40) pieces of text
``tools-N``           N successive ``bash`` calls ``echo i``, then the text
``ptools-N``          N ``bash`` calls in one assistant message, then the text
``write``             ``write_file``, then ``present_files``, then the text
``subagents[-N]``     N (3) ``task`` calls in one message, then the text; each prompt says ``scenario:plain``
``subtools-N``        3 ``task`` calls whose subagents each do ``tools-N``, then the text
``report``            a real analysis of an uploaded CSV file, see :mod:`bench.report_scenario`
====================  =================================================================================

A request without tools whose opening looks like a title, memory, suggestion or summary prompt gets a fixed answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import report_scenario
from bench.replies import Reply, Text, ToolCalls

SCENARIO = re.compile(r"scenario:([a-z0-9\-]+)")
KEY = re.compile(r"key:([A-Za-z0-9_\-]+)")
SUBAGENT_KEY = re.compile(r"-s\d+$")
AUXILIARY = (
    ("title", re.compile(r"\btitle\b|\bname this conversation\b", re.I), "Benchmark thread"),
    ("suggest", re.compile(r"suggest|follow-?up question", re.I), '["What next?", "Can you explain?", "Another way?"]'),
    ("memory", re.compile(r"\bmemor(y|ies)\b", re.I), '{"user":{},"history":{},"newFacts":[],"factsToRemove":[]}'),
    ("summary", re.compile(r"summar", re.I), "Summary: the user ran scenarios and all of them passed."),
)
BLANKS: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
REPORT_TEXT = "# Report\n" + "lorem ipsum dolor sit amet\n" * 40

Message = Mapping[str, Any]
Tool = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which conversation a request stands."""

    kind: str
    """``main``, ``sub`` (a subagent) or the name of an auxiliary prompt."""
    scenario: str | None
    key: str | None
    step: int


def locate(request: Mapping[str, Any]) -> Place:
    """Read markers and step from a decoded request."""
    messages: Sequence[Message] = request.get("messages") or ()
    scenario, key, step, direct = _marker(messages)
    if not request.get("tools") and not direct:
        opening = "\n".join(text_of(message)[:4000] for message in messages[:2])
        for kind, pattern, _ in AUXILIARY:
            if pattern.search(opening):
                return Place(kind, scenario, key, 0)
    return Place("sub" if key and SUBAGENT_KEY.search(key) else "main", scenario, key, step)


def answer(request: Mapping[str, Any], place: Place) -> Reply:
    """The scripted reply of the marked scenario; ``plain`` when none is marked."""
    for kind, _, text in AUXILIARY:
        if place.kind == kind:
            return Text(text, chunks=[text])
    tools: Sequence[Tool] = request.get("tools") or ()
    if place.scenario == "report":
        return report_scenario.answer(request.get("messages") or (), place.step, tools, fitted)
    base, _, argument = (place.scenario or "plain").partition("-")
    number = int(argument) if argument.isdigit() else None
    if base == "plain":
        return plain(number or 40)
    calls = _calls(base, number, place.step, tools, place.key or "nokey")
    return ToolCalls(*calls) if calls else plain(40)


def plain(pieces: int) -> Text:
    return Text(chunks=[f"tok{i % 100:02d} " for i in range(pieces)])


def text_of(message: Message) -> str:
    """The text of a message whose content may be a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return content if isinstance(content, str) else ""


def fitted(tools: Sequence[Tool], name: str, wanted: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Arguments that suit the schema in the request: unknown ones dropped, missing required ones filled."""
    for tool in tools:
        function = tool.get("function") or tool
        if function.get("name") == name:
            parameters = function.get("parameters") or {}
            properties = parameters.get("properties") or {}
            arguments = (
                {key: value for key, value in wanted.items() if key in properties} if properties else dict(wanted)
            )
            for key in parameters.get("required") or ():
                arguments.setdefault(key, BLANKS.get(properties.get(key, {}).get("type"), "x"))
            return name, arguments
    return name, dict(wanted)


def _marker(messages: Sequence[Message]) -> tuple[str | None, str | None, int, bool]:
    """Scenario, key, step, and whether the marker opens its message: a title prompt only quotes one."""
    step, direct = 0, False
    scenario = key = None
    for message in reversed(messages):
        if message.get("role") == "assistant" and scenario is None:
            step += 1
        elif message.get("role") == "user":
            text = text_of(message)
            if scenario is None and (found := SCENARIO.search(text)):
                scenario, direct = found.group(1), not text[: found.start()].strip()
            if key is None and (found := KEY.search(text)):
                key = found.group(1)
            if scenario and key:
                break
    return scenario, key, step, direct


def _calls(
    base: str, number: int | None, step: int, tools: Sequence[Tool], key: str
) -> list[tuple[str, dict[str, Any]]]:
    if base == "tools" and step < (number or 1):
        return [_bash(tools, step + 1)]
    if base == "ptools" and step == 0:
        return [_bash(tools, i + 1) for i in range(number or 4)]
    if base == "write" and step == 0:
        path = "/mnt/user-data/outputs/report.md"
        return [fitted(tools, "write_file", {"description": "write the report", "path": path, "content": REPORT_TEXT})]
    if base == "write" and step == 1:
        return [fitted(tools, "present_files", {"filepaths": ["/mnt/user-data/outputs/report.md"]})]
    if base == "subagents" and step == 0:
        return [_task(tools, i + 1, "plain", key) for i in range(number or 3)]
    if base == "subtools" and step == 0:
        return [_task(tools, i + 1, f"tools-{number or 3}", key) for i in range(3)]
    return []


def _bash(tools: Sequence[Tool], number: int) -> tuple[str, dict[str, Any]]:
    return fitted(tools, "bash", {"description": f"step {number}", "command": f"echo {number}"})


def _task(tools: Sequence[Tool], number: int, scenario: str, key: str) -> tuple[str, dict[str, Any]]:
    prompt = f"scenario:{scenario} key:{key}-s{number} Do part {number} of the work and report."
    wanted = {"description": f"part {number}", "prompt": prompt, "subagent_type": "general-purpose"}
    return fitted(tools, "task", wanted)
