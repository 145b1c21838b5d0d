"""The way back after an upgrade of the tables: the copy that was made before it takes the place of the SQLite file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from deerflow.storage.errors import DatabaseError, NewerDatabaseError, OlderDatabaseError
from deerflow.storage.migrate import check_usable, copies_before_upgrades, copy_database

ASIDE = "before-rollback-"
"""Beginning of the names of directories that hold a newer database."""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The copy that is in place now, and the directory that holds the newer database."""

    copy: Path
    aside: Path


def rollback(location: str) -> RolledBack | None:
    """Put the newest copy in place that this program can use, if it cannot use the database. Return None if it can. Blocks.

    Nothing may use the database meanwhile. It is kept aside, whole; a kill at any moment leaves one of the two in place.

    Raises:
        DatabaseError: the database is PostgreSQL, in use, or of before the first release, or there is no such copy.
        OSError: for example, the disk is full. Nothing was changed.
    """
    is_server = "://" in location
    if not is_server and not Path(location).exists():
        return None
    why = _refusal(location)
    if why is None:
        return None
    if isinstance(why, OlderDatabaseError):
        raise why
    if is_server:
        raise DatabaseError(
            f"{why} PostgreSQL's own copy is the backup that you made: create an empty database, let "
            "`database.postgres_url` name it, and run `deerflow restore ARCHIVE`."
        )
    return _replace(Path(location), why)


def _refusal(location: str) -> NewerDatabaseError | OlderDatabaseError | None:
    """Return why this program does not use tables of that version, or None if it does."""
    try:
        check_usable(location)
    except (NewerDatabaseError, OlderDatabaseError) as error:
        return error
    return None


def let_go(database: Path) -> None:
    """Write what the journal holds into the file. Raises DatabaseError if another program has it open."""
    with closing(sqlite3.connect(database, timeout=1)) as connection:
        try:
            # A program that has the file open holds a lock that excludes this.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise DatabaseError(f"The database {database} is in use. Stop DeerFlow and try again.") from error
        except sqlite3.DatabaseError:
            pass  # damaged: what it is replaced for


def _replace(database: Path, why: NewerDatabaseError) -> RolledBack:
    chosen = next((one for one in copies_before_upgrades(database) if _refusal(str(one)) is None), None)
    if chosen is None:
        raise DatabaseError(
            f"{why} No copy that this program can use lies beside it. Bring a backup back with `deerflow restore ARCHIVE`."
        )
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    new = Path(tempfile.mkdtemp(dir=database.parent, prefix=".rollback-"))
    try:
        copy_database(chosen, new / "copy")
        let_go(database)
        aside = Path(tempfile.mkdtemp(dir=database.parent, prefix=f"{ASIDE}{stamp}-"))
        os.link(database, aside / database.name)
        for suffix in ("-wal", "-shm"):  # of a damaged file; otherwise they are empty or gone
            if (journal := database.with_name(database.name + suffix)).exists():
                journal.rename(aside / journal.name)
        (new / "copy").replace(database)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return RolledBack(chosen, aside)
