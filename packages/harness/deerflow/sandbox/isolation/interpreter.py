"""The Python that runs the supervisor inside: the system's if it is new enough, else our own, bound at its own path."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 9)
SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An executable and, where it lies outside of /usr, the directory that must be bound with it."""

    executable: str
    prefix: str | None = None


def find_interpreter(system_python: str = SYSTEM_PYTHON) -> Interpreter:
    """Blocks while it asks the system's Python for its version.

    A Python built for one prefix finds its libraries only there, so ours is bound at the path it has on the host.
    """
    code = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"
    try:
        run = subprocess.run(
            [system_python, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=20, env={}, check=True
        )
        major, _, minor = run.stdout.partition(".")
        if (int(major), int(minor)) >= OLDEST:
            return Interpreter(system_python)
    except (OSError, subprocess.SubprocessError, ValueError):
        pass
    executable = os.path.realpath(sys.executable)
    if executable.startswith("/usr/"):
        return Interpreter(executable)
    return Interpreter(executable, os.path.realpath(sys.base_prefix))


def tool_image_prefix(tools: Path) -> str | None:
    """The directory of the Python that a tool image was made with, if it lies outside of /usr and the image."""
    try:
        lines = (tools / "pyvenv.cfg").read_text().splitlines()
    except OSError:
        return None
    home = next(
        (value.strip() for key, _, value in (line.partition("=") for line in lines) if key.strip() == "home"), ""
    )
    prefix = Path(home).resolve().parent if home else Path("/")
    if prefix == Path("/") or prefix.is_relative_to("/usr") or prefix.is_relative_to(tools):
        return None
    return str(prefix)
