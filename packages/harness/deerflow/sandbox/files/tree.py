"""Searching and removing directory trees by descriptor: no recursion, no link ever followed, bounded work.

A tree made by a sandbox may be 5,000 levels deep, hold a directory with a million entries, or change under our feet.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deerflow.sandbox.files.walk import DIRECTORY, LOOK, MAX_PATH, Walker
from deerflow.sandbox.interface import Entry, SandboxFileError

MAX_PATTERN = 1024
MAX_ALTERNATIVES = 64
QUIET_NAMES = frozenset({".git", "node_modules", ".venv", "__pycache__"})
"""Directories not searched unless the pattern names them: large, and made by machines."""

MADE_NAMES = QUIET_NAMES | {
    *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".cache", ".gradle", ".next"),
    *("build", "coverage", "dist", "htmlcov", "target", "venv", ".coverage", ".tool-results", ".web"),
}
"""Files and directories that say nothing of the sources beside them."""

_ANY = re.compile(r"(?s:.*)\Z")
_GROUP = re.compile(r"\{([^{}]*)\}")

Progress = frozenset[tuple[int, int]]
"""How far each alternative has matched: (alternative, next component of it)."""

MAX_NAMES = 200_000
"""Names read from one directory."""
MAX_VISITS = 1_000_000
"""Entries looked at in one search."""
MAX_STAMPED = 20_000
"""Entries of which one fingerprint is made."""
MAX_OPEN = 128
"""Directories held open at once by one search."""
REMOVE_ROUNDS = 100
"""Rounds without progress before a removal gives up on a tree that someone keeps filling."""
REFILLS = 1000
"""Looks into one directory, of up to 10,000 names each, before a removal gives up on it."""


@dataclass(slots=True)
class Search:
    """One depth-first search, in the order of names."""

    walker: Walker
    pattern: GlobPattern
    skipped: frozenset[str] = QUIET_NAMES
    most: int = MAX_VISITS
    visits: int = 0
    levels: list[_Level] = field(default_factory=list["_Level"])
    cut: bool = False

    def run(self, root: str, kinds: Sequence[str], cap: int) -> tuple[list[str], bool]:
        """Paths of these kinds below the directory ``root`` that match, at most ``cap``, and whether there may be more.

        Raises OSError if ``root`` cannot be read.
        """
        found: list[str] = []
        try:
            self._enter(_Level(self.walker.open_directory(root), root.rstrip("/"), self.pattern.start()))
            for path, kind in self._matches():
                if kind not in kinds:
                    continue
                if len(found) == cap:
                    self.cut = True
                    break
                found.append(path)
        finally:
            while self.levels:
                self._leave()
        return sorted(found), self.cut

    def fingerprint(self, root: str) -> str | None:
        """A digest of what is below the directory ``root``; None if the search was cut. Raises as ``run``."""
        digest = hashlib.sha256()
        try:
            self._enter(_Level(self.walker.open_directory(root), root.rstrip("/"), self.pattern.start()))
            for path, kind in self._matches():
                fd, name = self.levels[-1].fd, path.rpartition("/")[2]
                if kind == "directory" or fd is None or name in self.skipped:
                    continue
                with suppress(FileNotFoundError):
                    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    digest.update(
                        f"{path}\0{info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}\0".encode("utf-8", "replace")
                    )
        finally:
            while self.levels:
                self._leave()
        return None if self.cut else digest.hexdigest()

    def _matches(self) -> Iterator[tuple[str, str]]:
        while self.levels:
            level = self.levels[-1]
            if not level.names:
                self._leave()
                continue
            name, kind = level.names.pop()
            self.visits += 1
            if self.visits > self.most:
                self.cut = True
                return
            progress, matched = self.pattern.step(level.progress, name)
            path = f"{level.path}/{name}"
            if matched:
                yield path, kind
            if kind == "directory" and progress and (name not in self.skipped or name in self.pattern.named):
                self._descend(level, name, path, progress)

    def _descend(self, parent: _Level, name: str, path: str, progress: Progress) -> None:
        if len(self.levels) >= MAX_OPEN or len(os.fsencode(path)) >= MAX_PATH:
            self.cut = True
            return
        try:
            if parent.fd is None or path in self.walker.mount_paths:
                fd = self.walker.open_directory(path)
            else:
                fd = os.open(name, os.O_RDONLY | DIRECTORY, dir_fd=parent.fd)
        except OSError:
            return
        if not parent.names:
            # Its last entry: otherwise a deep chain would hold a descriptor per level.
            self._leave()
        self._enter(_Level(fd, path, progress))

    def _enter(self, level: _Level) -> None:
        self.levels.append(level)
        names, cut = ({}, False) if level.fd is None else read_names(level.fd)
        names |= dict.fromkeys(self.walker.children(level.path or "/"), "directory")
        level.names = sorted(names.items(), reverse=True)
        self.cut |= cut

    def _leave(self) -> None:
        level = self.levels.pop()
        if level.fd is not None:
            os.close(level.fd)


@dataclass(slots=True)
class _Level:
    fd: int | None
    path: str
    progress: Progress
    names: list[tuple[str, str]] = field(default_factory=list)
    """What is left to visit, last one first."""


def read_names(fd: int) -> tuple[dict[str, str], bool]:
    """The kinds of a directory's entries by name, and whether there are more than are sensible to read."""
    names: dict[str, str] = {}
    # Not readable, or removed meanwhile: nothing to see.
    with suppress(OSError), os.scandir(fd) as entries:
        for entry in entries:
            if len(names) == MAX_NAMES:
                return names, True
            names[entry.name] = _entry_kind(entry)
    return names, False


def _entry_kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def entry_of(path: str, info: os.stat_result) -> Entry:
    """The entry that a stat result describes."""
    mode = info.st_mode
    if stat.S_ISDIR(mode):
        return Entry(path, "directory", 0, info.st_mtime, info.st_ctime)
    kind = "file" if stat.S_ISREG(mode) else "link" if stat.S_ISLNK(mode) else "other"
    return Entry(path, kind, info.st_size, info.st_mtime, info.st_ctime)


def remove_tree(parent: int, name: str) -> None:
    """Remove the directory ``name`` in the open directory ``parent`` with all that is in it.

    It vanishes at once under a temporary name. Then deep trees are flattened: what is found two levels down is moved
    one level up, so three descriptors are enough for any depth.

    Raises:
        SandboxFileError: someone keeps filling the tree.
        OSError: something in it may not be removed.
    """
    doomed = f".removed-{secrets.token_hex(8)}"
    os.rename(name, doomed, src_dir_fd=parent, dst_dir_fd=parent)
    top = _open_doomed(parent, doomed)
    try:
        _flatten(top)
    finally:
        os.close(top)
    os.rmdir(doomed, dir_fd=parent)


def _flatten(top: int) -> None:
    serial = 0
    stuck = 0
    while names := _some_names(top):
        before = serial
        removed = 0
        for name in names:
            if _unlinked(top, name):
                removed += 1
                continue
            directory = _open_doomed(top, name)
            try:
                refills = 0
                while inner := _some_names(directory):
                    refills += 1
                    if refills > REFILLS:
                        raise _kept_filled()
                    for child in inner:
                        if not _unlinked(directory, child):
                            serial += 1
                            _hoist(directory, child, top, f".removed-{serial}-{secrets.token_hex(4)}")
            finally:
                os.close(directory)
            with suppress(FileNotFoundError):
                try:
                    os.rmdir(name, dir_fd=top)
                    removed += 1
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
        stuck = 0 if removed or serial == before else stuck + 1
        if stuck > REMOVE_ROUNDS:
            raise _kept_filled()


def _kept_filled() -> SandboxFileError:
    return SandboxFileError("The directory could not be removed: something keeps writing to it.")


def _some_names(fd: int) -> list[str]:
    """Names in a directory, at most 10,000; call again for the rest."""
    names: list[str] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) == 10_000:
                break
    return names


def _unlinked(directory: int, name: str) -> bool:
    """Remove ``name`` unless it is a directory."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        # Linux says EISDIR, others EPERM. A file that may not be removed fails again below, as it should.
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            return False
        raise
    return True


def _hoist(source: int, name: str, top: int, new: str) -> None:
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=top)
    except FileNotFoundError:
        return
    except PermissionError:
        # Moving a directory writes its '..', which takes the right to write to it.
        _unlock(source, name)
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=top)


def _open_doomed(parent: int, name: str) -> int:
    """Open a directory that is to be emptied, whatever its mode forbids."""
    info = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if info.st_mode & 0o700 != 0o700:
        with suppress(OSError):
            _unlock(parent, name)
    return os.open(name, os.O_RDONLY | DIRECTORY, dir_fd=parent)


def _unlock(parent: int, name: str) -> None:
    # Through a descriptor, since chmod by name would follow a link that was put there meanwhile.
    fd = os.open(name, LOOK, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{fd}").chmod(0o700)
    finally:
        os.close(fd)


class GlobPattern:
    """A compiled glob pattern, matched one path component at a time and in linear time.

    ``*`` and ``?`` stay within a component, ``**`` spans any number of them, ``{a,b}`` are alternatives, ``[a-z]`` and
    ``[!a-z]`` character classes. A pattern without a slash matches at any depth.

    Walk with ``start``, ``step`` down the tree; an empty progress can match nothing below.
    """

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
