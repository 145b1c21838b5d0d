"""Files that a person gives to a thread."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

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


def save_upload(source: BinaryIO, name: str, uploads_dir: Path) -> Upload:
    """Copy ``source`` into ``uploads_dir`` under ``name`` or, if that is taken, ``stem_1.ext`` and so on.

    Opens with O_EXCL and O_NOFOLLOW, so that a link planted by the sandbox is never written through.

    Raises:
        ValueError: the name is unusable.
        OSError: the file cannot be written; nothing is left behind.
    """
    base = normalize_filename(name)
    for candidate in free_names(base):
        target = uploads_dir / candidate
        try:
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            try:
                shutil.copyfileobj(source, file, 1 << 20)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
            file.flush()
            return _upload(candidate, os.fstat(file.fileno()))
    raise OSError(errno.EEXIST, "too many files of this name", base)


def list_uploads(uploads_dir: Path) -> list[Upload]:
    """Regular files in ``uploads_dir``, by name. A directory that does not exist is empty and is not made."""
    try:
        entries = sorted(uploads_dir.iterdir())
    except FileNotFoundError:
        return []
    found = ((entry.name, _info(entry)) for entry in entries)
    return [_upload(name, info) for name, info in found if info and stat.S_ISREG(info.st_mode)]


def delete_upload(uploads_dir: Path, name: str) -> None:
    """Remove one file.

    Raises:
        PathTraversalError: the name leads elsewhere, or is a link.
        FileNotFoundError: there is no such file.
    """
    target = uploads_dir / name
    if name != target.name or name == ".." or target.is_symlink():
        raise PathTraversalError(f"Not a file of this thread's uploads: {name!r}")
    target.unlink()


def free_names(name: str) -> Iterable[str]:
    """``name``, then ``stem_1.ext`` and so on: which of them to try as long as they are taken."""
    yield name
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
    for number in range(1, 10_000):
        tail = f"_{number}{suffix}"
        room = MAX_NAME_BYTES - len(os.fsencode(tail))
        yield os.fsencode(stem)[:room].decode("utf-8", "ignore") + tail


def _info(path: Path) -> os.stat_result | None:
    """Of the entry itself, never of what a link points to; None if the sandbox has removed it meanwhile."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _upload(name: str, info: os.stat_result) -> Upload:
    return Upload(name, info.st_size, info.st_mtime)
