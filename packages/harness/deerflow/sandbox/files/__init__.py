"""Files of a sandbox, worked on from the host without ever leaving the sandbox's directories.

The sandbox may plant links, FIFOs and endless trees, and change them while we look. See ``walk`` for how a path
is found, ``tree`` for trees, ``FileOwner`` for whose rights are used.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import secrets
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache

from deerflow.sandbox.files.tree import (
    MADE_NAMES,
    MAX_STAMPED,
    QUIET_NAMES,
    GlobPattern,
    Search,
    entry_of,
    read_names,
    remove_tree,
)
from deerflow.sandbox.files.walk import (
    SandboxIsADirectoryError,
    SandboxNoSpaceError,
    SandboxNotADirectoryError,
    Spot,
    Walker,
    clean,
    file_errors,
    not_regular,
    shown_path,
)
from deerflow.sandbox.interface import Entry, Mount, SandboxFileNotFoundError, SandboxPermissionError

__all__ = [
    "SandboxFiles",
    "SandboxIsADirectoryError",
    "SandboxNoSpaceError",
    "SandboxNotADirectoryError",
    "shown_path",
]

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""For the final opening: follows nothing, waits for nobody, becomes nobody's terminal."""
_CHUNK = 1 << 20
_MAX_DEPTH = 64
"""Levels of one listing; each directory's path is walked anew, so an endless tree would take quadratic time."""


class SandboxFiles:
    """The file tools of one sandbox. Every method blocks (call it in a thread) and may be called from many threads."""

    def __init__(self, mounts: Sequence[Mount], *, owner: int | None = None) -> None:
        """
        Args:
            mounts: host directories and where they appear. A missing one may be made later.
            owner: for a gateway that runs as root: the uid (and gid) whose rights are used and who owns what is made.

        Raises:
            ValueError: a mount's path is not absolute, or this process may not act for ``owner``.
        """
        self._walker = Walker(mounts)
        self._owner = None if owner is None else FileOwner(owner)

    def close(self) -> None:
        """Give back the descriptors of an idle sandbox; the next call opens them again."""
        self._walker.close()

    def read(self, path: str, offset: int = 0, limit: int = 50 << 20) -> tuple[bytes, int]:
        """Up to ``limit`` bytes of a regular file from ``offset``, and its whole size in bytes.

        Raises:
            SandboxFileNotFoundError: no such file.
            SandboxPermissionError: outside of the sandbox, or not readable.
            SandboxFileError: a directory, a FIFO, a loop of links, ...
        """
        if offset < 0 or limit < 0:
            raise ValueError("offset and limit are numbers of bytes")
        with self._operation(path):
            fd = self._open_regular(path)
            try:
                chunks: list[bytes] = []
                while limit > 0 and (chunk := os.pread(fd, min(limit, _CHUNK), offset)):
                    chunks.append(chunk)
                    offset += len(chunk)
                    limit -= len(chunk)
                return b"".join(chunks), os.fstat(fd).st_size
            finally:
                os.close(fd)

    def open_fd(self, path: str, *, below: str = "/") -> int:
        """A read-only descriptor of a regular file, for streaming; the caller closes it.

        Raises:
            SandboxPermissionError: also if the file, after following links, is not below the directory ``below``.
            SandboxFileNotFoundError, SandboxFileError: as ``read``.
        """
        with self._operation(path):
            return self._open_regular(path, below)

    def real_path(self, path: str) -> str:
        """The virtual path of an existing entry without links and dots. Raises as ``read``, but for directories."""
        with self._operation(path), self._walker.walk(path) as spot:
            if spot.parent is not None and spot.info is None:
                raise FileNotFoundError(errno.ENOENT, "no such entry")
            return spot.path

    def write(self, path: str, data: bytes, append: bool = False) -> None:
        """Replace a file in one step, or append to it; parents are made. Readers see the old or the new, never half.

        Raises:
            SandboxPermissionError: outside of the sandbox, or read-only.
            SandboxFileError: a directory or something that is no regular file is there, or the disk is full.
        """
        with self._operation(path), self._walker.walk(path, make_parents=True) as spot:
            _require_writable(spot)
            if spot.is_directory:
                raise SandboxIsADirectoryError(f"Path is a directory: {shown_path(path)}")
            if spot.info is not None and not stat.S_ISREG(spot.info.st_mode):
                raise not_regular(path)
            if append:
                _append(spot, data)
            else:
                _replace(spot, data)

    def stat(self, path: str) -> Entry | None:
        """The entry at ``path`` after following links inside the sandbox; None if nothing is there.

        Raises:
            SandboxPermissionError: the path or a link leads out of the sandbox.
            SandboxFileError: a loop of links.
        """
        try:
            with self._operation(path), self._walker.walk(path) as spot:
                if spot.parent is None:
                    return Entry(clean(path), "directory")
                return None if spot.info is None else entry_of(clean(path), spot.info)
        except (SandboxFileNotFoundError, SandboxNotADirectoryError):
            return None

    def list(self, path: str, depth: int = 2, cap: int = 1000) -> tuple[list[Entry], bool]:
        """Entries up to ``depth`` levels below a directory, sorted by path, and whether some were left out.

        Levels are filled from the top, so a cut list still shows the whole first level if that fits. Directories
        such as ``node_modules`` are listed but not entered.

        Raises:
            SandboxFileNotFoundError, SandboxNotADirectoryError, SandboxPermissionError: as they say.
        """
        with self._operation(path):
            entries: list[Entry] = []
            queue = deque([(clean(path), 1)])
            cut = False
            while queue and not cut:
                directory, level = queue.popleft()
                try:
                    below, cut = self._list_one(directory, cap - len(entries))
                except (OSError, SandboxPermissionError, SandboxNotADirectoryError):
                    if level == 1:
                        raise
                    continue
                entries += below
                if level == _MAX_DEPTH:
                    cut |= any(map(_worth_entering, below))
                elif level < depth:
                    queue += [(entry.path, level + 1) for entry in below if _worth_entering(entry)]
            return sorted(entries, key=lambda entry: entry.path), cut

    def remove(self, path: str) -> None:
        """Remove a file, a link or a whole tree; links are removed, never followed.

        Raises:
            SandboxPermissionError: outside of the sandbox, read-only, or a mount itself.
            SandboxFileNotFoundError: nothing is there.
        """
        with self._operation(path), self._walker.walk(path, follow=False) as spot:
            if spot.parent is None or not spot.name or spot.path in self._walker.mount_paths:
                raise SandboxPermissionError(f"{shown_path(path)} belongs to the sandbox itself and cannot be removed.")
            _require_writable(spot)
            if spot.is_directory:
                remove_tree(spot.parent, spot.name)
            else:
                os.unlink(spot.name, dir_fd=spot.parent)

    def glob(self, root: str, pattern: str, *, include_dirs: bool = False, cap: int = 200) -> tuple[list[str], bool]:
        """Paths below ``root`` that match (see ``glob``), sorted, and whether more were left out.

        Raises:
            SandboxFileError: a bad pattern; or as ``list``.
        """
        kinds = ["file", "link", "other", "directory"] if include_dirs else ["file", "link", "other"]
        return self.find(root, pattern, kinds, cap)

    def find(self, root: str, pattern: str, kinds: Sequence[str], cap: int) -> tuple[list[str], bool]:
        """As ``glob``, but only entries of these kinds."""
        base = clean(root)
        search = Search(self._walker, GlobPattern(pattern, base))
        with self._operation(root):
            return search.run(base, kinds, cap)

    def fingerprint(self, root: str) -> str | None:
        """A digest of the names, sizes and times of all files below a directory, but for those that programs make.

        None: there are too many, or they lie too deep. Raises as ``list``.
        """
        search = Search(self._walker, GlobPattern("**/*"), skipped=MADE_NAMES, most=MAX_STAMPED)
        with self._operation(root):
            return search.fingerprint(clean(root))

    @contextmanager
    def _operation(self, path: str) -> Iterator[None]:
        with file_errors(path), self._walker.in_use(), self._owner.acting() if self._owner else nullcontext():
            yield

    def _open_regular(self, path: str, below: str = "/") -> int:
        with self._walker.walk(path) as spot:
            if not spot.path.startswith(below.rstrip("/") + "/"):
                raise self._walker.outside(path)
            if spot.is_directory:
                raise SandboxIsADirectoryError(f"Path is a directory: {shown_path(path)}")
            if spot.info is None:
                raise FileNotFoundError(errno.ENOENT, "no such file")
            if not stat.S_ISREG(spot.info.st_mode):
                raise not_regular(path)
            fd = os.open(spot.name, os.O_RDONLY | _SAFE, dir_fd=spot.parent)
        # What was a file a moment ago may be a FIFO now.
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise not_regular(path)
        return fd

    def _list_one(self, directory: str, room: int) -> tuple[list[Entry], bool]:
        """The first ``room`` entries of one directory, in the order of names."""
        fd = self._walker.open_directory(directory)
        try:
            names, cut = ({}, False) if fd is None else read_names(fd)
            mounts = self._walker.children(directory)
            names |= dict.fromkeys(mounts, "directory")
            entries: list[Entry] = []
            for name in sorted(names):
                path = f"{directory.rstrip('/')}/{name}"
                if name in mounts or fd is None:
                    entry = Entry(path, "directory")
                else:
                    try:
                        entry = entry_of(path, os.stat(name, dir_fd=fd, follow_symlinks=False))
                    except FileNotFoundError:
                        continue
                if len(entries) == room:
                    return entries, True
                entries.append(entry)
            return entries, cut
        finally:
            if fd is not None:
                os.close(fd)


def _worth_entering(entry: Entry) -> bool:
    return entry.kind == "directory" and entry.path.rpartition("/")[2] not in QUIET_NAMES


def _require_writable(spot: Spot) -> None:
    if spot.read_only and not (spot.parent is None and spot.is_directory):
        raise OSError(errno.EROFS, "read-only")


def _append(spot: Spot, data: bytes) -> None:
    fd = os.open(spot.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _SAFE, 0o644, dir_fd=spot.parent)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        _write_all(fd, data)
    finally:
        os.close(fd)


def _replace(spot: Spot, data: bytes) -> None:
    """Write beside the file and rename over it. A link put there meanwhile is itself replaced, not followed."""
    temporary = f".write-{secrets.token_hex(8)}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=spot.parent)
    try:
        try:
            _write_all(fd, data)
            os.fchmod(fd, 0o644 if spot.info is None else stat.S_IMODE(spot.info.st_mode) & 0o777)
        finally:
            os.close(fd)
        os.replace(temporary, spot.name, src_dir_fd=spot.parent, dst_dir_fd=spot.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=spot.parent)
        raise


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


_SETGROUPS = {"x86_64": 116, "aarch64": 159}
"""System call numbers. glibc's own ``setgroups`` changes every thread of the process; the call itself only one."""


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class FileOwner:
    """Lends a thread the file rights of a user: those, and no others.

    Linux keeps a file-system uid per thread. While it is set, the kernel checks and creates files as that user and
    root's override capabilities are gone, so even a mistake of ours cannot read root's files.
    """

    def __init__(self, user_id: int) -> None:
        """Raises ValueError if this process may not act for ``user_id``."""
        if os.geteuid() != 0 and user_id != os.geteuid():
            raise ValueError(f"Only root can work on files as user {user_id}.")
        self._user_id = user_id
        self._libc = _libc() if os.geteuid() == 0 and user_id != 0 else None
        self._groups = os.getgroups()

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Work as the owner within the block. Never await inside: the id belongs to the thread."""
        if self._libc is None:
            yield
            return
        user, libc = self._user_id, self._libc
        try:
            self._set_groups(libc, [])
            libc.setfsgid(user)
            libc.setfsuid(user)
            # These calls report nothing: asking again is the only way to learn whether they worked.
            if (libc.setfsuid(-1), libc.setfsgid(-1)) != (user, user):
                raise PermissionError(f"This process may not work on files as user {user}.")
            yield
        finally:
            libc.setfsuid(os.geteuid())
            libc.setfsgid(os.getegid())
            self._set_groups(libc, self._groups)

    def _set_groups(self, libc: ctypes.CDLL, groups: list[int]) -> None:
        number = _SETGROUPS.get(platform.machine())
        if self._groups and number is not None:
            libc.syscall(number, len(groups), (ctypes.c_uint32 * len(groups))(*groups))
