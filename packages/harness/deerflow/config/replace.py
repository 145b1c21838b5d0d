"""Putting a file in the place of another one."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(file: Path, text: str) -> None:
    """Put ``text`` in place of the file at once, with the file's mode; a new file only its owner may read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o7777 if file.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        _take_place(temporary, file, text)
    finally:
        temporary.unlink(missing_ok=True)


def _take_place(temporary: Path, file: Path, text: str) -> None:
    try:
        temporary.replace(file)
    except OSError as error:
        # A file that is mounted into a container by itself cannot be replaced, only written to.
        if error.errno != errno.EBUSY:
            raise
        file.write_text(text, encoding="utf-8")


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keeps two processes from editing at once. The lock is on the directory, so it leaves no file behind."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
