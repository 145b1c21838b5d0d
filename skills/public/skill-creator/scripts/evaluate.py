"""Judge what agents made for the evaluation tasks of a skill: run the checks on each result, with and without the skill."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path


def passed(check: dict, folder: Path) -> bool:
    """A check holds one of: file (exists; with contains or matches), command (exits with 0), absent (does not exist)."""
    if "command" in check:
        return (
            subprocess.run(["bash", "-c", check["command"]], cwd=folder, capture_output=True, timeout=120).returncode
            == 0
        )
    if "absent" in check:
        return not (folder / check["absent"]).exists()
    files = sorted(folder.glob(check["file"]))
    if not files:
        return False
    text = files[0].read_bytes().decode("utf-8", "replace")
    if "contains" in check:
        return check["contains"].lower() in text.lower()
    return bool(re.search(check["matches"], text)) if "matches" in check else bool(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evals", type=Path, help="the skill's evals/evals.json")
    parser.add_argument(
        "runs", type=Path, help="a folder with/<number of the task>/… and without/<number>/…, each with the files made"
    )
    parser.add_argument("-o", "--output", type=Path, help="write a table as Markdown")
    options = parser.parse_args()
    tasks = json.loads(options.evals.read_text("utf-8"))
    rows, totals = [], {"with": [0, 0], "without": [0, 0]}
    for number, task in enumerate(tasks, 1):
        cells = []
        for arm in ("with", "without"):
            folder = options.runs / arm / str(number)
            if not folder.is_dir():
                cells.append("–")
                continue
            failed = [json.dumps(check, ensure_ascii=False) for check in task["checks"] if not passed(check, folder)]
            good = len(task["checks"]) - len(failed)
            totals[arm][0] += good
            totals[arm][1] += len(task["checks"])
            cells.append(f"{good}/{len(task['checks'])}" + (f" (fails {'; '.join(failed)})" if failed else ""))
        rows.append(f"| {number} | {task['task'][:60]} | {cells[0]} | {cells[1]} |")
    sums = [f"{good}/{count}" if count else "–" for good, count in totals.values()]
    table = "\n".join(
        [
            "| | Task | With the skill | Without |",
            "|---|---|---|---|",
            *rows,
            f"| | **All** | **{sums[0]}** | **{sums[1]}** |",
        ]
    )
    if options.output:
        options.output.write_text(table + "\n", "utf-8")
    print(table)
    return 0 if totals["with"][0] == totals["with"][1] > 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
