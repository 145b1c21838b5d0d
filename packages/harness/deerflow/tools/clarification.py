"""``ask_clarification``: a question to the user that ends the turn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from pydantic import Field
from typing_extensions import TypedDict

from deerflow.tools.decorator import IN_SANDBOX

NAME = "ask_clarification"

_ICONS = {
    "missing_info": "❓",
    "ambiguous_requirement": "🤔",
    "approach_choice": "🔀",
    "risk_confirmation": "⚠️",
    "suggestion": "💡",
}


class Question(TypedDict):
    """``kind`` is the ``clarification_type`` of the call; empty texts: it gave none."""

    question: str
    context: str
    kind: str
    options: list[str]


@tool(NAME, return_direct=True)
def ask_clarification_tool(
    question: Annotated[str, Field(description="One specific question")],
    clarification_type: Literal[
        "missing_info", "ambiguous_requirement", "approach_choice", "risk_confirmation", "suggestion"
    ],
    tool_call_id: Annotated[str, InjectedToolCallId],
    context: Annotated[str | None, Field(description="Why you ask")] = None,
    options: Annotated[list[str] | None, Field(description="Answers to choose from")] = None,
) -> ToolMessage:
    """Ask the user, and wait for the answer, when you cannot go on without it. Call it alone."""
    args = {"question": question, "clarification_type": clarification_type, "context": context, "options": options}
    return clarification_message(args, tool_call_id)


ask_clarification_tool.metadata = IN_SANDBOX


def clarification_message(args: Mapping[str, Any], tool_call_id: str | None) -> ToolMessage:
    """The question as the user sees it. Its id follows from the call, so that a repeated call replaces it."""
    text = clarification_text(args)
    key = tool_call_id or hashlib.sha256(text.encode()).hexdigest()[:16]
    return ToolMessage(content=text, id=f"clarification:{key}", name=NAME, tool_call_id=tool_call_id or key)


def question(args: Mapping[str, Any]) -> Question:
    """What a call asks."""
    question, context, kind = (str(args.get(key) or "") for key in ("question", "context", "clarification_type"))
    return {"question": question, "context": context, "kind": kind, "options": _options(args.get("options"))}


def clarification_text(args: Mapping[str, Any]) -> str:
    """Icon, context, question and numbered options."""
    asked = question(args)
    icon, context, text = _ICONS.get(asked["kind"], "❓"), asked["context"], asked["question"]
    lines = [f"{icon} {context}", "", text] if context else [f"{icon} {text}"]
    if asked["options"]:
        lines += ["", *(f"  {number}. {option}" for number, option in enumerate(asked["options"], 1))]
    return "\n".join(lines)


def _options(value: Any) -> list[str]:
    """A list of texts; models also send JSON in a string, or one plain text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value] if value.strip() else []
    if value is None or value == "":
        return []
    return [_option(option) for option in value] if isinstance(value, list | tuple) else [_option(value)]


def _option(value: Any) -> str:
    """Return an option as a text; models also send an object with its label and description."""
    if not isinstance(value, Mapping):
        return str(value)
    keys = (("label", "title", "name", "text", "option", "value"), ("description", "details", "detail", "hint"))
    parts = (next((str(value[key]) for key in names if value.get(key)), "") for names in keys)
    return " – ".join(part for part in parts if part) or json.dumps(value, ensure_ascii=False)
