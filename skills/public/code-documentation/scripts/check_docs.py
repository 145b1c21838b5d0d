"""Check Markdown documentation: links and anchors that lead nowhere, code that does not parse, doubled headings."""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

import yaml

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(<?([^)\s>]+)>?\)")
FENCE = re.compile(r"^( *)(```+|~~~+)([^\n]*)\n(.*?)^ *\2[ \t]*$", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> list[str]:
    """The names that GitHub gives to headings."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*_]", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return found


def check(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    problems = []
    for match in FENCE.finditer(text):
        language, code = (match[3].split() or [""])[0].lower(), match[4]
        line = text[: match.start()].count("\n") + 1
        code = "\n".join(part.removeprefix(match[1]) for part in code.split("\n"))
        try:
            if language in ("python", "py") and ">>>" not in code:
                ast.parse(code)
            elif language == "json":
                json.loads(code)
            elif language in ("yaml", "yml"):
                list(yaml.safe_load_all(code))
        except (SyntaxError, ValueError, yaml.YAMLError) as error:
            problems.append(f"{path}:{line}: this {language} does not parse: {str(error).splitlines()[0]}")
        if not language:
            problems.append(f"{path}:{line}: the code block names no language")
    prose = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in LINK.finditer(re.sub(r"`[^`\n]*`", "", prose)):
        address = unquote(match[1] or match[2])
        if re.match(r"[a-z][a-z0-9+.-]*:|//", address, re.IGNORECASE):
            continue
        file, _, anchor = address.partition("#")
        target = (path.parent / file).resolve() if file else path.resolve()
        if not target.exists():
            problems.append(f"{path}: {address} does not exist")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text("utf-8")):
            problems.append(f"{path}: {address}: there is no such heading")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="Markdown files or folders")
    options = parser.parse_args()
    files = [file for path in options.paths for file in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]
    problems = [problem for file in files for problem in check(file)]
    print(f"{len(files)} files, {len(problems)} problems")
    for problem in problems:
        print(f"- {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
