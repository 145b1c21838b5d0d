"""Which subagents there are: the built-in ones and those of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from deerflow.config import AppConfig
from deerflow.config.schema import NOT_FOR_SUBAGENTS
from deerflow.sandbox.policy import is_host_bash_allowed

INHERIT = "inherit"
SHELL_TOOLS = ("bash", "ls", "read_file", "write_file", "str_replace")


@dataclass(frozen=True)
class SubagentConfig:
    """A subagent as it is run.

    Args:
        tools: names of the lead's tools that it has; None: all of them.
        disallowed_tools: names of those that it never has.
        skills: names; None: the lead's; empty: none.
        model: a configured model's name, or ``inherit``.
        max_turns: answers of its model; the last one is given without tools.
        timeout_seconds: how long it may work at a stretch; waiting for a person does not count.
    """

    name: str
    description: str
    system_prompt: str
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = NOT_FOR_SUBAGENTS
    skills: tuple[str, ...] | None = None
    model: str = INHERIT
    max_turns: int = 50
    timeout_seconds: int = 900


GENERAL_PURPOSE = SubagentConfig(
    name="general-purpose",
    description="research and work of several steps, with all tools",
    system_prompt="""You are a subagent: another agent gave you one task, which you complete alone and decisively. You cannot ask back; decide what is
open, and say what you assumed. Your last message is all that the other agent gets. It holds: what you did, what you found,
the files you made or changed, what is unfinished or doubtful, and for web sources [citation:Title](URL).""",
    max_turns=100,
)
BASH = SubagentConfig(
    name="bash",
    description="shell work of several commands: builds, tests, conversions, git",
    system_prompt="""You are a subagent for commands: another agent gave you one task, which you complete alone with the shell. You cannot ask back.
Run commands that need each other one by one, others side by side; look at both output streams. Destroy nothing that the task
does not name. Your last message is all that the other agent gets: for each command what it did and how it ended, and the
files you made or changed.""",
    tools=SHELL_TOOLS,
    max_turns=60,
)


def subagents_of(config: AppConfig) -> Mapping[str, SubagentConfig]:
    """The subagents that a lead agent may call, by name.

    A built-in one wins over a custom one of its name. ``timeout_seconds`` and ``max_turns`` of the section are those of built-in
    ones; entries of ``agents`` change any. ``bash`` is missing where commands are not allowed.
    """
    section = config.subagents
    custom = {name: SubagentConfig(name=name, **vars(entry)) for name, entry in section.custom_agents.items()}
    built_in = {
        each.name: replace(each, timeout_seconds=section.timeout_seconds, max_turns=section.max_turns or each.max_turns)
        for each in (GENERAL_PURPOSE, *([BASH] if is_host_bash_allowed(config) else []))
    }
    found = {
        **built_in,
        **{name: entry for name, entry in custom.items() if name not in (GENERAL_PURPOSE.name, BASH.name)},
    }
    for name in found.keys() & section.agents.keys():
        changes = {key: value for key, value in vars(section.agents[name]).items() if value is not None}
        found[name] = replace(found[name], **changes)
    return found
