"""What is told apart in messages: notes for one request from a person's words, broken tool arguments from sound ones.

LangChain completes cut JSON when it merges the chunks of a stream, so of a file whose text hit the output limit half
would be written as if it were whole. A suffix that matches nothing makes the call the invalid one that it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

MARK = "\ue0de\ue0ad"
"""Private characters before what is appended, so that a model's own words can be quoted without it."""


def is_reminder(message: BaseMessage) -> bool:
    """Whether ``message`` is a middleware's note for this request only: it has a name, and no id since it is never stored."""
    return isinstance(message, HumanMessage) and bool(message.name) and message.id is None


def spoiler(arguments: str) -> str:
    """Return what to append to ``arguments`` so that they stay broken; empty if they are sound or cannot be mistaken.

    A bracket that matches nothing is where LangChain gives up at once. It would take other broken JSON off from the end, one
    character after the other, and read the rest again each time: a quarter of a minute for 60 kB.
    """
    try:
        json.loads(arguments or "{}", strict=False)
        return ""
    except ValueError:
        is_inside, closers = _open_at_the_end(arguments)
        if closers is None:
            return ""
        return MARK + '"' * is_inside + ("}" if closers[-1:] == ["]"] else "]")


def _open_at_the_end(text: str) -> tuple[bool, list[str] | None]:
    """Return whether a string is open where ``text`` ends, and the brackets that close what is; None: one of its own matches nothing."""
    is_inside = is_escaped = False
    closers: list[str] = []
    for char in text:
        if is_inside:
            is_inside = char != '"' or is_escaped
            is_escaped = char == "\\" and not is_escaped
        elif char == '"':
            is_inside = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
        elif char in "}]" and (not closers or closers.pop() != char):
            return False, None
    return is_inside, closers


def as_written(arguments: str) -> str:
    """Broken arguments as the model wrote them."""
    return arguments.rpartition(MARK)[0] if MARK in arguments[-len(MARK) - 3 :] else arguments


def meant_arguments(arguments: str) -> dict[str, Any] | None:
    """Return what arguments mean that are JSON, but no object: ``null`` none, a text the object in it; None if nothing."""
    for _ in range(2):
        try:
            value = json.loads(arguments, strict=False)
        except ValueError:
            return None
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        if not isinstance(value, str):
            return None
        arguments = value
    return None


CALL_TOOL = "call_tool"
"""The tool that calls another one by its name."""


def called(call: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the tool that a call is for, and its arguments: ``call_tool`` names another one. None: they are no object."""
    args = call["args"]
    if call["name"] != CALL_TOOL:
        return call["name"], args
    name, given = str(args.get("name") or ""), args.get("arguments")
    if isinstance(given, str):
        return name, meant_arguments(given or "null")
    if given is None:  # models also write them beside the name
        return name, {key: value for key, value in args.items() if key not in ("name", "arguments")}
    return name, given if isinstance(given, dict) else None


def as_called(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as people see it: as one of the tool that it is for."""
    name, args = called(call) if call.get("name") == CALL_TOOL else ("", None)
    return {**call, "name": name, "args": args or {}} if name else {**call}


def spoilers(arguments: Mapping[int, str]) -> dict[int, str]:
    """What to append to the arguments of the calls in one stream, by index, before it ends."""
    return {index: suffix for index, text in arguments.items() if (suffix := spoiler(text))}
