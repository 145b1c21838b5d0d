"""Begin a skill: a folder with SKILL.md, a script that runs and a file of evaluations."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

TEXT = """---
name: {name}
description: {description}
license: MIT
---

# {title}

One sentence: what comes out, and for whom.

## Steps

1. What to look at first, and what to ask only if it cannot be seen.
2. What to do; the script does the part that must be exact.

```bash
python3 {path}/scripts/main.py --help
```

3. How to check the result, and where to put it: `/mnt/user-data/outputs`, then `present_files`.

## Traps

- What goes wrong most often, and how to notice it.
"""
SCRIPT = '''"""{title}: say here in one sentence what this does."""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    options = parser.parse_args()
    print(options.file)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
'''


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--description", required=True, help="what it does and when to use it, at most 200 letters")
    parser.add_argument("--into", type=Path, default=Path())
    options = parser.parse_args()
    folder = options.into / options.name
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", options.name) or folder.exists():
        print(
            f"{folder} exists already"
            if folder.exists()
            else "a name has lower case letters, digits and single hyphens",
            file=sys.stderr,
        )
        return 2
    title = options.name.replace("-", " ").capitalize()
    (folder / "scripts").mkdir(parents=True)
    (folder / "evals").mkdir()
    path = f"/mnt/skills/custom/{options.name}"
    (folder / "SKILL.md").write_text(
        TEXT.format(
            name=options.name, description=json.dumps(options.description, ensure_ascii=False), title=title, path=path
        ),
        "utf-8",
    )
    (folder / "scripts/main.py").write_text(SCRIPT.format(title=title), "utf-8")
    (folder / "evals/evals.json").write_text(
        json.dumps(
            [
                {
                    "task": "A task as a person would write it",
                    "should_use": True,
                    "checks": [{"file": "result.txt", "contains": "expected"}],
                }
            ],
            indent=1,
        )
        + "\n",
        "utf-8",
    )
    print(folder)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
