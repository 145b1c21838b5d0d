"""Static rules over a skill's files. What they find is advice for the person who installs it: the sandbox is the boundary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import TypedDict

from deerflow.security.text import inline

MAX_SCANNED_BYTES = 1 << 20
_LONGEST_LINE = 2000

_RULES = tuple(
    (why, re.compile(pattern, re.IGNORECASE))
    for why, pattern in (
        ("runs what it downloads", r"\b(?:curl|wget)\b[^|]{0,300}\|\s{0,5}(?:sudo\s)?(?:ba|z|da)?sh\b"),
        (
            "runs hidden code",
            r"base64\s{1,5}(?:-d|--decode|-D)\b[^|]{0,200}\||\b(?:eval|exec)\s?\([^)]{0,80}(?:b64|fromhex|decode|zlib)",
        ),
        (
            "looks for keys or passwords",
            r"\.ssh/|id_rsa|\.aws/credentials|\.netrc|/etc/shadow|\.git-credentials|\.kube/config",
        ),
        (
            "sends data away",
            r"requests\.(?:post|put)|\bcurl\b[^\n]{0,200}\s(?:-d|--data\S{0,10}|-F|-T|--upload-file)\s",
        ),
        ("deletes more than its own", r"\brm\s{1,5}-[a-z]{0,6}[rf][a-z]{0,6}\s{1,5}(?:/|~|\$HOME)(?:\s|$|\*)"),
        (
            "wants to override instructions",
            r"\b(?:ignore|disregard|forget)\s{1,5}(?:all\s|any\s|the\s|your\s){0,3}(?:previous|prior|above|system)\b",
        ),
        (
            "wants to hide something from the user",
            r"\b(?:do not|don't|never)\s{1,5}(?:tell|inform|mention|reveal)[^.\n]{0,40}\buser\b",
        ),
        ("holds invisible characters", "[\u200b\u202a-\u202e\u2060-\u2069\U000e0000-\U000e007f]"),
    )
)
_PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


class Finding(TypedDict):
    """``why``: what a line of the file may do; ``text``: the line."""

    file: str
    line: int
    why: str
    text: str


def scan(folder: Path) -> list[Finding]:
    """What is worth a look in a skill: each rule once per file. Blocks."""
    return [finding for file in sorted(folder.rglob("*")) if file.is_file() for finding in _of_file(file, folder)]


def _of_file(file: Path, folder: Path) -> Iterator[Finding]:
    name = file.relative_to(folder).as_posix()
    with file.open("rb") as stream:
        data = stream.read(MAX_SCANNED_BYTES)
    if data.startswith(_PROGRAMS):
        yield {"file": name, "line": 0, "why": "is a program without its source", "text": ""}
        return
    yield from scan_text(name, data.decode("utf-8", "replace"))


def scan_text(name: str, text: str) -> list[Finding]:
    """What is worth a look in one file: each rule once."""
    found: dict[str, Finding] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for why, pattern in _RULES:
            if why not in found and pattern.search(line[:_LONGEST_LINE]):
                found[why] = {"file": name, "line": number, "why": why, "text": inline(line.strip(), 120)}
    return list(found.values())
