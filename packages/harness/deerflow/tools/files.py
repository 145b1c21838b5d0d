"""The tools for the sandbox's files: list, read, write, change, and hand to the person.

Failures come back as ``Error: ...`` text that says what to do; the model reads it and goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
from pathlib import PurePosixPath
from shlex import quote
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import Command
from pydantic import Field

from deerflow.sandbox.documents import PAGES, is_document, markdown_of
from deerflow.sandbox.files import shown_path
from deerflow.sandbox.interface import (
    OUTPUTS,
    UPLOADS,
    WORKSPACE,
    Entry,
    Sandbox,
    SandboxError,
    SandboxFileError,
)
from deerflow.security.encodings import HEAD, Encoding
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.shell import Description, Path, cut_tail, settings
from deerflow.tools.texts import Window, damaged, encoding_of, entry_at, seen, window

LARGE = 1 << 20
"""Bytes that are hashed in a thread of their own."""


@async_tool("ls")
async def ls_tool(path: Path, runtime: Runtime, description: Description = "") -> str:
    """List a directory, two levels deep."""
    sandbox = await runtime.context.sandbox()
    if (await entry_at(sandbox, path, "Directory")).kind != "directory":
        return f"Error: Not a directory: {path}. Use read_file to read it."
    entries, cut = await sandbox.list(path, depth=2)
    lines = [shown_path(entry.path) + ("/" if entry.kind == "directory" else "") for entry in entries]
    if cut:
        lines.append(f"... [only the first {len(entries)} entries are shown: list a more specific path]")
    return cut_tail(
        "\n".join(lines) or "(empty)", settings(runtime).sandbox.ls_output_max_chars, "Use a more specific path."
    )


@async_tool("read_file")
async def read_file_tool(
    path: Path,
    runtime: Runtime,
    start_line: Annotated[int | None, Field(description="First line, 1-based")] = None,
    end_line: Annotated[int | None, Field(description="Last line, inclusive")] = None,
    start_char: Annotated[int, Field(description="For a very long line: where in start_line to begin, 1-based")] = 1,
    description: Description = "",
) -> str:
    """Read a text file, or a range of its lines, each with its number before it as in grep; also the text of PDF, Office and
    mail files, with its pages marked."""
    sandbox = await runtime.context.sandbox()
    entry = await _file(sandbox, path)
    notes, why = list[str](), ""
    is_page = PurePosixPath(path).suffix.lower() in PAGES and path.startswith(f"{UPLOADS}/")
    convert = entry.size > 0 and (is_page or is_document(path))
    data, size = (b"", entry.size) if convert else await sandbox.read(path)
    if convert or is_document(path, data[:HEAD]):
        source = "; for its HTML use bash" if is_page else ""
        try:
            user = runtime.context.principal.user_id
            shown = await markdown_of(sandbox, path, runtime.context.reader(), user)
            notes, path = [f"this is the text of {path}, which is kept in {shown}{source}"], shown
            entry = await _file(sandbox, path)
        except SandboxError as error:
            if is_page:
                return f"Error: {error} Its HTML can be looked at with bash."
            why = f" {error}"
        data, size = await sandbox.read(path)
    if found := kind_of(data, path):
        return f"Error: {path} is {found[0]} ({entry.size} bytes), not text.{why} {found[1]}"
    encoding = await encoding_of(data, runtime.context, cut=size > len(data))
    if encoding is None:
        return (
            f"Error: {path} is a binary file ({entry.size} bytes).{why} Use bash with a suitable program to inspect it."
        )
    sandbox.seen_files.remember(path, entry.modified, entry.size)
    limit, first, skip = (
        settings(runtime).sandbox.read_file_output_max_chars,
        max(1, start_line or 1),
        max(0, start_char - 1),
    )
    part = await window(sandbox, path, (data, size), encoding, (first, end_line), skip, limit)
    if part.total is not None and first > max(1, part.total):
        return f"Error: start_line {start_line} is beyond the end of {path}, which has {part.total} lines."
    notes += [note for note in (_line_ends(part.text), _encoding(encoding, part.text)) if note]
    return _shown(part, first, end_line, skip, limit, notes)


@async_tool("write_file", with_artifact=True)
async def write_file_tool(
    path: Path,
    content: str,
    runtime: Runtime,
    append: Annotated[bool, Field(description="Add to the end instead of replacing")] = False,
    description: Description = "",
) -> str | tuple[str, dict[str, Any]]:
    """Write a text file; directories are made as needed."""
    sandbox = await runtime.context.sandbox()
    async with sandbox.seen_files.lock(path):
        if not append and (refusal := await _refusal(sandbox, path)):
            return refusal
        before = await sandbox.stat(path)
        replaced = before is not None and not append and before.size and not sandbox.seen_files.knows(path)
        try:
            written = await _write(sandbox, path, content.encode("utf-8", "surrogateescape"), append=append)
        except UnicodeEncodeError as error:
            raise SandboxFileError(str(error)) from error
    read = f". This replaced a file of {before.size} bytes that you had not read." if before and replaced else ""
    return f"OK: {_lines(content)} {'added' if append else 'written'}, {written['bytes']} bytes{read}", {
        "files": [written]
    }


@async_tool("str_replace", with_artifact=True)
async def str_replace_tool(
    path: Path,
    old_str: str,
    new_str: str,
    runtime: Runtime,
    replace_all: Annotated[bool, Field(description="Replace every occurrence")] = False,
    description: Description = "",
) -> str | tuple[str, dict[str, Any]]:
    """Replace text in a file. old_str must occur exactly once unless replace_all is set."""
    if not old_str:
        return "Error: old_str is empty. Give the text to replace, or use write_file for a new file."
    sandbox = await runtime.context.sandbox()
    async with sandbox.seen_files.lock(path):
        await _file(sandbox, path)
        if refusal := await _refusal(sandbox, path):
            return refusal
        data, size = await sandbox.read(path)
        if size > len(data):
            return f"Error: {path} is too large for str_replace ({size} bytes). Use bash, e.g. sed, to change it."
        if kind := kind_of(data, path):
            return f"Error: {path} is {kind[0]}, not text. {kind[1]}"
        encoding = await encoding_of(data, runtime.context)
        if encoding is None:
            return f"Error: {path} is a binary file. Use bash with a suitable program to change it."
        text = encoding.decode(data)
        if await asyncio.to_thread(_encoded, text, encoding) != data:
            return f"Error: {path} holds bytes that are no {encoding.name}. Convert it first, e.g. with iconv in bash."
        wanted = _any_line_ends(old_str)
        count = len(wanted.findall(text))
        if count == 0:
            return f"Error: String to replace not found in file: {path}. Read the file and copy the text exactly."
        if count > 1 and not replace_all:
            return f"Error: old_str occurs {count} times in {path}. Add surrounding lines to make it unique, or set replace_all."
        new = _LINE_END.sub(_usual_line_end(text), new_str)
        replaced = await asyncio.to_thread(_encoded, wanted.sub(lambda _: new, text), encoding)
        if replaced is None:
            return f"Error: {path} is {encoding.name}, which cannot say all of new_str. Convert it to UTF-8 first, e.g. with iconv in bash."
        written = await _write(sandbox, path, replaced)
    where = text.count("\n", 0, wanted.search(text).start()) + 1  # type: ignore[union-attr] - it was counted
    return f"OK: {count} replaced, from line {where} on; the file has {written['bytes']} bytes", {"files": [written]}


@async_tool("present_files")
async def present_file_tool(
    filepaths: Annotated[list[str], Field(description=f"Paths in {OUTPUTS}; a directory is presented as a ZIP file")],
    runtime: Runtime,
) -> Command[Any]:
    """Show finished files in /mnt/user-data/outputs to the user. Call it once they are complete."""
    try:
        sandbox = await runtime.context.sandbox()
        found = {path: await _presentable(sandbox, path) for path in await _expanded(sandbox, filepaths)}
        artifacts = list(dict.fromkeys(file for file in found.values() if file))
        written = [await receipt(sandbox, file) for file in artifacts]
    except SandboxError as error:
        raise ToolException(f"Error: {error}") from error
    outside = [path for path, file in found.items() if file is None]
    missing = [path for path, file in found.items() if file == ""]
    problems = [f"No such file: {', '.join(missing)}. Write the file before presenting it."] if missing else []
    if outside or not filepaths:
        named = ", ".join(outside) or "none was named"
        problems.append(f"Only files in {OUTPUTS} can be presented: {named}. Copy them there first.")
    if not artifacts:
        raise ToolException(f"Error: {' '.join(problems)}")
    packed = [
        f"{path} as {file}"
        for path, file in found.items()
        if file and file.endswith(".zip") and not path.endswith(".zip")
    ]
    text = "Successfully presented files" + (f": {', '.join(packed)}" if packed else "")
    message = ToolMessage(
        "\n".join([text, *(f"Not presented: {problem}" for problem in problems)]),
        tool_call_id=runtime.tool_call_id or "",
        name="present_files",
        artifact={"files": written},
    )
    return Command(update={"messages": [message], "artifacts": artifacts})


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n") and bool(text))
    return f"{count} line{'' if count == 1 else 's'}"


async def receipt(sandbox: Sandbox, path: str, data: bytes | None = None) -> dict[str, Any]:
    """``{path, bytes, sha256}`` of a file; without the digest if it is larger than one read.

    Args:
        data: what it holds. None: it is read.
    """
    data, size = await sandbox.read(path) if data is None else (data, len(data))
    if size > len(data):
        return {"path": path, "bytes": size}
    digest = await asyncio.to_thread(hashlib.sha256, data) if size > LARGE else hashlib.sha256(data)
    return {"path": path, "bytes": size, "sha256": digest.hexdigest()}


async def _file(sandbox: Sandbox, path: str) -> Entry:
    entry = await entry_at(sandbox, path, "File")
    if entry.kind == "directory":
        raise SandboxFileError(f"Path is a directory: {path}. Use ls to list it.")
    return entry


async def _refusal(sandbox: Sandbox, path: str) -> str | None:
    """Why ``path`` must not be overwritten now, if so."""
    entry = await sandbox.stat(path)
    if entry is not None and entry.kind == "file" and sandbox.seen_files.changed(path, entry.modified, entry.size):
        return f"Error: {path} has changed since you last read it. Read it again, then repeat the change on what it says now."
    return None


async def _write(sandbox: Sandbox, path: str, data: bytes, *, append: bool = False) -> dict[str, Any]:
    await sandbox.write(path, data, append=append)
    written = await receipt(sandbox, path, None if append else data)
    if entry := await sandbox.stat(path):
        sandbox.seen_files.remember(path, entry.modified, entry.size)
    return written


def _encoded(text: str, encoding: Encoding) -> bytes | None:
    """The bytes of a file; None if its encoding cannot say the text."""
    try:
        return encoding.encode(text)
    except UnicodeEncodeError:
        return None


def _shown(part: Window, first: int, end_line: int | None, skip: int, limit: int, notes: list[str]) -> str:
    """Lines with their numbers, up to ``limit`` characters (0: all), with what stands about them in brackets."""
    lines = part.text.split("\n")
    if not lines[-1]:
        lines.pop()
    if end_line is not None:
        lines = lines[: max(0, end_line - first + 1)]
    of = f" of {part.total}" if part.total is not None else ""
    room = limit - 300 if limit > 600 else limit
    rows: list[str] = []
    used = 0
    for number, each in enumerate(lines, first):
        row = f"{number}: {seen(each.removesuffix(chr(13)).replace(chr(13), chr(10)))}"
        if limit and used + len(row) + 1 > room:
            if rows:
                notes.append(f"lines {first} to {number - 1}{of} are shown; go on with start_line={number}")
            else:
                begin, reached = skip + 1, skip + room - len(f"{number}: ")
                rows.append(row[:room])
                notes.append(
                    f"line {first}{of} is longer, its characters {begin} to {reached} are shown; "
                    f"go on with start_line={first} and start_char={reached + 1}"
                )
            break
        rows.append(row)
        used += len(row) + 1
    else:
        if part.total is None and (end_line is None or first + len(lines) <= end_line):
            notes.append(f"there are more lines; go on with start_line={first + len(lines)}")
    about = f"\n[{'; '.join(notes)}]" if notes else ""
    return ("\n".join(rows) or "(empty)") + about


# presented files ------------------------------------------------------------------------------------------------------


async def _presentable(sandbox: Sandbox, path: str) -> str | None:
    """The file's canonical path, "" if there is none, None if it may not be presented."""
    if path.startswith("/") and ".." in path.split("/"):
        return None
    names = (
        ["/" + path.lstrip("/")] if path.startswith("/") else [f"{OUTPUTS}/{path}", f"{WORKSPACE}/{path}", f"/{path}"]
    )
    inside = [name for name in map(posixpath.normpath, names) if name.startswith(OUTPUTS + "/")]
    for name in inside:
        entry = await sandbox.stat(name)
        if entry is not None and entry.kind == "file":
            return name
        if entry is not None and entry.kind == "directory":
            return await _packed(sandbox, name)
    return "" if inside else None


async def _expanded(sandbox: Sandbox, paths: list[str]) -> list[str]:
    """The paths, with what lies in the outputs in place of the outputs themselves."""
    found: list[str] = []
    for path in paths:
        if posixpath.normpath(path) != OUTPUTS:
            found.append(path)
            continue
        entries, _ = await sandbox.list(OUTPUTS, depth=1)
        names = {entry.path for entry in entries if not posixpath.basename(entry.path).startswith(".")}
        found += sorted(name for name in names if name.removesuffix(".zip") == name or name[:-4] not in names)
    return found


_PACK = """
import os, sys, zipfile
name = sys.argv[1]
with zipfile.ZipFile(name + ".zip", "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as packed:
    for place, folders, files in os.walk(name):
        folders.sort()
        for path in [os.path.join(place, file) for file in sorted(files)] or [place] * (not folders):
            if os.path.isfile(path) or path == place:
                packed.write(path)
"""


async def _packed(sandbox: Sandbox, directory: str) -> str:
    """A ZIP file of the directory, beside it."""
    parent, name = posixpath.split(directory)
    # With a variable it runs apart from the session, whose directory it must not change. Files there are no modules (-I).
    done = await sandbox.exec(f"python3 -I -c {quote(_PACK)} ./{quote(name)}", cwd=parent, env={"DEERFLOW_PACK": "1"})
    if done.exit_code:
        raise SandboxError(f"{directory} could not be packed: {done.output.strip()[-300:]}")
    return f"{directory}.zip"


# kinds, encodings and line ends ---------------------------------------------------------------------------------------

_OFFICE = {
    ".docx": ("a Word document", "Read it in bash with Python: docx.Document(path)."),
    ".xlsx": ("an Excel workbook", "Read it in bash with Python: pandas.read_excel(path, sheet_name=None)."),
    ".pptx": ("a PowerPoint presentation", "Read it in bash with Python: pptx.Presentation(path)."),
}
_IMAGE = "Use view_image if you have it, or Python (PIL) in bash."
_ARCHIVE = "List and unpack it in bash."
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF document", "Read it in bash with Python: pypdf.PdfReader(path).pages[0].extract_text()."),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", _IMAGE),
    (b"\xff\xd8\xff", "a JPEG image", _IMAGE),
    (b"GIF8", "a GIF image", _IMAGE),
    (b"II*\0", "a TIFF image", _IMAGE),
    (b"MM\0*", "a TIFF image", _IMAGE),
    (b"PK\x03\x04", "a ZIP archive", _ARCHIVE),
    (b"\x1f\x8b", "a gzip archive", _ARCHIVE),
    (b"BZh", "a bzip2 archive", _ARCHIVE),
    (b"\xfd7zXZ\0", "an xz archive", _ARCHIVE),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", _ARCHIVE),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _ARCHIVE),
    (b"Rar!\x1a\x07", "a RAR archive", _ARCHIVE),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Office document",
        "Convert it in bash, e.g. with libreoffice or xlrd.",
    ),
    (b"SQLite format 3\0", "an SQLite database", "Read it in bash with Python: sqlite3 or duckdb."),
    (b"PAR1", "a Parquet file", "Read it in bash with Python: duckdb or pandas."),
)


def kind_of(data: bytes, path: str) -> tuple[str, str] | None:
    """What a file is by its first bytes, and how to read it; None: it may be text."""
    if data[257:262] == b"ustar":
        return "a tar archive", _ARCHIVE
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "a WebP image", _IMAGE
    found = next(((kind, way) for magic, kind, way in _MAGIC if data.startswith(magic)), None)
    return _OFFICE.get(path[-5:].lower(), found) if data.startswith(b"PK") and found else found


_LINE_END = re.compile(r"\r\n|\r|\n")


def _any_line_ends(text: str) -> re.Pattern[str]:
    """``text`` as it may stand in a file with other line ends."""
    return re.compile("(?:\\r\\n|\\r|\\n)".join(map(re.escape, _LINE_END.split(text))))


def _usual_line_end(text: str) -> str:
    windows = text.count("\r\n")
    counts = {"\n": text.count("\n") - windows, "\r\n": windows, "\r": text.count("\r") - windows}
    return max(counts, key=lambda end: counts[end])


def _line_ends(text: str) -> str:
    names = {"\r\n": "Windows line ends (CRLF)", "\r": "old Mac line ends (CR)"}
    name = names.get(_usual_line_end(text), "some lines end with CR" if "\r" in text else "")
    return f"{name}: str_replace keeps them" if name else ""


def _encoding(encoding: Encoding, text: str) -> str:
    if not encoding.usual:
        return f"read as {encoding.name}: str_replace keeps it"
    return "not UTF-8: bytes that are none are shown as \N{REPLACEMENT CHARACTER}" if damaged(text) else ""


FILE_TOOLS: tuple[BaseTool, ...] = (ls_tool, read_file_tool, write_file_tool, str_replace_tool)
