"""Holds the agent to the tools that the skill which the person activated allows, and counts which skills are read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import Middleware, ToolHandler
from deerflow.agents.middlewares.results import ToolResult, error_result
from deerflow.agents.transcript import INJECTED_NAMES
from deerflow.agents.turn import DURING_WORK, FACTS, SKILL
from deerflow.config import Paths
from deerflow.skills.catalog import NO_SKILLS
from deerflow.skills.own import OwnSkills

ALWAYS = frozenset({"ask_clarification", "present_files", "write_todos", "describe_skill", "tool_search"})
"""Tools that change nothing outside of the conversation."""
OTHER_NAMES = {
    "read": "read_file",
    "write": "write_file",
    "edit": "str_replace",
    "webfetch": "web_fetch",
    "websearch": "web_search",
    "todowrite": "write_todos",
}
"""What tools are called in skills made for other agents, in lower case, and here."""
_SHELL_WORDS = frozenset(";&|<>$`\n\\(){}")
"""A command with one of these may be several: no pattern for commands allows it."""


class SkillsMiddleware(Middleware):
    """A skill is active from the message that names it to the end of its turn."""

    def __init__(self, paths: Paths) -> None:
        super().__init__()
        self._paths = paths

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        context, call = request.runtime.context, request.tool_call
        skill = active_skill(request.state["messages"] if isinstance(request.state, Mapping) else ())
        path = str(call["args"].get("path") or "")
        skills = context.skills if context is not None else NO_SKILLS
        reads = call["name"] == "read_file" and path.startswith(f"{skills.root}/")
        if skill and skill["allowed_tools"] is not None and not reads and not _is_allowed(call, skill["allowed_tools"]):
            allowed = ", ".join(skill["allowed_tools"]) or "none"
            text = f"Error: The active skill {skill['name']} allows only these tools: {allowed}."
            return error_result(call, text)
        if (
            context is not None
            and reads
            and (used := next((one for one in skills.enabled.values() if one.file == path), None))
        ):
            await asyncio.to_thread(OwnSkills(self._paths, context.principal.user_id).count, used.name)
        return await handler(request)


def active_skill(messages: Sequence[Any]) -> Mapping[str, Any] | None:
    """The skill that the current turn's message activated, or a message that came during its work."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and message.name not in INJECTED_NAMES:
            facts = message.additional_kwargs.get(FACTS) or {}
            if SKILL in facts or not facts.get(DURING_WORK):
                return facts.get(SKILL)
    return None


def _is_allowed(call: Mapping[str, Any], allowed: Sequence[str]) -> bool:
    if call["name"] in ALWAYS:
        return True
    for entry in allowed:
        name, _, pattern = entry.removesuffix(")").partition("(")
        name = OTHER_NAMES.get(name.lower(), name if name != name.title() else name.lower())
        if name == "bash" and call["name"] in ("read_process", "kill_process"):
            return True
        if name == call["name"] and (not pattern or _matches(str(call["args"].get("command") or ""), pattern)):
            return True
    return False


def _matches(command: str, pattern: str) -> bool:
    """Whether a command is one of ``git:*``, ``git *`` or ``git status``, and nothing besides."""
    if _SHELL_WORDS.intersection(command):
        return False
    prefix = pattern.removesuffix(":*")
    return fnmatchcase(command, pattern) or (prefix != pattern and (command + " ").startswith(prefix + " "))
