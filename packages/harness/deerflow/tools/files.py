"""The tools for the sandbox's files: list, read, write, change and search.

Failures come back as ``Error: ...`` text that says what to do; the model reads it and goes on.
"""

from __future__ import annotations

import codecs
import re
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from deerflow.sandbox.files.errors import shown_path
from deerflow.sandbox.interface import (
    Entry,
    Sandbox,
    SandboxError,
    SandboxFileError,
    SandboxFileNotFoundError,
)
from deerflow.sandbox.truncate import cut_tail
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.shell import Description, settings

Path = Annotated[str, Field(description="Absolute path")]

GLOB_MAX = 1000
GREP_MAX = 500


@async_tool("ls")
async def ls_tool(description: Description, path: Path, runtime: Runtime) -> str:
    """List a directory, two levels deep."""
    try:
        sandbox = await runtime.context.sandbox()
        entry = await sandbox.stat(path)
        if entry is None:
            return f"Error: Directory not found: {path}"
        if entry.kind != "directory":
            return f"Error: Not a directory: {path}. Use read_file to read it."
        entries, cut = await sandbox.list(path, depth=2)
    except SandboxError as error:
        return f"Error: {error}"
    lines = [shown_path(entry.path) + ("/" if entry.kind == "directory" else "") for entry in entries]
    if cut:
        lines.append(f"... [only the first {len(entries)} entries are shown: list a more specific path]")
    return cut_tail(
        "\n".join(lines) or "(empty)", settings(runtime).sandbox.ls_output_max_chars, "Use a more specific path."
    )


@async_tool("read_file")
async def read_file_tool(
    description: Description,
    path: Path,
    runtime: Runtime,
    start_line: Annotated[int | None, Field(description="First line, 1-based")] = None,
    end_line: Annotated[int | None, Field(description="Last line, inclusive")] = None,
) -> str:
    """Read a text file, or a range of its lines."""
    try:
        sandbox = await runtime.context.sandbox()
        entry = await _file(sandbox, path)
        data, size = await sandbox.read(path)
    except SandboxError as error:
        return f"Error: {error}"
    text = decode_text(data, cut=size > len(data))
    if text is None:
        return f"Error: {path} is a binary file ({entry.size} bytes). Use bash with a suitable program to inspect it."
    text = _BYTES.sub("\N{REPLACEMENT CHARACTER}", text)
    sandbox.seen_files.remember(path, entry.modified, entry.size)
    if start_line is not None or end_line is not None:
        text = _line_range(text, start_line, end_line)
        if text is None:
            return f"Error: start_line {start_line} is beyond the end of {path}."
    hint = "Use start_line and end_line to read a part."
    return cut_tail(text or "(empty)", settings(runtime).sandbox.read_file_output_max_chars, hint)


@async_tool("write_file")
async def write_file_tool(
    description: Description,
    path: Path,
    content: str,
    runtime: Runtime,
    append: Annotated[bool, Field(description="Add to the end instead of replacing")] = False,
) -> str:
    """Write a text file; directories are made as needed."""
    try:
        sandbox = await runtime.context.sandbox()
        async with sandbox.seen_files.lock(path):
            if not append and (refusal := await _refusal(sandbox, path)):
                return refusal
            await sandbox.write(path, content.encode("utf-8", "surrogateescape"), append=append)
            await _remember(sandbox, path)
    except (SandboxError, UnicodeEncodeError) as error:
        return f"Error: {error}"
    return "OK"


@async_tool("str_replace")
async def str_replace_tool(
    description: Description,
    path: Path,
    old_str: str,
    new_str: str,
    runtime: Runtime,
    replace_all: Annotated[bool, Field(description="Replace every occurrence")] = False,
) -> str:
    """Replace text in a file. old_str must occur exactly once unless replace_all is set."""
    if not old_str:
        return "Error: old_str is empty. Give the text to replace, or use write_file for a new file."
    try:
        sandbox = await runtime.context.sandbox()
        async with sandbox.seen_files.lock(path):
            await _file(sandbox, path)
            if refusal := await _refusal(sandbox, path):
                return refusal
            data, size = await sandbox.read(path)
            if size > len(data):
                return f"Error: {path} is too large for str_replace ({size} bytes). Use bash, e.g. sed, to change it."
            text = decode_text(data)
            if text is None:
                return f"Error: {path} is a binary file. Use bash with a suitable program to change it."
            if text.encode("utf-8", "surrogateescape") != data:
                return f"Error: {path} is not UTF-8 text. Convert it first, e.g. with iconv in bash."
            count = text.count(old_str)
            if count == 0:
                return f"Error: String to replace not found in file: {path}. Read the file and copy the text exactly."
            if count > 1 and not replace_all:
                return f"Error: old_str occurs {count} times in {path}. Add surrounding lines to make it unique, or set replace_all."
            await sandbox.write(path, text.replace(old_str, new_str).encode("utf-8", "surrogateescape"))
            await _remember(sandbox, path)
    except (SandboxError, UnicodeEncodeError) as error:
        return f"Error: {error}"
    return "OK"


@async_tool("glob")
async def glob_tool(
    description: Description,
    pattern: Annotated[str, Field(description="e.g. **/*.py")],
    path: Path,
    runtime: Runtime,
    include_dirs: bool = False,
    max_results: int = 200,
) -> str:
    """Find files by name pattern."""
    cap = _cap(runtime, "glob", max_results, 200, GLOB_MAX)
    try:
        sandbox = await runtime.context.sandbox()
        if problem := await _not_a_directory(sandbox, path):
            return problem
        paths, cut = await sandbox.glob(path, pattern, include_dirs=include_dirs, cap=cap)
    except SandboxError as error:
        return f"Error: {error}"
    if not paths:
        return f"No files matched under {path}"
    head = f"Found {len(paths)} paths under {path}" + (f" (showing first {len(paths)})" if cut else "")
    lines = [f"{number}. {shown_path(found)}" for number, found in enumerate(paths, 1)]
    trailer = ["Results truncated: narrow the path or the pattern."] if cut else []
    return "\n".join([head, *lines, *trailer])


@async_tool("grep")
async def grep_tool(
    description: Description,
    pattern: Annotated[str, Field(description="Regular expression")],
    path: Annotated[str, Field(description="Absolute path of a directory or file")],
    runtime: Runtime,
    glob: Annotated[str | None, Field(description="Only files whose name matches, e.g. *.py")] = None,
    literal: Annotated[bool, Field(description="Pattern is plain text")] = False,
    case_sensitive: bool = False,
    max_results: int = 100,
) -> str:
    """Search file contents."""
    cap = _cap(runtime, "grep", max_results, 100, GREP_MAX)
    try:
        sandbox = await runtime.context.sandbox()
        if await sandbox.stat(path) is None:
            return f"Error: Directory not found: {path}"
        matches, cut = await sandbox.grep(
            path, pattern, glob=glob, literal=literal, case_sensitive=case_sensitive, cap=cap
        )
    except SandboxError as error:
        return f"Error: {error}"
    if not matches:
        return f"No matches found under {path}"
    head = f"Found {len(matches)} matches under {path}" + (f" (showing first {len(matches)})" if cut else "")
    lines = [f"{shown_path(match.path)}:{match.line_number}: {match.line}" for match in matches]
    trailer = ["Results truncated: narrow the path, the glob or the pattern."] if cut else []
    return "\n".join([head, *lines, *trailer])


_BYTES = re.compile("[\ud800-\udfff]")
"""Bytes of a text file that are no UTF-8, as Python keeps them; they can be written back, but not sent anywhere."""


def decode_text(data: bytes, *, cut: bool = False) -> str | None:
    """Text of a file, or None if it is binary. UTF-8, and UTF-16 with a byte order mark.

    Args:
        data: the file's content.
        cut: more follows, so that the last character may be incomplete.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # What is no UTF-8 is Latin-1 or the like, or binary.
        if cut and error.start >= len(data) - 3:
            return data[: error.start].decode("utf-8")
        printable = sum(byte >= 32 or byte in b"\t\n\r\f" for byte in data[:8192])
        return data.decode("utf-8", "surrogateescape") if printable > 0.95 * len(data[:8192]) else None


async def _file(sandbox: Sandbox, path: str) -> Entry:
    entry = await sandbox.stat(path)
    if entry is None:
        raise SandboxFileNotFoundError(f"File not found: {path}")
    if entry.kind == "directory":
        raise SandboxFileError(f"Path is a directory: {path}. Use ls to list it.")
    return entry


async def _not_a_directory(sandbox: Sandbox, path: str) -> str | None:
    entry = await sandbox.stat(path)
    if entry is None:
        return f"Error: Directory not found: {path}"
    return None if entry.kind == "directory" else f"Error: Not a directory: {path}"


async def _refusal(sandbox: Sandbox, path: str) -> str | None:
    """Why ``path`` must not be overwritten now, if so."""
    entry = await sandbox.stat(path)
    if entry is not None and entry.kind == "file" and sandbox.seen_files.changed(path, entry.modified, entry.size):
        return f"Error: {path} has changed since you last read it. Read it again, then repeat the change on what it says now."
    return None


async def _remember(sandbox: Sandbox, path: str) -> None:
    if entry := await sandbox.stat(path):
        sandbox.seen_files.remember(path, entry.modified, entry.size)


def _line_range(text: str, start: int | None, end: int | None) -> str | None:
    lines = text.splitlines(keepends=True)
    first = max(1, start or 1)
    if first > max(1, len(lines)):
        return None
    return "".join(lines[first - 1 : end if end is None or end > 0 else 0])


def _cap(runtime: Runtime, name: str, requested: int, default: int, hard: int) -> int:
    """The smaller of what the model asks for and what the configuration allows."""
    configured = next(
        (entry.max_results for entry in settings(runtime).tools if entry.name == name and entry.max_results), default
    )
    return min(requested if requested > 0 else default, configured, hard)


FILE_TOOLS: tuple[BaseTool, ...] = (ls_tool, read_file_tool, write_file_tool, str_replace_tool, glob_tool, grep_tool)
