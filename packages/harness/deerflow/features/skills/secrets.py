"""Secrets that scripts of skills need. Each belongs to what the skill was when its person set or confirmed it: its files and its origin."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from pathlib import Path
from typing import TypedDict

from deerflow.config.secrets import Seal, SealedFile, WrongKeyError
from deerflow.errors import ConflictError, ForbiddenError, RequestError
from deerflow.features.skills.own import OwnSkills
from deerflow.features.skills.parser import Skill

logger = logging.getLogger(__name__)

MIN_SECRET = 8
"""Characters. Anything shorter cannot be taken out of what a script prints without harm."""


class _Kept(TypedDict):
    value: str
    digest: str


class SkillSecrets:
    """The secrets of one person. Every method blocks; those that give or confirm raise WrongKeyError."""

    def __init__(self, own: OwnSkills, key_file: Path) -> None:
        self._own = own
        self._sealed = SealedFile(
            own.directory / "secrets", Seal(key_file, "The secrets of skills", "enter them again")
        )

    def given(self, skill: Skill) -> dict[str, str]:
        """Return what the skill's scripts get, by name. Raises ForbiddenError if the skill is not the one that the person knows."""
        kept, digest = self._kept(skill), self.digest(skill)
        if changed := [name for name, one in kept.items() if one["digest"] != digest]:
            raise ForbiddenError(
                f"{skill.name} has changed since {', '.join(changed)} was set for it. Ask the user to look at the skill and to "
                f"confirm its keys, on its page or with: deerflow skills confirm {skill.name}",
                code="secrets_unconfirmed",
                name=skill.name,
            )
        return {name: one["value"] for name, one in kept.items()}

    def states(self, skill: Skill) -> dict[str, bool]:
        """Return for each secret that the skill has, whether its scripts get it as they are now. What cannot be decrypted is not there."""
        digest = self.digest(skill)
        try:
            return {name: one["digest"] == digest for name, one in self._kept(skill).items()}
        except WrongKeyError as error:
            logger.warning("%s", error)
            return {}

    def set(self, skill: Skill, name: str, value: str | None) -> None:
        """Keep a secret, encrypted with the installation's key, or forget it (None). Raises RequestError if it is too short."""
        if value is not None and (len(value) < MIN_SECRET or "\0" in value):
            text = f"A secret has at least {MIN_SECRET} characters."
            raise RequestError(text, reason="secret_short", count=MIN_SECRET)
        with self._own.alone():
            try:
                kept = self._all()
            except WrongKeyError:
                self._sealed.set_aside()
                kept = {}
            of_skill = {key: one for key, one in kept.get(skill.name, {}).items() if key != name}
            if value is not None:
                of_skill[name] = {"value": value, "digest": self.digest(skill)}
            self._sealed.write({**kept, skill.name: of_skill})

    def confirm(self, skill: Skill, digest: str, *names: str) -> None:
        """Give the skill as it is now the secrets that it had; without ``names`` all of them.

        Raises:
            ConflictError: it is not what the person looked at, which has this ``digest``.
        """
        with self._own.alone():
            if self.digest(skill) != digest:
                text = f"{skill.name} has changed since you looked at it. Look at it again."
                raise ConflictError(text, reason="skill_changed", name=skill.name)
            kept = self._all()
            of_skill = kept.get(skill.name, {})
            chosen = {name: _Kept(value=of_skill[name]["value"], digest=digest) for name in names or of_skill}
            self._sealed.write({**kept, skill.name: {**of_skill, **chosen}})

    def digest(self, skill: Skill) -> str:
        """Return a hash of where the skill came from and of all that lies in its folder."""
        found = hashlib.sha256(f"{skill.category} {self._own.origin(skill)}\0".encode())
        for place, folders, files in os.walk(skill.directory):
            folders.sort()
            for name in sorted([*files, *folders]):
                path = Path(place, name)
                found.update(
                    f"{path.relative_to(skill.directory)}\0{_content(path)}\0".encode("utf-8", "surrogateescape")
                )
        return found.hexdigest()

    def _kept(self, skill: Skill) -> dict[str, _Kept]:
        kept = self._all().get(skill.name, {})
        return {name: kept[name] for name in skill.secrets if name in kept}

    def _all(self) -> dict[str, dict[str, _Kept]]:
        # Of an earlier version each value stood alone: what it was set for is not known.
        return {
            skill: {
                name: _Kept(value=one, digest="") if isinstance(one, str) else one for name, one in of_skill.items()
            }
            for skill, of_skill in (self._sealed.read() or {}).items()
        }


def _content(path: Path) -> str:
    """Return a hash of a file, or where a link leads to."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(mode):
        return f"{stat.S_IFMT(mode)}"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
