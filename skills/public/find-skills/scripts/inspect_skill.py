"""Look into a skill (folder or .skill/.zip archive) without running it: what it is, what it may do, what is suspicious."""

from __future__ import annotations

import argparse
import re
import stat
import sys
import zipfile
from pathlib import Path, PurePosixPath

MAX_BYTES, MAX_FILES, MAX_RATIO = 64 << 20, 2000, 200
SIGNS = {
    "reaches hosts": re.compile(r"https?://([\w.-]+\.[a-z]{2,})", re.IGNORECASE),
    "starts programs": re.compile(r"\b(subprocess|os\.system|child_process|exec\(|popen)", re.IGNORECASE),
    "reads variables": re.compile(r"(?:environ(?:\.get)?[\[(]\s*['\"]|process\.env\.|\$\{?)([A-Z][A-Z0-9_]{3,})"),
    "installs packages": re.compile(
        r"\b((?:pip3?|npm|npx|apt(?:-get)?|brew|curl[^\n|]*\|\s*(?:ba)?sh|uvx?)\s+(?:install|add|-y|i)\b|curl[^\n|]*\|\s*(?:ba)?sh)"
    ),
    "reads private places": re.compile(
        r"(~/\.ssh|\.aws/credentials|/etc/(?:passwd|shadow)|id_rsa|\.netrc|keychain|Cookies\b)"
    ),
    "hides code": re.compile(
        r"(eval\(|exec\(\s*(?:base64|zlib|bytes)|base64\.b64decode\(['\"]|fromCharCode|[A-Za-z0-9+/]{400,})"
    ),
}
ORDERS = re.compile(
    r"(ignore (?:all |any )?(?:previous|prior|other) (?:instructions|rules)|do not (?:tell|inform|mention)[^.\n]{0,30}(?:user|person|human)|without (?:asking|telling) the (?:user|person)|disable (?:the )?(?:sandbox|guardrail|approval)|you are now\b|system prompt)",
    re.IGNORECASE,
)
INVISIBLE = re.compile("[\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0000-\U000e007f]")
TEXTS = (".md", ".txt", ".py", ".js", ".ts", ".sh", ".json", ".yaml", ".yml", ".toml", ".html", ".rb", ".pl", "")


def files_of(path: Path) -> tuple[dict[str, bytes], list[str]]:
    """Files by their path in the skill, and what is wrong with the container."""
    wrong: list[str] = []
    found: dict[str, bytes] = {}
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_symlink():
                wrong.append(f"{file.relative_to(path)} is a link")
            elif file.is_file():
                found[file.relative_to(path).as_posix()] = file.read_bytes()
        return found, wrong
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        size, packed = sum(entry.file_size for entry in entries), sum(entry.compress_size for entry in entries)
        if len(entries) > MAX_FILES or size > MAX_BYTES or size > MAX_RATIO * max(packed, 1024):
            return {}, [f"{len(entries)} files of {size >> 20} MB unpacked from {packed >> 10} kB: too much"]
        for entry in entries:
            path_in = entry.filename.replace("\\", "/")  # as archives made on Windows have it
            name = PurePosixPath(path_in)
            if name.is_absolute() or ".." in name.parts:
                wrong.append(f"{entry.filename} leaves the folder")
            elif stat.S_ISLNK(entry.external_attr >> 16):
                wrong.append(f"{entry.filename} is a link")
            elif not path_in.endswith("/"):
                found[path_in] = archive.read(entry)
    return found, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("skill", type=Path, help="a folder, or a .skill or .zip file")
    path = parser.parse_args().skill
    try:
        files, wrong = files_of(path)
    except (OSError, zipfile.BadZipFile) as error:
        print(f"{path} cannot be read: {error}", file=sys.stderr)
        return 2
    texts = {
        name: data.decode("utf-8", "replace")
        for name, data in files.items()
        if PurePosixPath(name).suffix.lower() in TEXTS
    }
    heads = [name for name in files if PurePosixPath(name).name == "SKILL.md"]
    if len(heads) != 1:
        wrong.append(f"there are {len(heads)} SKILL.md; a skill has one")
    if heads:
        front = re.match(r"---\s*\n(.*?)\n---", texts[heads[0]], re.DOTALL)
        print(front[1] if front else "(no settings)")
        if not front:
            wrong.append("SKILL.md has no settings")
    programs = [
        name
        for name in files
        if PurePosixPath(name).suffix in (".py", ".sh", ".js", ".ts", ".rb", ".pl") or files[name][:2] == b"#!"
    ]
    binary = [
        name
        for name in files
        if name not in texts
        and PurePosixPath(name).suffix.lower()
        not in (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".woff2", ".pdf", ".docx", ".pptx", ".xlsx")
    ]
    print(
        f"\n{len(files)} files, {sum(map(len, files.values())) / 1024:.0f} kB; programs: {', '.join(programs) or 'none'}"
    )
    for sign, pattern in SIGNS.items():
        hits = sorted(
            {
                f"{match[1] if match.groups() and len(match[1] or '') < 60 else '…'} ({PurePosixPath(name).name})"
                for name, text in texts.items()
                for match in pattern.finditer(text)
            }
        )
        if hits:
            print(f"? {sign}: {', '.join(hits[:12])}{' …' if len(hits) > 12 else ''}")
    for name, text in texts.items():
        wrong += [f"{name} gives orders against the person: {match[0]!r}" for match in ORDERS.finditer(text)]
        if INVISIBLE.search(text):
            wrong.append(f"{name} holds invisible letters")
    wrong += [
        f"{name} is a program or data that cannot be read"
        for name in binary
        if files[name][:4] in (b"\x7fELF", b"MZ\x90\0", b"\xcf\xfa\xed\xfe")
    ]
    for line in wrong:
        print(f"- {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
