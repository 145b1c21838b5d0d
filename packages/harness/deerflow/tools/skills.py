"""The tools for skills: finding those that the prompt does not list, running their scripts with secrets, suggesting new ones."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from typing import Annotated, Literal

from langchain_core.tools import BaseTool
from pydantic import Field

from deerflow.errors import RequestError
from deerflow.security.text import inline
from deerflow.skills.catalog import SkillSet
from deerflow.tools.decorator import RUNS_COMMANDS, Runtime, async_tool
from deerflow.tools.shell import cut_middle, settings

INTERPRETERS = {".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node"}


@async_tool("describe_skill")
async def describe_skill_tool(query: str, runtime: Runtime) -> str:
    """Find skills that are not listed, by words of their names and descriptions. Read the SKILL.md of the one that fits."""
    found = await asyncio.to_thread(runtime.context.skills.search, query)
    return "\n".join(f"- {skill.file}: {inline(skill.description, 1024)}" for skill in found) or "No skill fits."


@async_tool("run_skill_script", metadata=RUNS_COMMANDS)
async def run_skill_script_tool(
    skill: str,
    script: Annotated[str, Field(description="Its path in the skill, such as scripts/run.py")],
    runtime: Runtime,
    arguments: list[str] | None = None,
) -> str:
    """Run a script of a skill that needs secrets: the script gets them in its environment, you never see them.
    It starts in the workspace. Everything else runs with bash."""
    context = runtime.context
    chosen = context.skills.enabled.get(skill)
    if chosen is None or context.skill_secrets is None:
        return f"Error: There is no skill {skill!r} that is on."
    file = posixpath.normpath(posixpath.join(chosen.path, script))
    there = chosen.directory / file.removeprefix(f"{chosen.path}/")
    if not file.startswith(f"{chosen.path}/") or not await asyncio.to_thread(there.is_file):
        return f"Error: The skill {skill!r} has no file {script!r}."
    try:
        secrets = await context.skill_secrets(chosen)
        if missing := [name for name in chosen.secrets if name not in secrets]:
            names = ", ".join(missing)
            return f"Error: {names} is not set. Ask the user to run: deerflow skills secret {skill} {missing[0]}"
        interpreter = INTERPRETERS.get(posixpath.splitext(file)[1])
        command = shlex.join([*([interpreter] if interpreter else []), file, *(arguments or [])])
        result = await (await context.sandbox()).exec(
            command, env=secrets, timeout=settings(runtime).sandbox.command_timeout
        )
    except RequestError as error:
        return f"Error: {error}"
    output = result.output
    for value in secrets.values():
        output = output.replace(value, "[secret]")
    code = f"\nExit Code: {result.exit_code}" if result.exit_code else ""
    return cut_middle((output.rstrip("\n") or "(no output)") + code, settings(runtime).sandbox.bash_output_max_chars)


@async_tool("skill_manage")
async def skill_manage_tool(
    action: Literal["create", "edit", "patch", "delete", "write_file", "remove_file"],
    name: str,
    runtime: Runtime,
    content: Annotated[str | None, Field(description="Of create, edit and write_file: the whole text")] = None,
    path: Annotated[str | None, Field(description="Of write_file and remove_file, such as scripts/run.py")] = None,
    find: Annotated[str | None, Field(description="Of patch: text in SKILL.md")] = None,
    replace: Annotated[str | None, Field(description="Of patch: what stands there instead")] = None,
) -> str:
    """Suggest a skill of the user's own, or a change of one, when a way of working will be needed again: it took many steps,
    overcame errors, or the user corrected you. Prefer patch to edit. The user reviews each suggestion before it counts."""
    if runtime.context.suggest_skill is None:
        return "Error: Skills cannot be changed here."
    try:
        await runtime.context.suggest_skill(
            {"action": action, "name": name, "content": content, "path": path, "find": find, "replace": replace}
        )
    except RequestError as error:
        return f"Error: {error}"
    return f"Suggested. It counts when the user has accepted it. ({action} {name})"


def skill_tools(skills: SkillSet, *, evolution: bool) -> list[BaseTool]:
    """Those that an agent with these skills needs."""
    wanted = (
        (describe_skill_tool, skills.is_cut),
        (run_skill_script_tool, any(skill.secrets for skill in skills.enabled.values())),
        (skill_manage_tool, evolution),
    )
    return [tool for tool, needed in wanted if needed]
