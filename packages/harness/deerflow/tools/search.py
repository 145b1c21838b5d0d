"""The tools that search a sandbox's files: by their names, and by what they say."""

from __future__ import annotations

from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from deerflow.sandbox.files import shown_path
from deerflow.sandbox.files.tree import QUIET_NAMES
from deerflow.sandbox.interface import WORKSPACE, Entry, GrepMatch, Sandbox, SandboxError
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.document_search import documents_below, matches_in
from deerflow.tools.shell import Description, Path, settings
from deerflow.tools.texts import entry_at

GLOB_MAX = 1000
GREP_MAX = 500


@async_tool("glob")
async def glob_tool(
    pattern: Annotated[str, Field(description="e.g. **/*.py")],
    path: Path,
    runtime: Runtime,
    include_dirs: bool = False,
    max_results: int = 200,
    description: Description = "",
) -> str:
    """Find files by name pattern."""
    cap = _cap(runtime, "glob", max_results, 200, GLOB_MAX)
    sandbox = await runtime.context.sandbox()
    if (await entry_at(sandbox, path, "Directory")).kind != "directory":
        return f"Error: Not a directory: {path}"
    paths, cut = await sandbox.glob(path, pattern, include_dirs=include_dirs, cap=cap)
    if not paths:
        return f"No files matched under {path}"
    lines = [f"{number}. {_short(found)}" for number, found in enumerate(paths, 1)]
    trailer = ["Results truncated: narrow the path or the pattern."] if cut else []
    return "\n".join([_found(len(paths), "paths", path, cut), *lines, *trailer])


@async_tool("grep")
async def grep_tool(
    pattern: Annotated[str, Field(description="Regular expression")],
    path: Path,
    runtime: Runtime,
    glob: Annotated[str | None, Field(description="Only files whose name matches, e.g. *.py")] = None,
    literal: Annotated[bool, Field(description="Pattern is plain text")] = False,
    case_sensitive: bool = False,
    max_results: int = 100,
    description: Description = "",
) -> str:
    """Search file contents, also the text of PDF, Office and mail files, with the page that a line stands on."""
    cap = _cap(runtime, "grep", max_results, 100, GREP_MAX)
    try:
        sandbox = await runtime.context.sandbox()
        entry = await entry_at(sandbox, path, "Directory")
        documents = await documents_below(sandbox, runtime.context, entry, glob)
        matches, cut = await sandbox.grep(
            path, pattern, glob=glob, literal=literal, case_sensitive=case_sensitive, cap=cap
        )
        inside = await matches_in(sandbox, documents.texts, pattern, literal=literal, case_sensitive=case_sensitive)
        made = await _made_directories(sandbox, entry)
    except SandboxError as error:
        hint = ". Set literal to search for it as plain text." if "regular expression" in str(error) else ""
        return f"Error: {error}{hint}"
    known = {*documents.texts, *documents.found}
    found = [match for match in matches if match.path not in known and match.line_number] + inside
    cut, found = cut or len(found) > cap, found[:cap]
    skipped = [match for match in matches if not match.line_number and match.path not in known]
    trailer = ["Results truncated: narrow the path, the glob or the pattern."] if cut else []
    trailer += _not_searched(skipped, [*documents.skipped, *made])
    if not found:
        return "\n".join([f"No matches found under {path}", *trailer])
    head = _found(len(found), "matches", path, cut)
    return "\n".join([head, *(f"{_short(match.path)}:{match.line_number}: {match.line}" for match in found), *trailer])


def _found(count: int, what: str, root: str, cut: bool) -> str:
    """The head of a search's result; it says what its paths are relative to."""
    about = [f"relative to {WORKSPACE}"] if f"{root}/".startswith(f"{WORKSPACE}/") else []
    about += [f"showing first {count}, there are more"] if cut else []
    return f"Found {count} {what} under {root}" + (f" ({'; '.join(about)})" if about else "")


async def _made_directories(sandbox: Sandbox, entry: Entry) -> list[str]:
    """Directories that a search leaves out."""
    if entry.kind != "directory":
        return []
    entries, _ = await sandbox.list(entry.path, depth=1)
    names = [each.path.rpartition("/")[2] for each in entries if each.kind == "directory"]
    return [f"{name}/" for name in names if name in QUIET_NAMES]


def _not_searched(skipped: list[GrepMatch], others: list[str]) -> list[str]:
    """One line that says what a search has left out, and why."""
    reasons: dict[str, list[str]] = {}
    for match in skipped:
        reasons.setdefault(match.line, []).append(_short(match.path))
    parts = [
        f"{why} ({len(names)}): {', '.join(names[:5])}{', …' * (len(names) > 5)}" for why, names in reasons.items()
    ]
    return [f"Not searched: {'; '.join([*parts, *others])}"] if parts or others else []


def _short(path: str) -> str:
    """A path as the file tools take it, too: relative to the workspace if it lies there."""
    return shown_path(path.removeprefix(f"{WORKSPACE}/"))


def _cap(runtime: Runtime, name: str, requested: int, default: int, hard: int) -> int:
    """The smaller of what the model asks for and what the configuration allows."""
    configured = next(
        (entry.max_results for entry in settings(runtime).tools if entry.name == name and entry.max_results), default
    )
    return min(requested if requested > 0 else default, configured, hard)


SEARCH_TOOLS: tuple[BaseTool, ...] = (glob_tool, grep_tool)
