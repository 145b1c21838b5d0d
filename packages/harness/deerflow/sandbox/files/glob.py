"""Glob patterns, matched one path component at a time and in linear time.

``*`` and ``?`` stay within a component, ``**`` spans any number of them, ``{a,b}`` are alternatives, ``[a-z]`` and
``[!a-z]`` character classes. A pattern without a slash matches at any depth.
"""

from __future__ import annotations

import fnmatch
import re

from deerflow.sandbox.interface import SandboxFileError

MAX_PATTERN = 1024
MAX_ALTERNATIVES = 64
QUIET_NAMES = frozenset({".git", "node_modules", ".venv", "__pycache__"})
"""Directories not searched unless the pattern names them: large, and made by machines."""

_ANY = re.compile(r"(?s:.*)\Z")
_GROUP = re.compile(r"\{([^{}]*)\}")

Progress = frozenset[tuple[int, int]]
"""How far each alternative has matched: (alternative, next component of it)."""


class GlobPattern:
    """A compiled pattern. Walk with ``start``, ``step`` down the tree; an empty progress can match nothing below."""

    def __init__(self, pattern: str, root: str = "") -> None:
        """Compile ``pattern``, relative to ``root``; a pattern that begins with ``root`` is understood too.

        Raises:
            SandboxFileError: the pattern is empty, too long or climbs with ``..``.
        """
        if len(pattern) > MAX_PATTERN:
            raise SandboxFileError(f"The glob pattern is longer than {MAX_PATTERN} characters.")
        if root and pattern.startswith(root.rstrip("/") + "/"):
            pattern = "/" + pattern[len(root.rstrip("/")) + 1 :]
        names = [_components(alternative) for alternative in _alternatives(pattern)]
        self.named = frozenset(name for parts in names for name in parts) & QUIET_NAMES
        self._parts = [[_compiled(name) for name in parts] for parts in names]

    def start(self) -> Progress:
        return self._closed({(alternative, 0) for alternative in range(len(self._parts))})

    def step(self, progress: Progress, name: str) -> tuple[Progress, bool]:
        """The progress after entering ``name``, and whether the path so far matches as a whole."""
        reached: set[tuple[int, int]] = set()
        for alternative, index in progress:
            parts = self._parts[alternative]
            if index == len(parts):
                continue
            part = parts[index]
            if part is None:
                reached.add((alternative, index))
            elif part.match(name):
                reached.add((alternative, index + 1))
        closed = self._closed(reached)
        return closed, any(index == len(self._parts[alternative]) for alternative, index in closed)

    def _closed(self, states: set[tuple[int, int]]) -> Progress:
        """``**`` may also span nothing: what follows it is reached at once."""
        closed = set(states)
        for alternative, index in states:
            parts = self._parts[alternative]
            while index < len(parts) and parts[index] is None:
                index += 1
                closed.add((alternative, index))
        return frozenset(closed)


def _components(pattern: str) -> list[str]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if not names:
        raise SandboxFileError("The glob pattern is empty. Use **/* for everything.")
    if ".." in names:
        raise SandboxFileError("A glob pattern cannot contain '..': search from a higher path instead.")
    if len(names) == 1 and not pattern.startswith(("/", "./")) and not pattern.endswith("/"):
        names.insert(0, "**")
    if names[-1] == "**":
        # Everything below, not the directory itself.
        names.append("*")
    return names


def _compiled(name: str) -> re.Pattern[str] | None:
    if name == "**":
        return None
    if name == "*":
        return _ANY
    # fnmatch writes each star as an atomic group, so matching cannot backtrack catastrophically.
    return re.compile(fnmatch.translate(re.sub(r"(?<!\[)\[\^", "[!", name)))


def _alternatives(pattern: str) -> list[str]:
    """Expand ``{a,b}``, inner braces first."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        current = todo.pop()
        group = next((found for found in _GROUP.finditer(current) if "," in found[1]), None)
        if group is None:
            done.append(current)
        else:
            head, tail = current[: group.start()], current[group.end() :]
            todo += [head + choice + tail for choice in group[1].split(",")]
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise SandboxFileError(f"The glob pattern has more than {MAX_ALTERNATIVES} alternatives.")
    return list(dict.fromkeys(done))
