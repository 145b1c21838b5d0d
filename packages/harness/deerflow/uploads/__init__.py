"""Files that a person gives to a thread."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
import time
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import BinaryIO

from deerflow.sandbox.converters.pictures import MAX_BYTES as MAX_PICTURE
from deerflow.sandbox.converters.pictures import digest, mime_type_of
from deerflow.sandbox.documents import TEXT_MARK
from deerflow.sandbox.interface import UPLOADS

MAX_NAME_BYTES = 255
_UNSAFE = frozenset("<>\"'`")
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Control characters and those that turn the direction of text: a name is shown as it is stored."""


class PathTraversalError(ValueError):
    """A name or path leads out of the directory it must stay in."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a thread's uploads directory."""

    filename: str
    size: int
    modified: float

    @property
    def path(self) -> str:
        return f"{UPLOADS}/{self.filename}"


def normalize_filename(name: str) -> str:
    """The last component of ``name``, with ``_`` for what could mislead where it is shown. Raises ValueError if nothing usable remains."""
    base = name.rsplit("/", 1)[-1]
    if base in ("", ".", "..") or "\\" in base or "\0" in base:
        raise ValueError(f"Unusable file name: {name!r}")
    if len(os.fsencode(base)) > MAX_NAME_BYTES:
        raise ValueError(f"File name is longer than {MAX_NAME_BYTES} bytes: {base[:60]!r}...")
    return "".join("_" if char in _UNSAFE or unicodedata.category(char) in _UNSEEN else char for char in base)


def save_uploads(files: Iterable[tuple[str, BinaryIO]], uploads_dir: Path) -> list[Upload]:
    """Copy files, each with its name, into a thread's uploads: all, or none. One whose name is taken becomes ``stem_1.ext`` and so on.

    Raises:
        ValueError: a name is unusable.
        OSError: a file cannot be read or written.
    """
    staging = Staging(uploads_dir)
    try:
        for name, source in files:
            staging.begin(name)
            while block := source.read(_BLOCK):
                staging.write(block)
        return staging.publish()
    finally:
        staging.discard()


def keep_once(data: bytes, name: str, uploads_dir: Path) -> Upload:
    """Keep ``data`` as an upload whose name holds its digest: one that is there already is that upload. Raises as :func:`save_uploads`."""
    name = normalize_filename(name)
    with suppress(OSError):
        if _start(uploads_dir / name, len(data) + 1) == data:
            return _upload(name, (uploads_dir / name).lstat())
    return save_uploads([(name, io.BytesIO(data))], uploads_dir)[0]


def list_uploads(uploads_dir: Path) -> list[Upload]:
    """Regular files in ``uploads_dir``, by name. A directory that does not exist is empty and is not made."""
    try:
        entries = sorted(uploads_dir.iterdir())
    except FileNotFoundError:
        return []
    found: list[Upload] = []
    for entry in entries:
        with suppress(FileNotFoundError):  # the sandbox has removed it meanwhile
            info = entry.lstat()  # of the entry itself, never of what a link points to
            if stat.S_ISREG(info.st_mode):
                found.append(_upload(entry.name, info))
    return found


def delete_upload(uploads_dir: Path, name: str) -> None:
    """Remove one file.

    Raises:
        PathTraversalError: the name leads elsewhere, or is a link.
        FileNotFoundError: there is no such file.
    """
    target = uploads_dir / name
    if name != target.name or name == ".." or target.is_symlink():
        raise PathTraversalError(f"Not a file of this thread's uploads: {name!r}")
    text = text_beside(uploads_dir, name)
    target.unlink()
    if text is not None:
        text.unlink(missing_ok=True)


def text_beside(uploads_dir: Path, name: str) -> Path | None:
    """The text that was made of a document, if it is there; a file of that name that a person sent is none."""
    with suppress(OSError, StopIteration):
        if next(_lines(text := uploads_dir / f"{name}.md")).startswith(TEXT_MARK):
            return text
    return None


def free_names(name: str) -> Iterable[str]:
    """``name``, then ``stem_1.ext`` and so on: which of them to try as long as they are taken."""
    yield name
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
    for number in range(1, 10_000):
        tail = f"_{number}{suffix}"
        room = MAX_NAME_BYTES - len(os.fsencode(tail))
        yield os.fsencode(stem)[:room].decode("utf-8", "ignore") + tail


def _upload(name: str, info: os.stat_result) -> Upload:
    return Upload(name, info.st_size, info.st_mtime)


MAX_OUTLINE_ENTRIES = 50
MAX_BYTES, MAX_LINES = 1 << 20, 20_000
"""How far a document is read."""
MAX_LINE = 1000
"""Bytes of a line that are looked at."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Headings as (title, 1-based line); ``truncated`` when there are more."""

    entries: tuple[tuple[str, int], ...] = ()
    truncated: bool = False


def extract_outline(path: Path) -> Outline:
    """Outline of the Markdown file at ``path``; empty if it cannot be read or is a link."""
    try:
        headings = list(islice(_headings(_lines(path)), MAX_OUTLINE_ENTRIES + 1))
    except OSError:
        return Outline()
    return Outline(tuple(headings[:MAX_OUTLINE_ENTRIES]), truncated=len(headings) > MAX_OUTLINE_ENTRIES)


def picture_digest(path: Path) -> str | None:
    """Return the digest of an uploaded picture; None for other files, and for a picture that is too large to be shown."""
    try:
        if mime_type_of(_start(path, 64)) is None or len(data := _start(path, MAX_PICTURE + 1)) > MAX_PICTURE:
            return None
    except OSError:
        return None
    return digest(data)


def _start(path: Path, size: int) -> bytes:
    """The sandbox can put a link to a file of the host, or a pipe, in the place of an upload."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(size) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _lines(path: Path) -> Iterator[str]:
    for line in islice(io.BytesIO(_start(path, MAX_BYTES)), MAX_LINES):
        yield line[:MAX_LINE].decode("utf-8", "replace").rstrip("\r\n")


def _headings(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    fenced = False
    for number, line in enumerate(lines, 1):
        text = line.lstrip(" ")
        if len(line) - len(text) > 3:
            continue
        if text.startswith(("```", "~~~")):
            fenced = not fenced
            continue
        title = text.lstrip("#")
        opens = not fenced and 1 <= len(text) - len(title) <= 6 and title[:1].isspace()
        if opens and (name := title.strip().rstrip("#").rstrip().replace("**", "").strip()):
            yield name, number


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20
_FORGOTTEN = 24 * 3600.0
"""Seconds after which a staged file belongs to nobody: its process died."""


class Staging:
    """The files of one request, which wait beside a thread's uploads, closed to its sandbox. Every method blocks.

    ``discard`` ends it, and may come while another thread still works for a request that was cancelled.
    """

    def __init__(self, uploads_dir: Path) -> None:
        """Raises OSError."""
        self._uploads = uploads_dir
        self._directory = directory = uploads_dir.parents[1] / "incoming"
        directory.mkdir(mode=0o700, exist_ok=True)
        self._staged: list[tuple[Path, str]] = []
        self._fd = -1
        self._ended = False
        self._lock = RLock()
        for entry in directory.iterdir():
            with suppress(FileNotFoundError):  # published meanwhile, by another request
                if entry.lstat().st_mtime < time.time() - _FORGOTTEN:
                    entry.unlink(missing_ok=True)

    def begin(self, name: str) -> None:
        """The next file. Raises ValueError for an unusable name, and OSError."""
        base = normalize_filename(name)
        with self._lock:
            self._close()
            self._require_open()
            path = self._directory / secrets.token_hex(16)
            self._fd = os.open(path, _NEW, 0o644)
            self._staged.append((path, base))

    def write(self, data: bytes) -> None:
        """Append to the file that was begun last. Raises OSError."""
        with self._lock:
            self._require_open()
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._fd, rest) :]

    def publish(self) -> list[Upload]:
        """Move all files into the uploads, in their order, each under a free name, owned by who owns the directory.

        Raises OSError; then none of them is there.
        """
        with self._lock:
            self._close()
            self._require_open()
            parent = os.open(self._uploads, _DIRECTORY)
            published: list[Upload] = []
            try:
                for path, name in self._staged:
                    published.append(_move(path, name, parent))
            except BaseException:
                for upload in published:
                    _remove(upload.filename, parent)
                raise
            finally:
                os.close(parent)
            return published

    def discard(self) -> None:
        """Remove what was not published."""
        with self._lock:
            self._ended = True
            self._close()
            for path, _ in self._staged:
                path.unlink(missing_ok=True)
            self._staged.clear()

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _require_open(self) -> None:
        if self._ended:
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))


def _move(path: Path, name: str, parent: int) -> Upload:
    if os.geteuid() == 0:
        owner = os.fstat(parent).st_uid
        os.chown(path, owner, owner)
    free, handle = _new_file(name, parent)
    os.close(handle)
    try:
        os.replace(path, free, dst_dir_fd=parent)
    except BaseException:
        _remove(free, parent)
        raise
    return _upload(free, os.stat(free, dir_fd=parent, follow_symlinks=False))


def _new_file(name: str, parent: int) -> tuple[str, int]:
    """A free name, and the file that now has it. A link of a name is neither followed nor replaced."""
    for candidate in free_names(name):
        with suppress(FileExistsError):
            return candidate, os.open(candidate, _NEW, 0o644, dir_fd=parent)
    raise OSError(errno.EEXIST, "too many files of this name", name)


def _remove(name: str, parent: int) -> None:
    with suppress(OSError):  # the sandbox was faster, or put a directory there: not ours any more
        os.unlink(name, dir_fd=parent)
