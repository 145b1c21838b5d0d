"""The directories of a thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Workspace:
    """A thread's directories on the host."""

    root: Path
    workspace: Path
    uploads: Path
    outputs: Path
