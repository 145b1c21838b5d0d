"""What keeps a database from being used, in words for the person who can put it right."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import zstandard

from deerflow.errors import Code, UnavailableError


class DatabaseError(Exception):
    """The database cannot be used as it is. ``str()`` says where, why and what to do; what was stored before is still there.

    ``public`` is what everyone may read, ``code`` is for programs.
    """

    public = "The database cannot be used just now; the server's log says why."
    code: Code = "unavailable"


class FullDatabaseError(DatabaseError):
    """There is no room to write. What is there can still be read."""

    public = (
        "The server's disk is full or cannot be written: what is there can be read, but nothing new is kept. Whoever looks "
        "after the server has to make room."
    )
    code = "no_space"


class DamagedDatabaseError(DatabaseError):
    """The file of the database is not as it was written."""

    public = (
        "The database is damaged. Whoever looks after the server can bring a backup back with `deerflow restore ARCHIVE`; "
        "its log says which file it is."
    )
    code = "damaged"


class TooSlowError(UnavailableError):
    """What was searched keeps the database busy for longer than a person may have it."""

    code = "too_slow"


class NewerDatabaseError(DatabaseError):
    """The database was made by a newer version of the program."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"The database is of version {found}, this program knows versions up to {known}. It was left as it is. "
            "Start the newer DeerFlow that used it last, or put the copy that was made before that upgrade back with "
            "`deerflow rollback`."
        )


class OlderDatabaseError(DatabaseError):
    """The tables are of development before the first release, which no release brings up to date."""

    FIRST = "0021"
    """The number of the first migration."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"The tables are of version {found}, made in development before DeerFlow 0.1.0, which knows versions from {self.FIRST} "
            "on. Nothing was changed. Let the last program that brings them up to date start with them once (in a checkout: "
            "`git checkout 85ec0023 && make run`), then start this one. Restore a backup of such tables there, and make a new one."
        )


class ForeignDatabaseError(DatabaseError):
    """The database belongs to deer-flow, whose tables have names of ours and other columns."""

    TABLE = "threads_meta"
    """A table that each of its databases has, and none of ours."""

    def __init__(self, location: str) -> None:
        where = "The PostgreSQL database" if "://" in location else f"The database {location}"
        super().__init__(
            f"{where} belongs to deer-flow. Nothing was changed. Give DeerFlow a data directory and a database of its own "
            "(DEER_FLOW_HOME, `database`), then take everything over with `deerflow import deer-flow DIR`."
        )


_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full. Nothing was changed. Free some space and try again.",
    sqlite3.SQLITE_IOERR: "reading or writing failed. Check the disk, its free space and quota, and try again.",
    sqlite3.SQLITE_CORRUPT: "the database is damaged. It was left as it is. Bring a backup back with `deerflow restore "
    "ARCHIVE`, or save what can be read with `sqlite3 FILE .recover`.",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database. It was left as it is. Bring a backup back with `deerflow "
    "restore ARCHIVE`, point `database` to another file, or move this one away to begin anew.",
    sqlite3.SQLITE_READONLY: "it may not be written. Give the user that runs DeerFlow the right to write the file and its "
    "directory, or set DEER_FLOW_HOME to another directory.",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened. Give the user that runs DeerFlow the right to read and write the "
    "file and its directory, or set DEER_FLOW_HOME to another directory.",
    sqlite3.SQLITE_BUSY: "another program keeps it locked. Close what has the file open (a database browser, a backup) and "
    "try again.",
}

_KINDS = {
    sqlite3.SQLITE_FULL: FullDatabaseError,
    sqlite3.SQLITE_IOERR: FullDatabaseError,
    sqlite3.SQLITE_CORRUPT: DamagedDatabaseError,
    sqlite3.SQLITE_NOTADB: DamagedDatabaseError,
}

_CANCELED = "57014"
_UNREACHABLE = ("08", "28", "3D", "57")
"""SQLSTATE classes: connection, authorization, no such database, shut down."""


_OF_THE_ROLE = {
    "25006": "PostgreSQL is read-only here: it is a standby, or `default_transaction_read_only` is on. Let "
    "`database.postgres_url` name the primary server, or run: ALTER ROLE … SET default_transaction_read_only = off.",
    "42501": "PostgreSQL refuses DeerFlow's role a right that it needs. Make the role the owner of the database and of its schema: "
    "ALTER DATABASE … OWNER TO …; ALTER SCHEMA public OWNER TO ….",
}


def check_encoding(encoding: str | None) -> None:
    """Raise DatabaseError unless the PostgreSQL database stores UTF-8."""
    if encoding not in (None, "UTF8"):
        raise DatabaseError(
            f"The PostgreSQL database's encoding is {encoding}, which does not hold every character. Create it with UTF8: "
            "CREATE DATABASE deerflow ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0."
        )


def check_sessions(connection: Any, url: str, direct: str) -> None:
    """Raise DatabaseError unless sessions at ``direct`` are ours alone, and of the database of ``connection``, which is to ``url``."""
    import psycopg

    if direct == url and connection.info.backend_pid == _value(connection, "SELECT pg_backend_pid()"):
        return
    options: dict[str, Any] = {"autocommit": True, "connect_timeout": 10}
    with psycopg.connect(direct, **options) as one, psycopg.connect(direct, **options) as other:
        if _value(one, _SAME) != _value(connection, _SAME):
            raise DatabaseError(
                "`database.postgres_direct_url` and `database.postgres_url` name different databases. Let both name the same one on the "
                "same server, the first without the pooler."
            )
        pids = [_value(each, "SELECT pg_backend_pid()") for each in (one, other) * 3]
        if set(pids[::2]) & set(pids[1::2]) or len(set(pids)) > 2:
            raise DatabaseError(
                "A pooler in front of PostgreSQL gives each transaction another session, which loses the locks of threads. Let "
                "`database.postgres_direct_url` name PostgreSQL itself, or a pooler of sessions; `postgres_url` may stay as it is."
            )


_SAME = """SELECT (oid, extract(epoch FROM pg_postmaster_start_time()))::text FROM pg_database
WHERE datname = current_database()"""


def _value(connection: Any, query: str) -> Any:
    return connection.execute(query, prepare=False).fetchone()[0]


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
        if (better := explanation(error, location)) is error:
            raise
        raise better from error


def explanation(error: Exception, location: str) -> Exception:
    """What :func:`explained` raises in place of ``error``: the error itself where nobody can do anything about it."""
    cause: Any = getattr(error, "orig", None) or error
    if (
        getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
        or getattr(cause, "sqlstate", "") == _CANCELED
    ):
        better = TooSlowError("The search took too long and was stopped. Ask for less: more words, fewer threads.")
    elif isinstance(cause, sqlite3.Error | zstandard.ZstdError):
        code = _sqlite_code(cause)
        if code not in _REMEDIES:
            return error
        better = _KINDS.get(code, DatabaseError)(f"The database {location} cannot be used: {_REMEDIES[code]}")
    elif isinstance(cause, OSError):
        said = f"{cause.strerror or cause}. Make sure that its directory exists, has space and may be written."
        better = DatabaseError(f"The database {location} cannot be used: {said}")
    elif type(cause).__module__.startswith("psycopg") and (remedy := _postgres_remedy(cause)):
        better = DatabaseError(remedy)
    else:
        return error
    better.__cause__ = error
    return better


def _sqlite_code(error: sqlite3.Error | zstandard.ZstdError) -> int:
    if isinstance(error, zstandard.ZstdError) or "Could not decode to UTF-8" in str(error):
        return sqlite3.SQLITE_CORRUPT  # what a row holds, in a page that passes for one
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _postgres_remedy(error: Any) -> str | None:
    import psycopg

    state: str | None = getattr(error, "sqlstate", None)
    if state == "53100":
        return "PostgreSQL has no space left. Nothing was changed. Free some space on its disk and try again."
    if state in _OF_THE_ROLE:
        return _OF_THE_ROLE[state]
    if isinstance(error, psycopg.OperationalError) and (state is None or state[:2] in _UNREACHABLE):
        return (
            f"PostgreSQL cannot be reached: {str(error).strip()}\n"
            "Make sure that it runs and that `database.postgres_url` (and `postgres_direct_url`, if it is set) names its host, port, "
            "user, password and database."
        )
    return None
