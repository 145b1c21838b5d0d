"""The Python that runs the supervisor inside: the system's if it is new enough, else our own, bound at its own path."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SYSTEM_PYTHON = "/usr/bin/python3"
SUPERVISOR_SOURCE = Path(__file__).parents[1] / "supervisor.py"
# Bytecode starts faster than source, and leaves 2 MB less behind in every sandbox.
COMPILE = """
import sys
assert sys.version_info >= (3, 9)
import importlib.util, marshal
code = compile(sys.stdin.buffer.read(), "agent.py", "exec", dont_inherit=True, optimize=2)
sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An executable, the supervisor in its bytecode, and a directory outside of /usr that must be bound with it."""

    executable: str
    supervisor: bytes
    prefix: str | None = None


def find_interpreter(system_python: str = SYSTEM_PYTHON) -> Interpreter:
    """The interpreter to use. Blocks while it compiles the supervisor.

    A Python built for one prefix finds its libraries only there, so ours is bound at the path it has on the host.
    """
    with suppress(OSError, subprocess.SubprocessError):
        return Interpreter(system_python, _compiled_by(system_python))
    executable = os.path.realpath(sys.executable)
    prefix = None if executable.startswith("/usr/") else os.path.realpath(sys.base_prefix)
    return Interpreter(executable, _compiled_by(executable), prefix)


def _compiled_by(python: str) -> bytes:
    run = subprocess.run(
        [python, "-I", "-S", "-B", "-c", COMPILE], input=SUPERVISOR_SOURCE.read_bytes(), capture_output=True,
        timeout=20, env={}, check=True,
    )  # fmt: skip
    return run.stdout


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
