"""Run the commands that a skill's text shows (its `bash` blocks), in an empty directory, and check what they leave."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```bash[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--expect", nargs="*", default=[], help="files that must exist and not be empty afterwards")
    parser.add_argument("--timeout", type=float, default=300)
    options = parser.parse_args()
    folder = options.folder.resolve()
    blocks = BLOCK.findall((folder / "SKILL.md").read_text("utf-8"))
    if not blocks:
        print("There are no bash blocks to run.")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        # The skill is tried where it lies now, whatever place its text names.
        program = "set -euo pipefail\n" + re.sub(
            rf"/mnt/skills/(?:custom|public)/{re.escape(folder.name)}(?=[/\s\"'])", str(folder), "\n".join(blocks)
        )
        try:
            done = subprocess.run(
                ["bash", "-c", program], cwd=directory, capture_output=True, text=True, timeout=options.timeout
            )
        except subprocess.TimeoutExpired:
            print(f"The examples took more than {options.timeout:g} seconds.")
            return 1
        print(done.stdout[-3000:] + done.stderr[-3000:], end="")
        missing = [
            name
            for name in options.expect
            if not Path(directory, name).is_file() or not Path(directory, name).stat().st_size
        ]
    for name in missing:
        print(f"- {name} is missing or empty")
    print(f"{len(blocks)} blocks, exit code {done.returncode}")
    return 1 if done.returncode or missing else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
