"""One skill as the Agent Skills specification describes it: a folder with SKILL.md, which begins with YAML between ``---`` lines.

What the loader takes and what the validator accepts is the same, see https://agentskills.io/specification. Beyond it they take what
skills that are in use have: texts that YAML wants quoted, and long descriptions, which are cut.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

Category = Literal["public", "custom"]

SKILL_FILE = "SKILL.md"
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500
MAX_SKILL_FILE_BYTES = 1 << 20
KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools", "version", "author"})
"""Of the specification, and two that many skills have. Others mean nothing here."""

_FRONT = re.compile(r"\A---[ \t]*\n(.{0,8000}?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_SETTING = re.compile(r"^(?=[A-Za-z][\w-]*:(?:[ \t]|$))", re.MULTILINE)
_WORD = re.compile(r"[^\s,]+")
_TOOL = re.compile(r"[^\s,()]+(?:\([^)]*\))?")
_SECRET = re.compile(r"[A-Z][A-Z0-9_]{2,63}")
RESERVED = frozenset({"public", "custom", "archive", "install", "suggestions", "compact"})
_LOOKALIKES = frozenset({"LATIN", "CYRILLIC", "GREEK"})
"""Scripts with letters that look the same: a name holds those of one of them only."""


class InvalidSkillError(ValueError):
    """A folder is not a skill; says why."""


@dataclass(frozen=True, slots=True)
class Skill:
    """Args:
    directory: on the host.
    path: of the folder as the model sees it.
    description_zh: for people who read Chinese; models read ``description``.
    allowed_tools: the only ones that may be used while the skill is active; None: all.
    secrets: environment variables that its scripts need.
    needs: names of tools and programs, ``network``, and secrets without which it is of no use; ``a|b``: one of them.
    """

    name: str
    description: str
    category: Category
    directory: Path
    path: str
    description_zh: str | None = None
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    secrets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    enabled: bool = True

    @property
    def file(self) -> str:
        return f"{self.path}/{SKILL_FILE}"


def parse(text: str, *, directory: Path, category: Category, path: str) -> Skill:
    """The skill whose SKILL.md holds ``text``. Raises InvalidSkillError, which names everything that is wrong."""
    front = checked(text, directory.name)
    metadata = front.get("metadata") or {}
    chinese = metadata.get("description_zh")
    return Skill(
        name=front["name"],
        description=_cut(front["description"]),
        category=category,
        directory=directory,
        path=path,
        description_zh=_cut(chinese) if isinstance(chinese, str) and chinese.strip() else None,
        license=_text(front.get("license")),
        compatibility=_text(front.get("compatibility")),
        allowed_tools=tuple(_words(front["allowed-tools"], _TOOL)) if "allowed-tools" in front else None,
        secrets=tuple(dict.fromkeys(_words(metadata.get("secrets"), _WORD))),
        needs=tuple(dict.fromkeys(_words(metadata.get("needs"), _WORD))),
    )


def read_skill_file(file: Path) -> str:
    """The text of a SKILL.md. Raises InvalidSkillError."""
    if file.is_symlink() or not file.is_file():
        raise InvalidSkillError(f"{SKILL_FILE} is no file.")
    if file.stat().st_size > MAX_SKILL_FILE_BYTES:
        raise InvalidSkillError(f"{SKILL_FILE} has more than {MAX_SKILL_FILE_BYTES >> 20} MB.")
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidSkillError(f"{SKILL_FILE} cannot be read; it must be text in UTF-8.") from None


def front_matter(text: str) -> dict[str, Any]:
    """What stands between the ``---`` lines at the beginning. Raises InvalidSkillError."""
    found = _FRONT.match(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if found is None:
        raise InvalidSkillError(
            f"{SKILL_FILE} does not begin with settings, at most 8,000 characters, between two lines of ---."
        )
    try:
        front = _yaml(found[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 2})" if mark else ""
        if (front := _lenient(found[1])) is None:
            raise InvalidSkillError(
                f"The settings of {SKILL_FILE} are no YAML{where}. Quote texts that hold ': '."
            ) from None
    if not isinstance(front, dict):
        raise InvalidSkillError(f"The settings of {SKILL_FILE} must be keys with values.")
    return {str(key): value for key, value in front.items()}


def _yaml(text: str) -> Any:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _lenient(text: str, depth: int = 2) -> dict[str, Any] | None:
    """Settings whose texts are not quoted as YAML wants it (``hint: [a] [b]``, ``use when: this``), setting by setting.

    A value that is no YAML is a text as it stands, with the indented lines after it. None: there are lines that belong to no setting.
    """
    front: dict[str, Any] = {}
    for setting in _SETTING.split(text)[1:]:
        key, _, value = setting.partition(":")
        try:
            front |= _yaml(setting)
        except (yaml.YAMLError, ValueError, RecursionError, TypeError):
            if value.split("\n", 1)[0].strip():
                front[key] = " ".join(value.split())
            elif depth and (inner := _lenient(textwrap.dedent(value.lstrip("\n")), depth - 1)) is not None:
                front[key] = inner
            else:
                return None
    return front if front and not _SETTING.split(text)[0].strip() else None


def notes(front: Mapping[str, Any]) -> list[str]:
    """Return sentences about what is taken from the settings of a skill otherwise than it is written."""
    length = len(" ".join(front["description"].split()))
    if length <= MAX_DESCRIPTION:
        return []
    return [f"Its description has {length:,} characters; agents are shown the first {MAX_DESCRIPTION:,}."]


def _cut(description: str) -> str:
    text = " ".join(description.split())
    return text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 1].rsplit(' ', 1)[0]}…"


def checked(text: str, folder: str | None = None) -> dict[str, Any]:
    """The settings of a SKILL.md in a folder of this name (None: any). Raises InvalidSkillError, which names everything that is wrong."""
    front = front_matter(text)
    if wrong := problems(front, folder):
        raise InvalidSkillError(" ".join(wrong))
    return front


def problems(front: Mapping[str, Any], folder: str | None = None) -> list[str]:
    """What is wrong with the settings of a skill in a folder of this name (None: any); each one a sentence."""
    wrong = [problem] if (problem := name_problem(front.get("name"))) else []
    if not wrong and folder is not None and front["name"] != unicodedata.normalize("NFKC", folder):
        wrong.append(f"name is {front['name']!r}, but the folder is called {folder!r}.")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        wrong.append("description is missing.")
    if len(_text(front.get("compatibility")) or "") > MAX_COMPATIBILITY:
        wrong.append(f"compatibility has more than {MAX_COMPATIBILITY} characters.")
    metadata = front.get("metadata") or {}
    if not isinstance(metadata, dict):
        return [*wrong, "metadata must be keys with values."]
    if not isinstance(front.get("allowed-tools", ""), str | list):
        wrong.append("allowed-tools must be names of tools with spaces between them.")
    secrets = _words(metadata.get("secrets"), _WORD)
    if bad := [name for name in secrets if not _SECRET.fullmatch(name) or name.startswith(("LD_", "PYTHON", "BASH"))]:
        wrong.append(f"metadata.secrets: {bad[0]!r} is no name for a secret, such as WEATHER_API_KEY.")
    return wrong


def name_problem(name: object) -> str | None:
    """Why ``name`` may not be a skill's, if so: letters of any script in lower case, digits, single hyphens between them."""
    if not isinstance(name, str) or not name:
        return "name is missing."
    shown = repr(name[:MAX_NAME])
    if len(name) > MAX_NAME or len(name.encode("utf-8", "replace")) > 200:
        return f"name {shown}… is too long; {MAX_NAME} characters are allowed."
    if name in RESERVED:
        return f"name {shown} has a meaning of its own here; choose another."
    kinds = {unicodedata.category(char)[0] for char in name if char != "-"}
    if not kinds <= set("LMN") or name != unicodedata.normalize("NFKC", name).lower():
        return f"name {shown}: use letters in lower case, digits and hyphens."
    if name.startswith("-") or name.endswith("-") or "--" in name:
        return f"name {shown}: hyphens stand alone and between letters."
    scripts = {unicodedata.name(char, "?").split()[0] for char in name if unicodedata.category(char)[0] == "L"}
    if len(scripts & _LOOKALIKES) > 1:
        return f"name {shown} mixes letters of several scripts that look the same."
    return None


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def _words(value: object, pattern: re.Pattern[str]) -> list[str]:
    """Names in a text, or in a list of texts."""
    given = value if isinstance(value, list | tuple) else [value]
    return [word for text in given if isinstance(text, str) for word in pattern.findall(text)]
