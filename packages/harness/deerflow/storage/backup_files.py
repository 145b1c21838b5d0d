"""Writing files that people and sandboxes use meanwhile into an archive."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import IO

from deerflow.config import Paths
from deerflow.storage.migrate import copy_database

_SQLITE = b"SQLite format 3\0"


def add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(content), time.time(), 0o600
    archive.addfile(entry, io.BytesIO(content))


def add_home(archive: tarfile.TarFile, paths: Paths, work: Path, *, left_out: Collection[Path]) -> None:
    """Add everything below the base directory as ``home/...``: directories, files, and links as links.

    Much of it belongs to sandboxes: nothing is followed, whatever they swap meanwhile. What vanishes is left out.

    Args:
        work: where databases are copied to before they are added.
        left_out: paths that are not added.
    """
    for parent, directories, files, parent_fd in os.fwalk(paths.base_dir, follow_symlinks=False):
        place = Path(parent)
        directories[:] = [name for name in directories if place / name not in left_out]
        for name in directories + files:
            path = place / name
            if path in left_out or (path.name.endswith(("-wal", "-shm")) and place == paths.data_dir):
                continue
            entry = tarfile.TarInfo(f"home/{path.relative_to(paths.base_dir)}")
            if place == paths.data_dir and _is_database(path):
                _add_database(archive, entry.name, path, work)
            else:
                _add_entry(archive, entry, name, parent_fd)


def _add_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, name: str, parent_fd: int) -> None:
    try:
        status = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=parent_fd)
            archive.addfile(_with_status(entry, status))
        elif stat.S_ISDIR(status.st_mode):
            entry.type = tarfile.DIRTYPE
            archive.addfile(_with_status(entry, status))
        elif stat.S_ISREG(status.st_mode):
            # NONBLOCK, since it may have become a pipe, which would keep us waiting.
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent_fd)
            with os.fdopen(opened, "rb") as file:
                status = os.fstat(opened)
                if stat.S_ISREG(status.st_mode):
                    entry.size = status.st_size
                    archive.addfile(_with_status(entry, status), _Exactly(file))
    except FileNotFoundError:
        return
    except OSError as error:
        if error.filename is None:
            raise  # of the archive: no space, for example


def _with_status(entry: tarfile.TarInfo, status: os.stat_result) -> tarfile.TarInfo:
    entry.mode, entry.uid, entry.gid, entry.mtime = (
        stat.S_IMODE(status.st_mode),
        status.st_uid,
        status.st_gid,
        status.st_mtime,
    )
    return entry


class _Exactly(io.RawIOBase):
    """A file that never ends early: one that is cut short while it is read goes on with zeros, as its size was told."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size).ljust(size, b"\0")


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return path.is_file() and not path.is_symlink() and file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _add_database(archive: tarfile.TarFile, name: str, path: Path, work: Path) -> None:
    copy = work / path.name
    copy_database(path, copy)
    archive.add(copy, name)
    copy.unlink()
