"""Searching file contents: inside a sandbox by a command, or on the host over ``SandboxFiles``.

Inside is better where there is a shell: ripgrep is quick and linear, and whatever a pattern or a tree does, it does to
the sandbox. On the host Python's ``re`` matches in a process of its own, fed with bytes, that a deadline kills.
"""

from __future__ import annotations

import json
import shlex
import struct
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread, Timer
from typing import IO

from deerflow.sandbox.files import SandboxFiles, shown_path
from deerflow.sandbox.interface import (
    GrepMatch,
    SandboxCommandError,
    SandboxFileError,
    SandboxFileNotFoundError,
    SandboxRuntimeError,
)

_ENCODINGS = "deerflow.security.encodings"
_BOOT = """
import sys, types
def run(name, needed, program):
    parts = name.split(".")
    for at in range(1, len(parts) + 1):
        sys.modules[".".join(parts[:at])] = module = types.ModuleType(".".join(parts[:at]))
    exec(compile(needed, name, "exec"), module.__dict__)
    exec(compile(program, "search", "exec"), {"__name__": "__main__"})
"""


def _program() -> str:
    """The search with the one module of ours that it needs, which inside a sandbox is nowhere else."""
    needed = Path(find_spec(_ENCODINGS).origin or "").read_text(encoding="utf-8")  # type: ignore[union-attr]
    program = Path(__file__).with_name("search_script.py").read_text(encoding="utf-8")
    return f"{_BOOT}run({_ENCODINGS!r}, {needed!r}, {program!r})"


_SOURCE = _program()
_MAX_FILE = 64 << 20
_CHUNK = 2 << 20
_MAX_FILES = 200_000
_MAX_PATTERN = 10_000


def grep_command(
    root: str,
    pattern: str,
    *,
    glob: str | None = None,
    literal: bool = False,
    case_sensitive: bool = False,
    cap: int = 100,
) -> str:
    """The bash command that searches inside a sandbox; give its output to ``parse_grep``.

    It uses ``rg`` from PATH if there is one, else ``python3``. Run it apart from the session's state, with at least
    ``cap`` KiB of output allowed.

    Raises:
        SandboxCommandError: the pattern is too long or not valid text.
    """
    request = _request("files", pattern, literal, case_sensitive, cap)
    request |= {"root": root, "glob": _relative(glob, root)}
    return f"command python3 -I -S -c {shlex.quote(_SOURCE)} {shlex.quote(json.dumps(request))}"


def parse_grep(output: str) -> tuple[list[GrepMatch], bool]:
    """The matches in the output of ``grep_command``, and whether there are more. What was not searched is a match in line 0.

    Raises:
        SandboxCommandError: the pattern or the glob is invalid; the message says where.
        SandboxRuntimeError: the search did not come to its end.
    """
    matches: list[GrepMatch] = []
    skipped: list[GrepMatch] = []
    for line in output.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        match record:
            case [str(path), int(number), str(text)]:
                matches.append(GrepMatch(path, number, text))
            case {"skipped": str(path), "why": str(why)}:
                skipped.append(GrepMatch(path, 0, why))
            case {"error": str(error)}:
                raise SandboxCommandError(error)
            case {"truncated": bool(truncated)}:
                return [*matches, *skipped], truncated
    raise SandboxRuntimeError("The search did not finish. Narrow the path or the glob, or simplify the pattern.")


def grep_files(
    files: SandboxFiles,
    root: str,
    pattern: str,
    *,
    glob: str | None = None,
    literal: bool = False,
    case_sensitive: bool = False,
    cap: int = 100,
    deadline: float = 30,
) -> tuple[list[GrepMatch], bool]:
    """Search on the host, for a sandbox without a shell. Blocks for at most ``deadline`` seconds and a little.

    Raises:
        SandboxCommandError: a bad pattern or glob, or the deadline passed (a pattern may take exponential time).
        SandboxFileError: ``root`` cannot be searched.
    """
    request = _request("stdin", pattern, literal, case_sensitive, cap)
    too_large: list[str] = []
    paths, cut = _candidates(files, root, _relative(glob, root))
    command = [sys.executable, "-I", "-S", "-c", _SOURCE, json.dumps(request)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as run:
        assert run.stdin is not None and run.stdout is not None
        timer = Timer(deadline, run.kill)
        feeder = Thread(target=_feed, args=(files, paths, run.stdin, too_large), daemon=True)
        timer.start()
        feeder.start()
        try:
            output = run.stdout.read().decode("ascii", "replace")
        finally:
            run.kill()
            timer.cancel()
            feeder.join()
    try:
        matches, truncated = parse_grep(output)
    except SandboxRuntimeError:
        raise SandboxCommandError(
            f"The search took longer than {deadline:g} seconds. Simplify the pattern or narrow the path."
        ) from None
    return [*matches, *_not_searched(too_large)], truncated or cut


def _not_searched(paths: list[str]) -> list[GrepMatch]:
    return [GrepMatch(path, 0, "too large: use grep in bash") for path in paths[:20]]


def _candidates(files: SandboxFiles, root: str, glob: str | None) -> tuple[list[str], bool]:
    entry = files.stat(root)
    if entry is None:
        raise SandboxFileNotFoundError(f"No such file or directory: {shown_path(root)}")
    if entry.kind != "directory":
        return [entry.path], False
    return files.find(root, glob or "**/*", ["file"], _MAX_FILES)


def _feed(files: SandboxFiles, paths: list[str], sink: IO[bytes], too_large: list[str]) -> None:
    """Send frames as ``search_script.match_stdin`` reads them, until done or the reader is gone."""
    with suppress(BrokenPipeError), sink:
        for path in paths:
            try:
                data, size = files.read(path, limit=_CHUNK)
            except SandboxFileError:
                continue
            if size > _MAX_FILE:
                too_large.append(path)
                continue
            name = path.encode("utf-8", "surrogateescape")
            sink.write(struct.pack("!II", len(name), size) + name)
            position = 0
            while position < size:
                # A file that shrinks meanwhile still fills its frame.
                sink.write(data[: size - position] or b"\n" * (size - position))
                position += len(data) or size
                with suppress(SandboxFileError):
                    data = files.read(path, position, _CHUNK)[0] if position < size else b""


def _request(source: str, pattern: str, literal: bool, case_sensitive: bool, cap: int) -> dict[str, object]:
    if len(pattern) > _MAX_PATTERN:
        raise SandboxCommandError(f"The pattern is longer than {_MAX_PATTERN} characters.")
    # Only half of a surrogate pair cannot be written as UTF-8.
    if not pattern or "\0" in pattern or pattern.encode(errors="ignore").decode() != pattern:
        raise SandboxCommandError("The pattern is empty or not valid text.")
    return {
        "source": source,
        "pattern": pattern,
        "literal": literal,
        "case_sensitive": case_sensitive,
        "cap": max(cap, 0),
    }


def _relative(glob: str | None, root: str) -> str | None:
    """Models also give globs that begin with the path they search."""
    prefix = root.rstrip("/") + "/"
    return glob[len(prefix) - 1 :] if glob and glob.startswith(prefix) else glob
