"""The skills of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deerflow.skills.catalog import SkillSet
from deerflow.skills.own import OwnSkills
from deerflow.skills.parser import Skill
from deerflow.skills.secrets import SkillSecrets


@dataclass(frozen=True, slots=True)
class SkillsForRun:
    """The skills that the agent of a run may use, in a thread of their person.

    Args:
        usable: those that the agent may use.
        key_file: decrypts their secrets.
        author: named in what the agent suggests.
        may_suggest: the agent may suggest changes (``skill_evolution``).
    """

    usable: SkillSet
    own: OwnSkills
    key_file: Path
    thread_id: str
    author: str
    may_suggest: bool

    async def secrets(self, skill: Skill) -> Mapping[str, str]:
        """Return what a skill's scripts get in their environment; no model, log or shell sees it. Raises as SkillSecrets.given does."""
        return await asyncio.to_thread(SkillSecrets(self.own, self.key_file).given, skill)

    async def suggest(self, change: Mapping[str, str | None]) -> None:
        """Put a change of the person's skills before the person. Raises RequestError."""
        await asyncio.to_thread(self.own.suggest, change, author=self.author, thread_id=self.thread_id)
