"""The search program. It runs by itself (``python3 -I -S -c <source> <request>``) with the decision on encodings beside it, and
imports nothing but the library.

Inside a sandbox it drives ripgrep, or searches by itself where there is none. On the host (``"source": "stdin"``) it
only matches lines: the files' bytes come in by stdin, so it opens nothing and can be killed at will.

ripgrep matches UTF-8 and what is marked as UTF-16; all other texts are decoded here, so that a word is found in any encoding.

It prints one JSON array ``[path, line number, line]`` per match, an object for what was not searched, and at last one object with
``truncated`` or ``error``.
Any Python from 3.9 on must be able to run it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from deerflow.security.encodings import binary, guessed, surely

LINE = 500
"""Characters of a line that are reported."""
FILE = 64 << 20
"""Bytes; larger files are named as not searched where there is no ripgrep."""
MOST_SKIPPED = 500
"""Files that are named as not searched."""
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
        self.compile = lambda: (
            re.compile(pattern, flags),
            re.compile(pattern.encode("utf-8", "surrogateescape"), flags),
        )
        self.regex: tuple[re.Pattern[str], re.Pattern[bytes]] | None = None
        self.skipped = 0

    def report(self, path: str, number: int, line: str, at: int = 0) -> None:
        if self.left == 0:
            raise Full
        self.left -= 1
        write([path, number, window(line.rstrip("\r\n"), at)])

    def skip(self, path: str, why: str) -> None:
        self.skipped += 1
        if self.skipped <= MOST_SKIPPED:
            write({"skipped": path, "why": why})

    def match(self, path: str, data: bytes) -> None:
        encoding = surely(data)
        if encoding is None:
            if binary(data):
                return self.skip(path, "binary")
            load_packages()
            encoding = guessed(data)
        letters, raw = self.regex = self.regex or self.compile()
        # Line by line: a pattern that is quadratic in the text's length must not meet the whole file.
        if encoding.usual:
            data = data[len(encoding.mark) :]
            if not self.literal or raw.search(data):
                self.match_lines(path, data.split(b"\n"), raw)
        else:
            self.match_lines(path, encoding.decode(data).split("\n"), letters)

    def match_lines(self, path: str, lines: list[Any], regex: re.Pattern[Any]) -> None:
        if lines and not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            if found := regex.search(line):
                start = max(0, found.start() - 4 * LINE)
                self.report(
                    path, number, plain(line[start : start + 8 * LINE]), len(plain(line[start : found.start()]))
                )


def plain(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def load_packages() -> None:
    """A detector of encodings may be installed where we run."""
    import site

    with suppress(Exception):
        site.main()


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
    command = [tool, "--no-config", "--no-ignore", "--hidden", "--sort", "path"]
    command += ["--glob", request["glob"]] if request["glob"] else []
    for name in skipped(request):
        command += ["--glob", f"!**/{name}/**"]
    others = dict.fromkeys(not_for_ripgrep(command, request, start))
    search = [*command, "--json", "--case-sensitive" if request["case_sensitive"] else "--ignore-case"]
    search += ["--fixed-strings"] if request["literal"] else []
    search += ["--regexp", request["pattern"], "--", start]
    with subprocess.Popen(search, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None and run.stderr is not None
        try:
            for raw in run.stdout:
                record = json.loads(raw)
                if record["type"] == "match" and (path := text(record["data"]["path"])) not in others:
                    data = record["data"]
                    line = os.fsencode(text(data["lines"]))
                    read = decoder_of(path) if "bytes" in data["lines"] else plain
                    at = len(read(line[: data["submatches"][0]["start"]])) if data["submatches"] else 0
                    matcher.report(joined(root, path), data["line_number"], read(line), at)
        except Full:
            run.kill()
            raise
        problem = run.stderr.read(4096).decode("utf-8", "replace").strip()
        code = run.wait()
    if code == 2 and "regex parse error" in problem:
        return False
    if code == 2 and "error parsing glob" in problem:
        raise ValueError(problem)
    for path in others:
        search_file(path, root, matcher)
    return True


@cache
def decoder_of(path: str) -> Callable[[bytes], str]:
    """For lines of a file that are no UTF-8."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            head = file.read(1 << 20)
    except OSError:
        return plain
    encoding = surely(head, cut=True)
    if encoding is None:
        load_packages()
        encoding = guessed(head)
    return plain if encoding.usual else encoding.decode


def not_for_ripgrep(command: list[str], request: dict[str, Any], start: str) -> Iterator[str]:
    """Files that are neither UTF-8 nor marked as UTF-16: ripgrep does not see the letters in them."""
    pattern = request["pattern"]
    # Plain ASCII is found in all texts whose letters take one byte, or begin with one.
    telling = r"(?-u)\x00" if request["literal"] and pattern.isascii() else r"(?-u)[\x00\x80-\xff]"
    listing = [
        *command,
        "--encoding",
        "none",
        "--text",
        "--files-with-matches",
        "--null",
        "--regexp",
        telling,
        "--",
        start,
    ]
    done = subprocess.run(listing, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for name in done.stdout.split(b"\0")[:-1]:
        path = os.fsdecode(name)
        with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
            head = file.read(1 << 20)
            cut = len(head) == 1 << 20
            encoding = surely(head, cut=cut)
            if encoding is not None and encoding.usual and cut:
                encoding = surely(head + file.read(FILE))
            if encoding is None or not (encoding.usual or (encoding.mark and encoding.codec.startswith("utf-16"))):
                yield path


def search_file(path: str, root: str, matcher: Matcher) -> None:
    try:
        # Without O_NONBLOCK a FIFO would hang the search.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return
        if info.st_size > FILE:
            matcher.skip(joined(root, path), "too large: use grep in bash")
            return
        matcher.match(joined(root, path), file.read(FILE))


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
        search_file(path, root, matcher)


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
