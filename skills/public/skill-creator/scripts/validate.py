"""Check a skill: settings, length, files that it names, commands, scripts, things that do not belong into one."""

from __future__ import annotations

import argparse
import ast
import re
import sys
import unicodedata
from pathlib import Path

import yaml

KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
MAX_LINES, MAX_FILES, MAX_BYTES = 300, 200, 20 << 20
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MENTIONED = re.compile(r"(?<![\w/.-])((?:scripts|references|assets)/[\w./-]*\w)")
SECRET = re.compile(r"(?:sk|df|ghp|xox[bp])[-_][A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY")


def read(folder: Path) -> tuple[dict, str]:
    """Settings and body of SKILL.md. Raises ValueError in words."""
    try:
        text = (folder / "SKILL.md").read_text("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"SKILL.md cannot be read: {error}") from None
    found = re.match(r"---[ \t]*\n(.*?)\n---[ \t]*\n(.*)\Z", text, re.DOTALL)
    if found is None:
        raise ValueError("SKILL.md must begin with settings between two lines of ---")
    try:
        settings = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise ValueError(
            f"the settings are no YAML: {str(error).splitlines()[0]}; quote texts that hold ': '"
        ) from None
    if not isinstance(settings, dict):
        raise ValueError("the settings must be keys with values")
    return settings, found[2]


def check(folder: Path) -> tuple[list[str], list[str]]:
    """What is wrong, and what could be better."""
    try:
        settings, body = read(folder)
    except ValueError as error:
        return [str(error)], []
    wrong, better = [], []
    name, description = settings.get("name"), settings.get("description")
    if (
        not isinstance(name, str)
        or not re.fullmatch(r"[^\W_A-Z]+(-[^\W_A-Z]+)*", name)
        or len(name) > 64
        or name != unicodedata.normalize("NFKC", name).lower()
    ):
        wrong.append(f"name {name!r}: lower case letters, digits and single hyphens, at most 64")
    elif name != folder.name:
        wrong.append(f"name is {name!r}, but the folder is called {folder.name!r}")
    if not isinstance(description, str) or not description.strip():
        wrong.append("description is missing")
    else:
        if len(description) > 1024 or re.search("[<>]", description):
            wrong.append("description: at most 1024 letters, without < and >")
        elif len(description) > 200:
            better.append(f"description has {len(description)} letters; all skills share the prompt, stay below 200")
        if not re.search(r"\b(use|when|for)\b|用于|当", description, re.IGNORECASE):
            better.append("description should say when to use the skill")
    if unknown := settings.keys() - KEYS:
        wrong.append(
            f"settings {', '.join(sorted(map(str, unknown)))} are not in the specification; put them under metadata"
        )
    if not settings.get("license"):
        better.append("license is missing")
    lines = body.count("\n")
    if lines > MAX_LINES:
        better.append(f"the text has {lines} lines; move details to references/")
    if len(body.split()) < 40:
        better.append("the text is very short")
    for file in sorted({*MENTIONED.findall(body)}):
        if not (folder / file).exists():
            wrong.append(f"{file} is mentioned, but does not exist")
    for file in sorted(folder.rglob("*")):
        relative = file.relative_to(folder)
        if file.is_symlink():
            wrong.append(f"{relative} is a link")
        elif file.is_file():
            wrong += inspect_file(file, relative)
            if (
                relative.parts[0] == "scripts"
                and file.suffix == ".py"
                and "__main__" in file.read_text("utf-8", "replace")
                and file.name not in body
            ):
                better.append(f"{relative} is not mentioned in the text")
    files = [file for file in folder.rglob("*") if file.is_file()]
    if len(files) > MAX_FILES or sum(file.stat().st_size for file in files) > MAX_BYTES:
        wrong.append(f"more than {MAX_FILES} files or {MAX_BYTES >> 20} MB")
    if sum(file.name == "SKILL.md" for file in files) > 1:
        wrong.append("there is more than one SKILL.md")
    if any(info.strip() in ("", "sh", "shell") for info, _ in FENCE.findall(body)):
        better.append(
            "name the language of each code block: bash for commands that run, `bash network` for those that need the network"
        )
    return wrong, better


def inspect_file(file: Path, relative: Path) -> list[str]:
    found = []
    data = file.read_bytes()
    if SECRET.search(data.decode("latin-1")):
        found.append(f"{relative} seems to hold a key")
    if any(part in ("__pycache__", "node_modules", ".git", ".env") for part in relative.parts):
        found.append(f"{relative} does not belong into a skill")
    if file.suffix == ".py":
        try:
            ast.parse(data)
        except SyntaxError as error:
            found.append(f"{relative}:{error.lineno}: {error.msg}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    failed = False
    for folder in parser.parse_args().folders:
        wrong, better = check(folder.resolve())
        failed |= bool(wrong)
        print(f"{folder.name}: {'not valid' if wrong else 'valid'}")
        print("".join(f"- {line}\n" for line in wrong) + "".join(f"? {line}\n" for line in better), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
