"""Run a command, and run it again whenever a Python source below a directory changes: `reload.py DIRECTORY COMMAND ...`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

INTERVAL = 1.0


def newest(root: Path) -> tuple[int, int]:
    """How many sources there are, and when one was changed last."""
    times = [file.stat().st_mtime_ns for file in root.rglob("*.py") if file.exists()]
    return len(times), max(times, default=0)


def main(root: Path, command: list[str]) -> None:
    while True:
        seen = newest(root)
        with subprocess.Popen(command) as process:
            while newest(root) == seen and process.poll() is None:
                time.sleep(INTERVAL)
            process.terminate()
            process.wait()
        # A command that ended by itself waits for the change that mends it.
        while newest(root) == seen:
            time.sleep(INTERVAL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
