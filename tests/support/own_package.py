"""The package in ``examples/my_package``, installed as people install theirs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples/my_package"


def install(place: Path) -> Path:
    """Return the directory below ``place`` in which its wheel was unpacked; nothing is downloaded."""
    shutil.copytree(EXAMPLE, place / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", place / "site", place / "source"], check=True, capture_output=True, timeout=120)
    return place / "site"
