"""The search program. It runs by itself (``python3 -I -S -c <source> <request>``) and imports nothing but the library.

Inside a sandbox it drives ripgrep, or searches by itself where there is none. On the host (``"source": "stdin"``) it
only matches lines: the files' bytes come in by stdin, so it opens nothing and can be killed at will.

It prints one JSON array ``[path, line number, line]`` per match and at last one object with ``truncated`` or ``error``.
Any Python from 3.9 on must be able to run it.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

LINE = 500
"""Characters of a line that are reported."""
FILE = 64 << 20
"""Bytes; larger files are named as not searched where there is no ripgrep."""
BINARY = 8192
"""A NUL among the first bytes means: not text."""
QUIET = (".git", "node_modules", ".venv", "__pycache__")


class Full(Exception):
    """There are more matches than were asked for."""


class Matcher:
    """The request's pattern in Python's engine, and the way out for what matches."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.left: int = request["cap"]
        self.literal: bool = request["literal"]
        pattern = re.escape(request["pattern"]) if self.literal else request["pattern"]
        flags = 0 if request["case_sensitive"] else re.IGNORECASE
        self.compile = lambda: re.compile(pattern.encode("utf-8", "surrogateescape"), flags)
        self.regex: re.Pattern[bytes] | None = None

    def report(self, path: str, number: int, line: str, at: int = 0) -> None:
        if self.left == 0:
            raise Full
        self.left -= 1
        write([path, number, window(line.rstrip("\r\n"), at)])

    def match(self, path: str, data: bytes) -> None:
        regex = self.regex = self.regex or self.compile()
        # Line by line: a pattern that is quadratic in the text's length must not meet the whole file.
        if b"\0" in data[:BINARY] or (self.literal and not regex.search(data)):
            return
        for number, line in enumerate(io.BytesIO(data), 1):
            if found := regex.search(line.rstrip(b"\n")):
                start = max(0, found.start() - 4 * LINE)
                text = line[start : start + 8 * LINE].decode("utf-8", "replace")
                self.report(path, number, text, len(line[start : found.start()].decode("utf-8", "replace")))


def window(line: str, at: int) -> str:
    """``LINE`` characters of the line around the match at ``at``."""
    if len(line) <= LINE:
        return line
    start = max(0, at - LINE // 3)
    end = start + LINE - bool(start)
    return "…" * bool(start) + (line[start : end - 1] + "…" if end < len(line) else line[start:end])


def main() -> None:
    request = json.loads(sys.argv[1])
    matcher = Matcher(request)
    end: dict[str, Any] = {"truncated": False}
    try:
        if request["source"] == "stdin":
            matcher.compile()
            match_stdin(matcher)
        else:
            search(request, matcher)
    except Full:
        end = {"truncated": True}
    except re.error as error:
        end = {"error": f"Invalid regular expression: {error}"}
    except (OSError, ValueError) as error:
        end = {"error": str(error)}
    write(end)


def write(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


def match_stdin(matcher: Matcher) -> None:
    """Frames of u32 length of the path, u32 length of the data, path, data."""
    source = sys.stdin.buffer
    while header := source.read(8):
        path_length, data_length = struct.unpack("!II", header)
        path = source.read(path_length).decode("utf-8", "surrogateescape")
        matcher.match(path, source.read(data_length))


def search(request: dict[str, Any], matcher: Matcher) -> None:
    root: str = request["root"]
    mode = os.stat(root).st_mode  # noqa: PTH116 (pathlib would double the start-up time)
    if stat.S_ISDIR(mode):
        start = "."
    elif stat.S_ISREG(mode):
        root, name = os.path.split(root)
        start = "./" + name
    else:
        raise ValueError("Not a file or directory: " + root)
    # Globs with a slash are relative to the working directory.
    os.chdir(root)
    tool = shutil.which("rg")
    if tool is None or not with_ripgrep(tool, request, root, start, matcher):
        with_python(request, root, start, matcher)


def with_ripgrep(tool: str, request: dict[str, Any], root: str, start: str, matcher: Matcher) -> bool:
    """False: ripgrep cannot read the pattern, which may still be one for Python's engine."""
    command = [tool, "--json", "--no-config", "--no-ignore", "--hidden", "--sort", "path"]
    command += ["--case-sensitive" if request["case_sensitive"] else "--ignore-case"]
    command += ["--fixed-strings"] if request["literal"] else []
    command += ["--glob", request["glob"]] if request["glob"] else []
    for name in skipped(request):
        command += ["--glob", f"!**/{name}/**"]
    command += ["--regexp", request["pattern"], "--", start]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None and run.stderr is not None
        try:
            for raw in run.stdout:
                record = json.loads(raw)
                if record["type"] == "match":
                    data = record["data"]
                    line = text(data["lines"])
                    at = (
                        len(os.fsencode(line)[: data["submatches"][0]["start"]].decode("utf-8", "replace"))
                        if data["submatches"]
                        else 0
                    )
                    matcher.report(joined(root, text(data["path"])), data["line_number"], line, at)
        except Full:
            run.kill()
            raise
        problem = run.stderr.read(4096).decode("utf-8", "replace").strip()
        code = run.wait()
    if code == 2 and "regex parse error" in problem:
        return False
    if code == 2 and "error parsing glob" in problem:
        raise ValueError(problem)
    return True


def text(field: dict[str, str]) -> str:
    """ripgrep gives text, or base64 where it is not UTF-8."""
    return field["text"] if "text" in field else os.fsdecode(base64.b64decode(field["bytes"]))


def with_python(request: dict[str, Any], root: str, start: str, matcher: Matcher) -> None:
    matcher.compile()
    skip = skipped(request)
    wanted = glob_regex(request["glob"]) if request["glob"] else None
    for path in files_below(skip) if start == "." else [start]:
        if wanted and not wanted.fullmatch(path[1:]):
            continue
        try:
            # Without O_NONBLOCK a FIFO would hang the search.
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with os.fdopen(fd, "rb") as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                continue
            if info.st_size > FILE:
                write({"skipped": joined(root, path)})
                continue
            matcher.match(joined(root, path), file.read(FILE))


def files_below(skip: list[str]) -> Iterator[str]:
    """In the order of paths, and without recursion: a tree may be deeper than Python's stack."""
    waiting = [(".", True)]
    while waiting:
        path, is_directory = waiting.pop()
        if not is_directory:
            yield path
            continue
        try:
            with os.scandir(path) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError:
            continue
        waiting += [(f"{path}/{name}", below) for name, below in reversed(found) if not (below and name in skip)]


def skipped(request: dict[str, Any]) -> list[str]:
    return [name for name in QUIET if name not in (request["glob"] or "")]


def glob_regex(glob: str) -> re.Pattern[str]:
    """A regex for paths that begin with a slash, as ripgrep reads globs: without a slash they hold at any depth."""
    pattern = "/" + glob.lstrip("/") if "/" in glob else "/**/" + glob
    plain = {"/**/": "/(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex, depth = "", 0
    for token in re.findall(r"/\*\*/|\*\*|\[[^]]+\]|.", pattern, re.DOTALL):
        if token == "{":
            regex, depth = regex + "(?:", depth + 1
        elif token == "}" and depth:
            regex, depth = regex + ")", depth - 1
        elif token == "," and depth:
            regex += "|"
        elif len(token) > 2 and token[0] == "[":
            regex += "[" + token[1:].replace("\\", "\\\\").replace("!", "^", 1 if token[1] == "!" else 0)
        else:
            regex += plain.get(token, re.escape(token))
    return re.compile(regex + ")" * depth, re.DOTALL)


def joined(root: str, path: str) -> str:
    return root.rstrip("/") + "/" + (path[2:] if path.startswith("./") else path)


if __name__ == "__main__":
    main()
