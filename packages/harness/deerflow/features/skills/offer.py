"""The part of skills that agents get: their list in the system prompt, their tools, and what ``/name`` in a message activates."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deerflow.agents.turn import SKILL
from deerflow.capability import AgentSpec, AskedAgent, Offer
from deerflow.config import switches
from deerflow.features.skills.for_run import SkillsForRun
from deerflow.features.skills.own import OwnSkills

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.tools import BaseTool

    from deerflow.features.skills.catalog import SkillCatalog, SkillSet

ACTIVATED = re.compile(r"/([^\s/]+)(?=\s|\Z)")
"""A message that may activate the skill of that name."""


class SkillsOffer(Offer):
    """Args:
    catalog: of the installation.
    """

    before_files = True

    def __init__(self, catalog: SkillCatalog) -> None:
        self.catalog = catalog

    async def supply(self, asked: AskedAgent) -> SkillsForRun:
        return SkillsForRun(
            await self._usable(asked),
            OwnSkills(self.catalog.paths, asked.principal.user_id),
            self.catalog.paths.secrets_key_file,
            author=asked.options.agent_name or "agent",
            may_suggest=asked.config.skill_evolution.enabled,
        )

    async def called(self, asked: AskedAgent, text: str) -> Mapping[str, Any]:
        if (named := ACTIVATED.match(text)) is None:
            return {}
        skill = (await self._usable(asked)).enabled.get(named[1])
        if skill is None:
            return {}
        return {SKILL: {"name": skill.name, "file": skill.file, "allowed_tools": skill.allowed_tools}}

    def tools(self, agent: AgentSpec) -> Sequence[BaseTool]:
        given = _skills_of(agent)
        if given is None or switches.SKILLS in agent.switched_off:
            return ()
        from deerflow.features.skills.tools import skill_tools

        return skill_tools(given, evolution=agent.config.skill_evolution.enabled and not agent.is_subagent)

    def slots(
        self, agent: AgentSpec, tools: Sequence[BaseTool], filled: Mapping[str, AgentMiddleware[Any, Any, Any]]
    ) -> Mapping[str, AgentMiddleware[Any, Any, Any]]:
        from deerflow.features.skills.middleware import SkillsMiddleware

        return {"skills": SkillsMiddleware()}

    def prompt(self, agent: AgentSpec, tools: Collection[str]) -> str:
        given = _skills_of(agent)
        if given is None or not {"read_file", "bash"}.intersection(tools):
            return ""
        programs = (name.partition(" ")[0] for name in agent.programs)
        network = ["network"] if agent.config.sandbox.network.mode != "none" else []
        return given.working({*tools, *programs, *network}).prompt

    async def _usable(self, asked: AskedAgent) -> SkillSet:
        found = await asyncio.to_thread(self.catalog.load, asked.config, asked.principal.user_id)
        return found.only(asked.options.available_skills)


def _skills_of(agent: AgentSpec) -> SkillSet | None:
    """Return the skills of an agent; None: it has none, and could not read them."""
    given = agent.of(SkillsForRun)
    if given is None or not agent.has_sandbox:
        return None
    return replace(given.usable.only(agent.skills), brief=agent.is_small)
