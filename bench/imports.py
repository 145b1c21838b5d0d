"""How long ``import deerflow`` and ``deerflow --help`` take in fresh processes. The floor is Python itself."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure, at_most
from bench.worker import Options

SUBJECTS = ("ours",)
ROUNDS = 1
REPEATS = 7
COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import": [sys.executable, "-c", "import deerflow"],
    "help": [str(Path(sys.executable).with_name("deerflow")), "--help"],
    "langchain": [sys.executable, "-c", "import langchain.agents, langchain_openai"],
}


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Wall seconds by command, median of fresh processes; the first run of each only fills the caches."""
    results: dict[str, Any] = {}
    for name, command in COMMANDS.items():
        times = [_wall(command) for _ in range(2 if options.quick else REPEATS + 1)][1:]
        results[name] = None if None in times else statistics.median(value for value in times if value is not None)
    return results


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    (found,) = results["ours"]
    python = found["python"]
    return [
        Figure("import deerflow", "s", found["import"], python, at_most(0.3, "s"), "floor: python -c pass"),
        Figure("deerflow --help", "s", found["help"], python, at_most(0.5, "s"), "floor: python -c pass"),
        Figure(
            "import langchain.agents, langchain_openai",
            "s",
            found["langchain"],
            python,
            note="what a model costs to import",
        ),
    ]


def slowest(module: str, count: int = 25) -> str:
    """The modules that take longest to import, in milliseconds, own time."""
    command = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    rows = re.findall(r"import time:\s+(\d+) \|\s+(\d+) \| ( *)(\S+)", report)
    rows.sort(key=lambda row: -int(row[0]))
    return "\n".join(f"{int(own) / 1000:8.1f} ms  {name}" for own, _, _, name in rows[:count])


def _wall(command: list[str]) -> float | None:
    """Seconds that ``command`` took; None if it does not exist or fails."""
    environment = {**os.environ, "COLUMNS": "100"}
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        return None
    return time.perf_counter() - started if done.returncode == 0 else None
