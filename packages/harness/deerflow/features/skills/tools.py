"""The tools for skills: finding those that the prompt does not list, running their scripts with secrets, suggesting new ones."""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from langchain_core.tools import BaseTool
from pydantic import Field

from deerflow.errors import RequestError
from deerflow.features.skills.catalog import SkillSet
from deerflow.features.skills.for_run import SkillsForRun
from deerflow.features.skills.parser import Skill
from deerflow.sandbox.interface import WORKSPACE
from deerflow.security.text import inline
from deerflow.tools.decorator import RUNS_COMMANDS, Runtime, async_tool
from deerflow.tools.shell import absolute, cut_middle, network_note, settings

_WORD = r"""(?:[^\s'"\\$`;&|<>(){}*?\[\]~!#]++|'[^']*+'|"[^"\\$`!]*+")++"""
_GAP = r"(?:[ \t]|\\\n)+"
_ALONE = re.compile(rf"(?:cd{_GAP}({_WORD})(?:{_GAP})?&&(?:{_GAP})?)?({_WORD}(?:{_GAP}{_WORD})*)(?:{_GAP}2>&1)?")
"""A command that is one program with its arguments as they stand: nothing in it means something to a shell."""
_LONGEST = 10_000
"""Characters of a command that is looked at."""
_PROGRAMS = r"(?:python[\d.]*|bash|sh|node)"
_STARTS = rf"(?:^|[;&|(\n]|\b{_PROGRAMS})[ \t]{{0,20}}[\"']?"
_THERE = (
    rf"[^\n]{{0,200}}(?:&&|;)[ \t]{{0,20}}(?:{_PROGRAMS}[ \t]{{1,20}})?[\"']?(?!/)[\w./-]{{1,200}}\.(?:py|sh|m?js)\b"
)
"""A script, named from the directory that a ``cd`` before it leads to."""

INTERPRETERS = {".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node"}


@async_tool("describe_skill")
async def describe_skill_tool(query: str, runtime: Runtime) -> str:
    """Find skills that are not listed, by words of their names and descriptions. Read the SKILL.md of the one that fits."""
    given = runtime.context.of(SkillsForRun)
    found = await asyncio.to_thread(given.usable.search, query) if given is not None else []
    return "\n".join(f"- {skill.file}: {inline(skill.description, 1024)}" for skill in found) or "No skill fits."


@async_tool("run_skill_script", metadata=RUNS_COMMANDS)
async def run_skill_script_tool(
    skill: str,
    script: Annotated[str, Field(description="Its path in the skill, such as scripts/run.py")],
    runtime: Runtime,
    arguments: list[str] | None = None,
    directory: Annotated[str, Field(description="Where it starts; default: where the shell is")] = "",
    timeout: Annotated[int | None, Field(description="Seconds, default 600")] = None,
) -> str:
    """Run a script of a skill that needs secrets: the script gets them in its environment, you never see them.
    A bash command that is such a script and nothing else runs the same way. Everything else runs with bash."""
    context = runtime.context
    given = context.of(SkillsForRun)
    chosen = given.usable.enabled.get(skill) if given is not None else None
    if given is None or chosen is None:
        return f"Error: There is no skill {skill!r} that is on."
    file = posixpath.normpath(posixpath.join(chosen.path, script))
    there = chosen.directory / file.removeprefix(f"{chosen.path}/")
    if not file.startswith(f"{chosen.path}/") or not await asyncio.to_thread(there.is_file):
        return f"Error: The skill {skill!r} has no file {script!r}."
    try:
        secrets = await given.secrets(chosen)
        if lacking := without_secrets(chosen, secrets):
            return f"Error: {lacking}"
        interpreter = INTERPRETERS.get(posixpath.splitext(file)[1])
        command = shlex.join([*([interpreter] if interpreter else []), file, *(arguments or [])])
        sandbox = await context.sandbox()
        result = await sandbox.exec(
            command,
            env=secrets,
            cwd=absolute(directory) or None,
            timeout=timeout or settings(runtime).sandbox.command_timeout,
        )
    except RequestError as error:
        return f"Error: {error}"
    output = result.output
    for value in secrets.values():
        output = output.replace(value, "[secret]")
    code = f"\nExit Code: {result.exit_code}" if result.exit_code else ""
    config = settings(runtime)
    shown = cut_middle((output.rstrip("\n") or "(no output)") + code, config.sandbox.bash_output_max_chars)
    note = network_note(output, sandbox, config)
    return f"{shown}\n[{note}]" if note else shown


def without_secrets(skill: Skill, secrets: Mapping[str, str]) -> str:
    """Return a sentence about the secrets that a skill's scripts need and do not have; empty if they have all."""
    missing = [name for name in skill.secrets if name not in secrets]
    if not missing:
        return ""
    return (
        f"{', '.join(missing)} is not set. Ask the user to set it on the skill's page (Settings, Skills), or to run: "
        f"deerflow skills secret {skill.name} {missing[0]}"
    )


def script_call(command: str, skills: Iterable[Skill]) -> tuple[Skill, dict[str, Any]] | None:
    """Return the skill with secrets whose script a shell command runs, and the arguments of :func:`run_skill_script_tool` that do the same.

    None: the command is something else, or more than that, so that the secrets would reach what is not the skill's.
    """
    if len(command) > _LONGEST or (found := _ALONE.fullmatch(command.strip())) is None:
        return None
    directory = shlex.split(found[1])[0] if found[1] else ""
    words = shlex.split(found[2].replace("\\\n", " "))
    words = words[1:] if re.fullmatch(_PROGRAMS, posixpath.basename(words[0])) else words
    file = posixpath.normpath(posixpath.join(absolute(directory) or WORKSPACE, words[0])) if words else ""
    for skill in skills:
        if skill.secrets and file.startswith(f"{skill.path}/"):
            script = file.removeprefix(f"{skill.path}/")
            given: dict[str, Any] = {"skill": skill.name, "script": script, "arguments": words[1:]}
            return skill, {**given, "directory": directory} if directory else given
    return None


def runs_script_of(command: str, skills: Iterable[Skill]) -> Skill | None:
    """Return a skill with secrets of which a shell command runs something, however it does."""
    for skill in skills:
        path = re.escape(skill.path)
        if skill.secrets and re.search(rf"{_STARTS}{path}/|\bcd[ \t]{{1,20}}[\"']?{path}(?![\w-]){_THERE}", command):
            return skill
    return None


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
    given = runtime.context.of(SkillsForRun)
    if given is None or not given.may_suggest:
        return "Error: Skills cannot be changed here."
    try:
        await given.suggest(
            {"action": action, "name": name, "content": content, "path": path, "find": find, "replace": replace},
            runtime.context.thread_id,
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
