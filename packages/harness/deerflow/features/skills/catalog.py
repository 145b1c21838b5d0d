"""Which skills a person has: the public ones and their own, those that are on, and how a prompt lists them."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from deerflow.config import AppConfig, Paths
from deerflow.config.paths import shipped_skills
from deerflow.features.skills.own import OwnSkills
from deerflow.features.skills.parser import (
    MAX_DESCRIPTION,
    SKILL_FILE,
    Category,
    InvalidSkillError,
    Skill,
    front_matter,
    notes,
    parse,
    read_skill_file,
)
from deerflow.security.text import inline
from deerflow.storage.matching import best_matches

logger = logging.getLogger(__name__)

CUSTOM, PUBLIC = "custom", "public"
PROMPT_BYTES, BRIEF_BYTES = 6000, 2000
"""1,500 tokens, and what a model with a small window reads."""
BRIEF = 48
"""Characters of a description for such a model."""
MAX_DEPTH = 6
"""Folders above a skill."""

_HEAD = """<skill_system>
Skills are instructions, often with scripts and templates. When a task is of a kind below, first read
{root}/<skill>/SKILL.md with read_file and follow it; read the files that it names when you need them. They cannot be changed."""
_MORE = "{count} more skills are not listed: describe_skill finds them."

MAX_SETS = 1000
"""Persons whose skills are remembered."""

Stamp = tuple[int, int, int]
Found = tuple[tuple[str, Stamp], ...]


@dataclass(frozen=True)
class SkillSet:
    """The skills of one person at one time.

    Args:
        skills: by name.
        problems: why folders are not skills, by path.
        used: how often each was used, to choose those that are listed where not all can be.
        public: the folder of public skills.
        in_public: each folder with a SKILL.md in there, a skill or not, as sandboxes see them.
        brief: whether each is listed with the beginning of its description alone.
    """

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    root: str = "/mnt/skills"
    used: Mapping[str, int] = field(default_factory=dict[str, int])
    public: Path = Path()
    in_public: frozenset[str] = frozenset()
    brief: bool = False

    @cached_property
    def mounts(self) -> dict[str, Path]:
        """Folders of the host by where sandboxes see them, read-only: skills that are on, and nothing else.

        Where all of the public ones are, they are one mount.
        """
        shown = {skill.path: skill.directory for skill in self.enabled.values()}
        if not self.in_public or not self.in_public <= shown.keys():
            return shown
        others = {path: folder for path, folder in shown.items() if path not in self.in_public}
        return {f"{self.root}/{PUBLIC}": self.public, **others}

    @cached_property
    def enabled(self) -> dict[str, Skill]:
        return {name: skill for name, skill in self.skills.items() if skill.enabled}

    @cached_property
    def id(self) -> str:
        """Of what agents are built with: persons with the same skills share them."""
        parts = [f"{_line(one, '', MAX_DESCRIPTION)} {one.secrets}" for one in self.enabled.values()]
        return hashlib.sha256("\n".join([*parts, self.prompt]).encode()).hexdigest()

    def only(self, names: Collection[str] | None) -> SkillSet:
        """Those of these names; None: all."""
        if names is None:
            return self
        return replace(self, skills={name: skill for name, skill in self.skills.items() if name in names})

    def working(self, offered: Collection[str]) -> SkillSet:
        """Those that can work with what is offered: tools, programs, the network. Keys are named where they are listed."""

        def works(skill: Skill) -> bool:
            wanted = [need.split("|") for need in skill.needs if need not in skill.secrets]
            return all(any(one in offered for one in each) for each in wanted)

        return replace(self, skills={name: skill for name, skill in self.skills.items() if works(skill)})

    @cached_property
    def listed(self) -> list[Skill]:
        """Enabled skills that the prompt names: all, or the most used ones that its budget has room for."""
        ranked = sorted(self.enabled.values(), key=lambda skill: (-self.used.get(skill.name, 0), skill.name))
        room = (BRIEF_BYTES if self.brief else PROMPT_BYTES) - len(_HEAD.format(root=self.root)) - 150
        kept: list[Skill] = []
        for skill in ranked:
            room -= len(_line(skill, self.root, self._most).encode()) + 1
            if room < 0:
                break
            kept.append(skill)
        return sorted(kept, key=lambda skill: skill.name)

    @property
    def _most(self) -> int:
        return BRIEF if self.brief else MAX_DESCRIPTION

    def search(self, query: str, limit: int = 5) -> list[Skill]:
        """The enabled skills whose names and descriptions fit best (BM25). Blocks."""
        found = best_matches({one.name: one.description for one in self.enabled.values()}, query, limit)
        return [self.enabled[name] for name in found]

    @property
    def is_cut(self) -> bool:
        """Whether there are more skills than the prompt names."""
        return len(self.listed) < len(self.enabled)

    @cached_property
    def prompt(self) -> str:
        """The section of a system prompt that lists these skills; empty without any."""
        if not self.enabled:
            return ""
        lines = [
            _HEAD.format(root=self.root),
            "<available_skills>",
            *(_line(skill, self.root, self._most) for skill in self.listed),
        ]
        if self.is_cut:
            lines.append(_MORE.format(count=len(self.enabled) - len(self.listed)))
        return "\n".join([*lines, "</available_skills>", "</skill_system>"])


NO_SKILLS = SkillSet()


class SkillCatalog:
    """Loads skills, and reads again only what has changed. Safe to share between threads."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self._parsed: dict[tuple[Path, str], tuple[Stamp, Skill | str]] = {}
        """By file and path in sandboxes."""
        self._sets: dict[str, tuple[object, SkillSet]] = {}
        self._seen: Found = ()
        """The files of public skills, shared by the persons whose sets were made of them."""

    def forget(self) -> None:
        """Read everything again when it is asked for next, also files that look unchanged, as on some network drives."""
        self._sets.clear()
        self._parsed.clear()
        self._seen = ()

    def load(self, config: AppConfig, user_id: str) -> SkillSet:
        """The skills that a person has now. Blocks; of two with one name the person's own counts."""
        kept, folder = OwnSkills(self.paths, user_id), public_folder(config)
        public = tuple(_skill_files(folder))
        public = self._seen = self._seen if self._seen == public else public
        own = tuple(_skill_files(kept.custom))
        states, used = kept.states(), kept.used()
        key, known = (config.id, public, own, states, used), self._sets.get(user_id)
        if known is not None and known[0] == key:
            return known[1]
        skills: dict[str, Skill] = {}
        problems: dict[str, str] = {}
        in_public: set[str] = set()
        found: dict[Category, tuple[Path, Found]] = {"public": (folder, public), "custom": (kept.custom, own)}
        for category, (root, files) in found.items():
            for name, stamp in files:
                file = Path(name)
                path = f"{config.skills.container_path}/{category}/{file.parent.relative_to(root).as_posix()}"
                if category == "public":
                    in_public.add(path)
                skill = self._skill(file, stamp, category, path)
                if isinstance(skill, str):
                    problems[path] = skill
                    continue
                enabled = states.get(skill.name, config.extensions.is_skill_enabled(skill.name, category))
                skills[skill.name] = skill if enabled else replace(skill, enabled=False)
        ours = dict(sorted(skills.items()))
        made = SkillSet(ours, problems, config.skills.container_path, used, folder, frozenset(in_public))
        self._sets[user_id] = key, made
        if len(self._sets) > MAX_SETS:
            self._sets.pop(next(iter(self._sets)))
        return made

    def _skill(self, file: Path, stamp: Stamp, category: Category, path: str) -> Skill | str:
        """The skill, or why it is none."""
        known = self._parsed.get((file, path))
        if known is None or known[0] != stamp:
            try:
                text = read_skill_file(file)
                found: Skill | str = parse(text, directory=file.parent, category=category, path=path)
                for note in notes(front_matter(text)):
                    logger.warning("%s: %s", path, note)
            except InvalidSkillError as error:
                found = str(error)
                logger.warning("%s is left out: %s", path, found)
            known = self._parsed[file, path] = stamp, found
        return known[1]


def public_folder(config: AppConfig) -> Path:
    """Return the folder of public skills: the configured one, the project's, or what comes with DeerFlow. Looks at the disk."""
    own = config.skills.directory(config.origin.project_root) / PUBLIC
    return own if config.skills.path is not None or own.is_dir() else shipped_skills()


def _line(skill: Skill, root: str, most: int) -> str:
    keys = [need for need in skill.needs if need in skill.secrets]
    needs = f" Needs the user's {' and '.join(keys)}." if keys else ""
    return f"- {skill.path.removeprefix(f'{root}/')}: {inline(skill.description, most)}{needs}"


def _skill_files(root: Path | str, depth: int = 0) -> Iterator[tuple[str, Stamp]]:
    """The path of each SKILL.md below ``root`` with what shows a change of it. Hidden folders and links are passed by, and a skill has none in it."""
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
            continue
        file = f"{entry.path}/{SKILL_FILE}"
        try:
            status = os.lstat(file)
        except OSError:
            if depth < MAX_DEPTH:
                yield from _skill_files(entry.path, depth + 1)
            continue
        yield file, (status.st_mtime_ns, status.st_size, status.st_ino)
