"""Measures one subject of one family in a process of its own: ``python -m bench.worker FAMILY SUBJECT OPTIONS``."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULT = "bench-result:"


@dataclass(frozen=True, slots=True)
class Options:
    """What every measurement needs to know."""

    base_url: str
    data: str
    """A directory of its own, empty at the start."""
    quick: bool = False
    profile: str | None = None
    """Where to write a cProfile of the measured part."""


def run(family: str, subject: str, options: Options) -> dict[str, Any]:
    """Measure in a fresh process.

    Raises:
        RuntimeError: the process failed; the message holds the end of its output.
    """
    command = [sys.executable, "-m", "bench.worker", family, subject, json.dumps(asdict(options))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(RESULT):
            return json.loads(line.removeprefix(RESULT))
    raise RuntimeError(f"{family} of {subject} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def main() -> None:
    """Entry of the worker process."""
    family, subject, options = sys.argv[1:4]
    module = importlib.import_module(f"bench.{family}")
    sys.path.insert(0, str(ROOT))
    result = asyncio.run(module.measure(subject, Options(**json.loads(options))))
    print(RESULT + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
