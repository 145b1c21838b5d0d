"""What keeps a database from being used, in words for the person who can put it right."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deerflow.errors import UnavailableError


class DatabaseError(Exception):
    """The database cannot be used as it is. ``str()`` says where, why and what to do; what was stored before is still there."""


class TooSlowError(UnavailableError):
    """What was searched keeps the database busy for longer than a person may have it."""

    code = "too_slow"


class NewerDatabaseError(DatabaseError):
    """The database was made by a newer version of the program."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"The database is of version {found}, this program knows versions up to {known}. It was left as it is. "
            "Start the newer DeerFlow that used it last, or restore the copy that was made before that upgrade."
        )


_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full. Nothing was changed. Free some space and try again.",
    sqlite3.SQLITE_IOERR: "reading or writing failed. Check the disk, its free space and quota, and try again.",
    sqlite3.SQLITE_CORRUPT: "the file is damaged. It was left as it is. Bring a backup back with `deerflow restore "
    "ARCHIVE`, or save what can be read with `sqlite3 FILE .recover`.",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database. It was left as it is. Bring a backup back with `deerflow "
    "restore ARCHIVE`, point `database` to another file, or move this one away to begin anew.",
    sqlite3.SQLITE_READONLY: "it may not be written. Give the user that runs DeerFlow the right to write the file and its "
    "directory.",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened. Give the user that runs DeerFlow the right to read and write the "
    "file and its directory.",
    sqlite3.SQLITE_BUSY: "another program keeps it locked. Close what has the file open (a database browser, a backup) and "
    "try again.",
}

_CANCELED = "57014"
_UNREACHABLE = ("08", "28", "3D", "57")
"""SQLSTATE classes: connection, authorization, no such database, shut down."""


def is_out_of_reach(error: BaseException) -> bool:
    """Whether the database server could not be reached, so that nobody knows what became of the last statement."""
    cause: Any = getattr(error, "orig", None) or error
    if isinstance(error, DatabaseError) and error.__cause__ is not None:
        return is_out_of_reach(error.__cause__)
    if getattr(error, "connection_invalidated", False):
        return True
    if not type(cause).__module__.startswith("psycopg"):
        return False
    import psycopg

    return isinstance(cause, (psycopg.OperationalError, psycopg.InterfaceError))


@contextmanager
def explained(location: str) -> Iterator[None]:
    """Errors that a person can do something about become a :class:`DatabaseError`.

    Args:
        location: the path of the database; that of a server is not shown, since it holds a password.
    """
    try:
        yield
    except Exception as error:
        cause = getattr(error, "orig", None) or error
        if (
            getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
            or getattr(cause, "sqlstate", "") == _CANCELED
        ):
            raise TooSlowError(
                "The search took too long and was stopped. Ask for less: more words, fewer threads."
            ) from error
        remedy = _remedy(cause, location)
        if remedy is None:
            raise
        raise DatabaseError(remedy) from error


def _remedy(error: Any, location: str) -> str | None:
    if isinstance(error, sqlite3.Error):
        said = _REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        return said and f"The database {location} cannot be used: {said}"
    if isinstance(error, OSError):
        said = f"{error.strerror or error}. Make sure that its directory exists, has space and may be written."
        return f"The database {location} cannot be used: {said}"
    if type(error).__module__.startswith("psycopg"):
        return _postgres_remedy(error)
    return None


def _postgres_remedy(error: Any) -> str | None:
    import psycopg

    state: str | None = getattr(error, "sqlstate", None)
    if state == "53100":
        return "PostgreSQL has no space left. Nothing was changed. Free some space on its disk and try again."
    if isinstance(error, psycopg.OperationalError) and (state is None or state[:2] in _UNREACHABLE):
        return (
            f"PostgreSQL cannot be reached: {str(error).strip()}\n"
            "Make sure that it runs and that `database.postgres_url` names its host, port, user, password and database."
        )
    return None
