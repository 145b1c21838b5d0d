"""From a virtual path to an open directory: the walk that never lets the kernel follow a link.

Every component is opened with O_NOFOLLOW relative to a descriptor we already hold. A link is read and its target
walked again *in the virtual name space*, so it can only lead to where the sandbox itself could go, however the tree
changes meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock

from deerflow.sandbox.interface import Mount, SandboxFileError, SandboxFileNotFoundError, SandboxPermissionError

MAX_LINKS = 40
MAX_PATH = 4096
"""Bytes, as the kernel's PATH_MAX: nobody inside could name a longer path either."""
MAX_STEPS = 20_000
"""Openings per walk. Only a link farm built to waste our time comes near it."""

DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LOOK = DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
"""To pass through a directory; with O_PATH the right to search it is enough."""

Names = tuple[str, ...]


@dataclass(slots=True)
class Spot:
    """Where a path led: the entry ``name`` in the directory that ``parent`` holds open."""

    path: str
    """The virtual path without links and dots."""
    parent: int | None
    """None: a directory that exists only as the way to mounts, like ``/mnt``."""
    name: str
    """Empty: ``parent`` itself, the root of a mount."""
    info: os.stat_result | None
    """Of the entry itself; None: it does not exist."""
    read_only: bool

    @property
    def is_directory(self) -> bool:
        return self.parent is None or (self.info is not None and stat.S_ISDIR(self.info.st_mode))


@dataclass(slots=True)
class _MountPoint:
    """A mounted host directory, opened when first needed: it may be made later than the sandbox."""

    mount: Mount
    fd: int = -1


class Walker:
    """The virtual name space: mounts, and the directories that lead to them."""

    def __init__(self, mounts: Sequence[Mount]) -> None:
        self._points = {_names(mount.path): _MountPoint(mount) for mount in mounts}
        self._ways = {names[:depth] for names in self._points for depth in range(len(names))} | {()}
        self._deepest = max(map(len, self._points), default=0)
        self._below = {
            _joined(way): sorted({names[len(way)] for names in self._points if names[: len(way)] == way != names})
            for way in self._ways
        }
        self.mount_paths = frozenset(_joined(names) for names in {*self._points, *self._ways})
        """The mounts and the directories that lead to them."""
        self._lock = Lock()
        self._users = 0
        self._closing = False

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Hold the mounts open for the block. Enter it with the process's own rights."""
        with self._lock:
            for point in self._points.values():
                if point.fd < 0:
                    # Here links are followed: where a mount lies is the operator's business.
                    with suppress(OSError):
                        point.fd = os.open(point.mount.host, LOOK & ~os.O_NOFOLLOW)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                self._close_unused()

    def close(self) -> None:
        """Give the descriptors back as soon as nobody uses them; the next use takes them again."""
        with self._lock:
            self._closing = True
            self._close_unused()

    def _close_unused(self) -> None:
        if self._closing and self._users == 0:
            self._closing = False
            for point in self._points.values():
                if point.fd >= 0:
                    os.close(point.fd)
                    point.fd = -1

    def children(self, path: str) -> list[str]:
        """Names in a directory that are there because of mounts."""
        return self._below.get(path, [])

    def open_directory(self, path: str) -> int | None:
        """A readable descriptor of a directory, which the caller closes; None if it only leads to mounts. Raises as ``walk``."""
        with self.walk(path) as spot:
            if spot.parent is None:
                return None
            return os.open(spot.name or ".", os.O_RDONLY | DIRECTORY, dir_fd=spot.parent)

    @contextmanager
    def walk(self, path: str, *, follow: bool = True, make_parents: bool = False) -> Iterator[Spot]:
        """Find ``path``; the spot's descriptor is closed at the end of the block.

        Args:
            follow: also follow the last component if it is a link.
            make_parents: create missing directories on the way.

        Raises:
            SandboxPermissionError: the path, or a link in it, leads out of the sandbox.
            SandboxFileError: the path is relative, holds NUL, or winds too much.
            OSError: a component is missing, not a directory, or not accessible.
        """
        trip = _Trip(self, path, deque(_checked(path)), follow, make_parents)
        try:
            yield trip.run()
        finally:
            trip.drop()

    def outside(self, path: str) -> SandboxPermissionError:
        mounts = ", ".join(sorted(map(_joined, self._points))) or "none"
        return SandboxPermissionError(f"{shown_path(path)} is outside of the sandbox. Directories: {mounts}")


@dataclass(slots=True)
class _Trip:
    """One walk. Holds a single descriptor, so a deep path costs no more of them than a shallow one."""

    walker: Walker
    path: str
    todo: deque[str]
    follow: bool
    make_parents: bool
    links: int = 0
    steps: int = 0
    fd: int = -1
    names: list[str] = field(default_factory=list[str])
    mount: Mount | None = None

    def run(self) -> Spot:
        while self.todo:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise SandboxFileError(f"The path winds too much: {shown_path(self.path)}")
            name = self.todo.popleft()
            if name == "..":
                self._climb()
            elif len(self.names) < self.walker._deepest and self._enter_mounts(name):
                continue
            elif self.fd < 0:
                raise self.walker.outside(self.path)
            elif self.todo:
                self._pass_through(name)
            elif spot := self._arrive(name):
                return spot
        return self._at_directory()

    def drop(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _climb(self) -> None:
        # The names so far hold no link, so their parent is the list less one; walking it again needs no held parents.
        self.todo.extendleft(reversed(self.names[:-1]))
        self._restart()

    def _restart(self) -> None:
        self.drop()
        self.names = []
        self.mount = None

    def _enter_mounts(self, name: str) -> bool:
        """Step onto a mount, or a directory that leads to one. False: neither."""
        names = (*self.names, name)
        if point := self.walker._points.get(names):
            if point.fd < 0:
                raise FileNotFoundError(errno.ENOENT, "mount")
            self._move(os.dup(point.fd), name)
            self.mount = point.mount
            return True
        if names not in self.walker._ways:
            return False
        fd = -1
        if self.fd >= 0:
            with suppress(OSError):
                fd = os.open(name, LOOK, dir_fd=self.fd)
        self._move(fd, name)
        return True

    def _move(self, fd: int, name: str) -> None:
        self.drop()
        self.fd = fd
        self.names.append(name)

    def _pass_through(self, name: str) -> None:
        try:
            fd = os.open(name, LOOK, dir_fd=self.fd)
        except FileNotFoundError:
            if not self.make_parents:
                raise
            if self.mount is None or self.mount.read_only:
                raise OSError(errno.EROFS, "read-only") from None
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=self.fd)
            fd = os.open(name, LOOK, dir_fd=self.fd)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            self._follow_link(name)
            return
        self._move(fd, name)

    def _arrive(self, name: str) -> Spot | None:
        """The spot of the last component, or None if it was a link that leads on."""
        try:
            info = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            info = None
        if info is not None and stat.S_ISLNK(info.st_mode) and self.follow:
            self._follow_link(name)
            return None
        assert self.mount is not None
        return Spot(_joined([*self.names, name]), self.fd, name, info, self.mount.read_only)

    def _at_directory(self) -> Spot:
        path = _joined(self.names)
        if self.fd < 0 or self.mount is None:
            return Spot(path, None, "", None, read_only=True)
        return Spot(path, self.fd, "", os.fstat(self.fd), self.mount.read_only)

    def _follow_link(self, name: str) -> None:
        try:
            target = os.readlink(name, dir_fd=self.fd)
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise NotADirectoryError(errno.ENOTDIR, "not a directory") from None
            raise
        self.links += 1
        if self.links > MAX_LINKS:
            raise OSError(errno.ELOOP, "too many links")
        self.todo.extendleft(reversed(_parts(target)))
        if target.startswith("/"):
            self._restart()


def clean(path: str) -> str:
    """``path`` with single slashes, without ``.`` and a trailing slash."""
    return _joined(_parts(path))


def _checked(path: str) -> list[str]:
    if not path.startswith("/"):
        raise SandboxFileError(f"The path must be absolute, such as /mnt/user-data/workspace/{shown_path(path)[:200]}")
    if "\0" in path:
        raise SandboxFileError("The path holds a NUL character.")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise SandboxFileError(f"The path is not valid text: {shown_path(path)[:200]}") from None
    if length > MAX_PATH:
        raise OSError(errno.ENAMETOOLONG, "path too long")
    return _parts(path)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _names(path: str) -> Names:
    names = tuple(_parts(path))
    if not path.startswith("/") or ".." in names:
        raise ValueError(f"A mount's path must be absolute and without '..': {path!r}")
    return names


def _joined(names: Sequence[str]) -> str:
    return "/" + "/".join(names)


# errors: in words, with the virtual path and nothing of the host's --------------------------------------------------------

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format (bidi overrides, zero width), surrogates (bytes that are not UTF-8), line and paragraph separators."""


class SandboxIsADirectoryError(SandboxFileError):
    """A file was expected and a directory is there."""


class SandboxNotADirectoryError(SandboxFileError):
    """A directory was expected and something else is there."""


class SandboxNoSpaceError(SandboxFileError):
    """The disk or the quota is full."""


def shown_path(path: str) -> str:
    """``path`` fit for a line of text: what could break the line or deceive the reader is escaped.

    A byte that is not UTF-8 becomes ``\\xNN``, other hidden characters ``\\n`` or ``\\u202e``.
    """
    if path.isascii() and path.isprintable():
        return path
    return "".join(_shown(char) for char in path)


def _shown(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    if unicodedata.category(char) in _HIDDEN_CATEGORIES:
        return ascii(char)[1:-1]
    return char


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn any OSError into the sandbox error that names ``path``.

    Raises:
        SandboxFileError: or its kinds, in place of OSError.
    """
    try:
        yield
    except OSError as error:
        raise _translated(error, shown_path(path)) from None


def _translated(error: OSError, path: str) -> SandboxFileError:
    match error.errno:
        case errno.ENOENT:
            return SandboxFileNotFoundError(f"No such file or directory: {path}")
        case errno.EACCES | errno.EPERM:
            return SandboxPermissionError(f"Permission denied: {path}")
        case errno.EROFS:
            return SandboxPermissionError(f"Read-only: {path} cannot be changed.")
        case errno.EISDIR:
            return SandboxIsADirectoryError(f"Path is a directory: {path}")
        case errno.ENOTDIR:
            return SandboxNotADirectoryError(f"Not a directory: {path}")
        case errno.ELOOP:
            return SandboxFileError(f"Too many symbolic links, or the file changed while it was opened: {path}")
        case errno.ENAMETOOLONG:
            return SandboxFileError(f"Path too long: {path[:200]}...")
        case errno.ENOSPC | errno.EDQUOT:
            return SandboxNoSpaceError(f"No space left: {path} was not written.")
        case errno.EINVAL | errno.ENXIO:
            return not_regular(path)
        case None:
            return SandboxFileError(f"The file operation failed: {path}")
        case number:
            return SandboxFileError(f"{os.strerror(number)}: {path}")


def not_regular(path: str) -> SandboxFileError:
    """The error for a FIFO, socket or device, which would hang or act when opened."""
    return SandboxFileError(f"Not a regular file: {shown_path(path)}")
