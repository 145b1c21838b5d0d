"""Where a configuration came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Origin:
    """The files, the environment and the directory that a snapshot was built from."""

    config_file: Path | None = None
    extensions_file: Path | None = None
    project_root: Path = field(default_factory=Path.cwd)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The process's environment with ``.env`` added."""
    warnings: tuple[str, ...] = ()
    """What works but deserves a look: old version, doubled names, unknown keys."""
