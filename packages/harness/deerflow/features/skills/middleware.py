"""Enforce what an activated skill allows, and run its scripts with its secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from langgraph.prebuilt.tool_node import ToolCallRequest

from deerflow.agents.middlewares.base import (
    Middleware,
    ToolHandler,
    ToolResult,
    context_of,
    error_result,
    with_note,
    with_replaced,
)
from deerflow.agents.transcript import is_person
from deerflow.agents.turn import DURING_WORK, FACTS, SKILL
from deerflow.errors import RequestError
from deerflow.features.skills.catalog import NO_SKILLS
from deerflow.features.skills.for_run import SkillsForRun
from deerflow.features.skills.parser import Skill
from deerflow.features.skills.tools import run_skill_script_tool, runs_script_of, script_call, without_secrets
from deerflow.sandbox.interface import WORKSPACE

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
"""Names of tools in skills made for other agents, in lower case, and their names here."""
_SHELL_WORDS = frozenset(";&|<>$`\n\\(){}")
"""A command with one of these may be several: no pattern for commands allows it."""
RUN_SCRIPT = run_skill_script_tool.name


class SkillsMiddleware(Middleware):
    """A skill is active from the message that names it to the end of its turn."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolResult:
        context, call = context_of(request), request.tool_call
        skill = active_skill(request.state["messages"])
        path = str(call["args"].get("path") or "")
        given = context.of(SkillsForRun) if context is not None else None
        skills = given.usable if given is not None else NO_SKILLS
        reads = call["name"] == "read_file" and path.startswith(f"{skills.root}/")
        if skill and skill["allowed_tools"] is not None and not reads and not _is_allowed(call, skill["allowed_tools"]):
            allowed = ", ".join(skill["allowed_tools"]) or "none"
            return error_result(call, f"Error: The active skill {skill['name']} allows only these tools: {allowed}.")
        used = next((one for one in skills.enabled.values() if reads and one.file == path), None)
        if used is not None and given is not None:
            await asyncio.to_thread(given.own.count, used.name)
        if call["name"] == "bash" and given is not None and any(one.secrets for one in skills.enabled.values()):
            return await _with_secrets(request, handler, given, skill)
        return await handler(request)


async def _with_secrets(
    request: ToolCallRequest, handler: ToolHandler, given: SkillsForRun, active: Mapping[str, Any] | None
) -> ToolResult:
    """Make a command that is a script of a skill with secrets the call of ``run_skill_script`` that it stands for.

    What judges and records calls is inside of this, so that it sees that call, as if the model had made it. A command that runs such a
    script in another way is left as it is, and its result says that the script got no secrets.
    """
    call, skills = request.tool_call, given.usable.enabled.values()
    command = str(call["args"].get("command") or "")
    found = script_call(command, skills)
    skill = found[0] if found is not None else runs_script_of(command, skills)
    if skill is None:
        return await handler(request)
    runner = next((tool for tool in request.runtime.tools or () if tool.name == RUN_SCRIPT), None)
    if found is None or call["args"].get("run_in_background"):
        why = "A command that is one script of the skill and nothing else (no pipe, no redirection, no variable) gets them."
    elif runner is None or not _may_run(skill, active):
        why = f"Only {RUN_SCRIPT} gives them, which cannot be called here."
    else:
        why = await _lacks(skill, given)
    if found is None or runner is None or why:
        return with_note(await handler(request), f"The script ran without the keys of the skill {skill.name}. {why}")
    context = context_of(request)
    there = (
        {"directory": WORKSPACE} if context is not None and context.subagent is not None else {}
    )  # where its commands begin
    args = {**there, **found[1], **({"timeout": limit} if (limit := call["args"].get("timeout")) else {})}
    made = request.override(tool_call={**call, "name": RUN_SCRIPT, "args": args}, tool=runner)
    return with_replaced(await handler(made), lambda message: message.model_copy(update={"name": call["name"]}))


def _may_run(skill: Skill, active: Mapping[str, Any] | None) -> bool:
    """Return whether the active skill lets the model run a script of ``skill``, as its own scripts, with secrets."""
    allowed = active["allowed_tools"] if active is not None else None
    if active is None or allowed is None or active["name"] == skill.name:
        return True
    return _is_allowed({"name": RUN_SCRIPT, "args": {}}, allowed)


async def _lacks(skill: Skill, given: SkillsForRun) -> str:
    """Return why a skill's scripts do not get all its secrets; empty if they do."""
    try:
        return without_secrets(skill, await given.secrets(skill))
    except RequestError as error:
        return str(error)


def active_skill(messages: Sequence[Any]) -> Mapping[str, Any] | None:
    """The skill that the current turn's message activated, or a message that came during its work."""
    for message in reversed(messages):
        if is_person(message):
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
    """Return whether a command is one of ``git:*``, ``git *`` or ``git status``, and nothing besides."""
    if _SHELL_WORDS.intersection(command):
        return False
    prefix = pattern.removesuffix(":*")
    return fnmatchcase(command, pattern) or (prefix != pattern and (command + " ").startswith(prefix + " "))
