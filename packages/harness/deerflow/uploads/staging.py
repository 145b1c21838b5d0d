"""Files on their way into a thread: out of its sight until all of them are there."""

from __future__ import annotations

import errno
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from threading import RLock

from deerflow.uploads.store import Upload, free_names, normalize_filename

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FORGOTTEN = 24 * 3600.0
"""Seconds after which a staged file belongs to nobody: its process died."""


class Staging:
    """The files of one request. Every method blocks.

    ``discard`` ends it, and may come while another thread still works for a request that was cancelled.
    """

    def __init__(self, directory: Path) -> None:
        """``directory``: on the file system of the uploads and closed to the sandbox; made if need be. Raises OSError."""
        directory.mkdir(mode=0o700, exist_ok=True)
        self._directory = directory
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

    def publish(self, uploads_dir: Path) -> list[Upload]:
        """Move all files into ``uploads_dir``, in their order, each under a free name, owned by who owns the directory.

        Raises OSError; then none of them is there.
        """
        with self._lock:
            self._close()
            self._require_open()
            parent = os.open(uploads_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
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
    for candidate in free_names(name):
        try:
            # Takes the name; a link of that name is neither followed nor replaced.
            os.close(os.open(candidate, _NEW, 0o644, dir_fd=parent))
        except FileExistsError:
            continue
        try:
            os.replace(path, candidate, dst_dir_fd=parent)
        except BaseException:
            _remove(candidate, parent)
            raise
        info = os.stat(candidate, dir_fd=parent, follow_symlinks=False)
        return Upload(candidate, info.st_size, info.st_mtime)
    raise OSError(errno.EEXIST, "too many files of this name", name)


def _remove(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        # The sandbox was faster, or put a directory there: not ours any more.
        return
