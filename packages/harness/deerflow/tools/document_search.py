"""Search in the text of documents: what ``grep`` finds in a PDF or a workbook, with the page that it stands on."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from deerflow.context import RunContext
from deerflow.sandbox.documents import READ_BY_TEXT, TEXTS, markdown_of
from deerflow.sandbox.interface import UPLOADS, Entry, GrepMatch, Sandbox, SandboxError

MOST, SECONDS = 100, 60.0
"""Documents whose text one search looks at, and how long it may make texts that are not there yet."""
MOST_MATCHES = 500
MOST_LISTED = 5000
_MARK = re.compile(r"<!-- ((?:page|slide|message) \d+) of \d+|## (\S.*)")


@dataclass(slots=True)
class Searched:
    """The documents of a search."""

    texts: dict[str, str] = field(default_factory=dict)
    """Documents, by their texts."""
    found: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Why a document was not searched, in words."""


async def documents_below(sandbox: Sandbox, context: RunContext, entry: Entry, glob: str | None) -> Searched:
    """Return the texts of the documents at or below a path; those that are missing or old are made."""
    if entry.kind == "directory":
        paths, _ = await sandbox.glob(entry.path, glob or "**/*", cap=MOST_LISTED)
    else:
        paths = [entry.path]
    found = [path for path in paths if PurePosixPath(path).suffix.lower() in READ_BY_TEXT]
    if not found or (converters := context.machine.converters) is None:
        return Searched()
    searched = Searched(found=found)
    names = {path: PurePosixPath(path).name for path in found}
    try:
        async with asyncio.timeout(SECONDS):
            for path in found[:MOST]:
                try:
                    text = await markdown_of(sandbox, path, converters, context.principal.user_id)
                    searched.texts[text] = path
                except SandboxError as error:
                    searched.skipped.append(str(error).rstrip("."))
                del names[path]
    except TimeoutError:
        pass
    if names:
        some = ", ".join(list(names.values())[:5])
        searched.skipped.append(
            f"{len(names)} documents ({some}{', …' if len(names) > 5 else ''}): search in them one by one"
        )
    return searched


async def matches_in(
    sandbox: Sandbox, texts: Mapping[str, str], pattern: str, *, literal: bool, case_sensitive: bool
) -> list[GrepMatch]:
    """Return the matches in texts, under the names of their documents, each line with the page that it stands on."""
    found: list[GrepMatch] = []
    for place, glob in ((UPLOADS, "*.md"), (TEXTS, None)):
        if any(text.startswith(f"{place}/") for text in texts):
            matches, _ = await sandbox.grep(
                place, pattern, glob=glob, literal=literal, case_sensitive=case_sensitive, cap=MOST_MATCHES
            )
            found += [match for match in matches if match.path in texts and match.line_number > 1]
    marks = {path: await _marks(sandbox, path) for path in {match.path for match in found}}
    return [
        GrepMatch(texts[match.path], match.line_number, f"{_place(marks[match.path], match.line_number)}{match.line}")
        for match in found
        if not match.line.startswith("<!-- ")
    ]


async def _marks(sandbox: Sandbox, path: str) -> Sequence[tuple[int, str]]:
    """The lines at which pages, slides, messages or sheets begin."""
    data, _ = await sandbox.read(path)

    def look() -> list[tuple[int, str]]:
        lines = data.decode("utf-8", "replace").split("\n")
        found = ((number, _MARK.match(line)) for number, line in enumerate(lines, 1))
        marks = [(number, mark[1] or mark[2]) for number, mark in found if mark]
        pages = [mark for mark in marks if re.match(r"(?:page|slide|message) \d", mark[1])]
        return pages or marks

    return await asyncio.to_thread(look)


def _place(marks: Sequence[tuple[int, str]], number: int) -> str:
    at = bisect_right(marks, number, key=lambda mark: mark[0])
    return f"[{marks[at - 1][1]}] " if at else ""
