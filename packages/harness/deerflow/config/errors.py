"""What is wrong with a configuration, in words for the person who can put it right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing to put right. ``line`` is 1-based; ``key`` looks like ``models[0].name``."""

    message: str
    file: Path | None = None
    line: int | None = None
    key: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else str(self.file or "")
        return " ".join(
            part for part in (": ".join(filter(None, (place, self.key, self.message))), self.remedy) if part
        )


class ConfigError(Exception):
    """The configuration, or the part of it that is needed now, cannot be used. ``str()`` says where, why and what to do."""

    def __init__(self, problems: ConfigProblem | Sequence[ConfigProblem]) -> None:
        self.problems: tuple[ConfigProblem, ...] = (
            (problems,) if isinstance(problems, ConfigProblem) else tuple(problems)
        )
        super().__init__(*self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def key_path(parts: Sequence[str | int]) -> str:
    """``("models", 0, "name")`` as people write it: ``models[0].name``."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
