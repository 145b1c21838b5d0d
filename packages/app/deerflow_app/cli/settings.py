"""Options that every command knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Settings:
    """Where the configuration is, whether tracebacks are wanted, and whether a running server is left alone."""

    config: Path | None = None
    debug: bool = False
    local: bool = False
