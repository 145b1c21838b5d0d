"""Who acts: the principal made at the border and passed down explicitly, and the ids that name its things."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,128}")
AGENT_NAME_PATTERN = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class Principal:
    """The person or service on whose behalf something happens."""

    user_id: str
    role: Literal["admin", "user"] = "user"
    source: Literal["session", "token", "channel", "internal", "local"] = "local"

    def __post_init__(self) -> None:
        check_id(self.user_id, "user id")


def check_id(value: str, what: str = "id") -> str:
    """Return ``value`` if it may name a directory or a row.

    Raises:
        ValueError: it is empty, too long or holds anything but letters, digits, ``-`` and ``_``.
    """
    if not isinstance(value, str) or not ID_PATTERN.fullmatch(value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"Invalid {what} {value!r}: use 1 to 128 letters, digits, '-' or '_'.")
    return value


def check_agent_name(value: str) -> str:
    """Return ``value`` if it may name an agent. Raises ValueError otherwise."""
    if not isinstance(value, str) or not AGENT_NAME_PATTERN.fullmatch(value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"Invalid agent name {value!r}: use 1 to 64 letters, digits or '-'.")
    return value


LOCAL_PRINCIPAL = Principal("default", role="admin", source="local")
"""The one user of a process that runs without authentication."""
