"""As root: a host uid of its own for every thread, and its directories handed over to it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import zlib
from pathlib import Path

FIRST_UID = 200_000
LAST_UID = 2_000_000_000
RANGES, RANGE = 4000, 100_000
MAX_ADOPTED = 200_000


class ThreadIdentities:
    """Stable uids by thread, kept in a small database so that several processes agree."""

    def __init__(self, database: Path, first_uid: int = FIRST_UID) -> None:
        self._database = database
        self._first = first_uid

    def uid(self, owner: str) -> int:
        """The uid of ``owner``, allotted on first use. Blocks for a file access.

        Raises:
            RuntimeError: every uid is taken.
        """
        self._database.parent.mkdir(0o711, parents=True, exist_ok=True)
        self._database.touch(0o600)
        self._database.chmod(0o600)  # one of an earlier version
        with contextlib.closing(sqlite3.connect(self._database, timeout=30, isolation_level=None)) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS identities (owner TEXT PRIMARY KEY, uid INTEGER UNIQUE NOT NULL)"
            )
            connection.execute("BEGIN IMMEDIATE")
            try:
                row = connection.execute("SELECT uid FROM identities WHERE owner = ?", (owner,)).fetchone()
                if row is None:
                    row = connection.execute(
                        "SELECT coalesce(max(uid) + 1, ?) FROM identities", (self._first,)
                    ).fetchone()
                    if row[0] > LAST_UID:
                        raise RuntimeError(f"No sandbox uid is left; delete {self._database} and the threads it names.")
                    connection.execute("INSERT INTO identities VALUES (?, ?)", (owner, row[0]))
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
        return int(row[0])


def range_of(directory: Path) -> int:
    """Where the uids of the installation in ``directory`` begin.

    The kernel counts processes by uid: threads of two installations on one machine must not share one.
    """
    return FIRST_UID + zlib.crc32(os.fsencode(directory)) % RANGES * RANGE


def adopt(directory: Path, uid: int) -> None:
    """Give ``directory`` and what lies in it to ``uid`` without following any link.

    Directories that belong to ``uid`` already are looked at only at the top level: below them the sandbox itself wrote.
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    waiting = [opened]
    seen = 0
    if os.fstat(opened).st_uid != uid:
        os.fchown(opened, uid, uid)
        os.fchmod(opened, 0o700)
    try:
        while waiting:
            parent = waiting.pop()
            try:
                for name in os.listdir(parent):  # noqa: PTH208 - by descriptor
                    seen += 1
                    if seen > MAX_ADOPTED:
                        return
                    child = _adopt_entry(parent, name, uid)
                    if child is not None:
                        waiting.append(child)
            finally:
                os.close(parent)
    finally:
        for parent in waiting:
            os.close(parent)


def _adopt_entry(parent: int, name: str, uid: int) -> int | None:
    """Chown one entry; a descriptor of it if it is a directory that was somebody else's."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if status.st_uid == uid:
            return None
        # The directory belongs to the sandbox: hold on to what was looked at, it may swap the name meanwhile.
        entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return None
    try:
        status = os.fstat(entry)
        # A second hard link may lie outside of the sandbox.
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            return None
        os.chown(f"/proc/self/fd/{entry}", uid, uid) if not stat.S_ISLNK(status.st_mode) else None
        if stat.S_ISDIR(status.st_mode):
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=entry)
        return None
    except OSError:
        return None
    finally:
        os.close(entry)
