"""The skills of one person's agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deerflow.features.skills.catalog import SkillSet
from deerflow.features.skills.own import OwnSkills
from deerflow.features.skills.parser import Skill
from deerflow.features.skills.secrets import SkillSecrets


@dataclass(frozen=True, slots=True)
class SkillsForRun:
    """The skills that a person's agent may use: a :class:`deerflow.capability.Supply`.

    Args:
        usable: those that the agent may use.
        own: those of the person.
        key_file: decrypts their secrets.
        author: named in what the agent suggests.
        may_suggest: the agent may suggest changes (``skill_evolution``).
    """

    usable: SkillSet
    own: OwnSkills
    key_file: Path
    author: str = "agent"
    may_suggest: bool = False

    @property
    def id(self) -> str:
        return self.usable.id

    @property
    def mounts(self) -> Mapping[str, Path]:
        return self.usable.mounts

    async def secrets(self, skill: Skill) -> Mapping[str, str]:
        """Return what a skill's scripts get in their environment; no model, log or shell sees it. Raises as SkillSecrets.given does."""
        return await asyncio.to_thread(SkillSecrets(self.own, self.key_file).given, skill)

    async def suggest(self, change: Mapping[str, str | None], thread_id: str) -> None:
        """Put a change of the person's skills before the person. Raises RequestError."""
        await asyncio.to_thread(self.own.suggest, change, author=self.author, thread_id=thread_id)
