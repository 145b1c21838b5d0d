"""Bringing the tables up to date: Alembic's migrations in ``migrations/``, each upgrade in one transaction.

The tables of LangGraph's checkpoints are not Alembic's; their savers make them.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from deerflow.storage.errors import (
    DatabaseError,
    ForeignDatabaseError,
    NewerDatabaseError,
    OlderDatabaseError,
    check_encoding,
    check_sessions,
    explained,
)
from deerflow.storage.sqlite_thread import check_file, unchanged

logger = logging.getLogger(__name__)

HEAD = "0021"
"""The newest migration. Numbers, so that what is newer than this program can be told from what is older."""

READABLE_FROM = "0021"
"""The oldest program, by its HEAD, that can work with the tables of HEAD. A migration that only adds what older programs
ignore (a table, a column that may be empty) leaves it; any other raises it to its own number."""

UNFINISHED = "database_transfer"
"""A table of a PostgreSQL database into which a transfer goes on, see ``transfer.py``."""

MIGRATIONS = Path(__file__).parent / "migrations"
SCHEMA = MIGRATIONS / "sqlite.sql"
"""What the migrations make of an empty file; ``scripts/schema.py`` writes it."""

KEPT_COPIES = 3
BEFORE_MIGRATIONS = "0000"
_LOCK = 0x6465657266_01
_PATIENCE = 600_000
"""Milliseconds to wait for another process that upgrades the same file, which copies it first."""


def is_current(connection: Connection, *, filling: bool = False) -> bool:
    """Return whether the tables are what this program needs.

    Args:
        filling: a transfer into the database goes on, which alone may use it.

    Raises:
        NewerDatabaseError: they are of a newer program.
        OlderDatabaseError: they are of before the first release.
        DatabaseError: a transfer into the database has not been finished.
    """
    if not filling:
        _check_finished(connection)
    return _version(connection) == HEAD


def _check_finished(connection: Connection) -> None:
    if connection.dialect.name == "postgresql" and inspect(connection).has_table(UNFINISHED):
        raise DatabaseError(
            "The PostgreSQL database is an unfinished copy of another one. Repeat `deerflow migrate-database`, or let `database` name "
            "the former one."
        )


def upgrade(connection: Connection) -> None:
    """Bring the tables up to date, once, however many processes try at the same time.

    Must run in a transaction, on SQLite in :func:`exclusive`. A SQLite file that holds something is copied before, beside
    itself.

    Raises:
        NewerDatabaseError: the tables are of a newer program.
        OlderDatabaseError: they are of before the first release.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    version = _version(connection)
    if version == HEAD:
        return
    if connection.dialect.name == "sqlite":
        if not _holds_something(connection, version) and _create(connection):
            return
        _copy_aside(connection, version)
    run_migrations(connection)
    _note_readers(connection)
    if version != BEFORE_MIGRATIONS:
        logger.info("The database was upgraded from version %s to %s.", version, HEAD)


def run_migrations(connection: Connection) -> None:
    """Execute what is missing of ``migrations/versions``."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")


def _create(connection: Connection) -> bool:
    """Make the tables of an empty file, as the migrations would for 0.4 s and 30 MB more. False: it has other tables."""
    wanted = SCHEMA.read_text().split(";\n")[:-1]
    there = set(connection.scalars(text("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")))
    if not there.issubset(wanted):
        return False
    for statement in wanted:
        if statement not in there:
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD,))
    _note_readers(connection)
    return True


@contextmanager
def exclusive(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction in which tables can be rebuilt: a table that is dropped takes no rows of others with it."""
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        if broken := connection.execute("PRAGMA foreign_key_check").fetchone():
            raise sqlite3.IntegrityError(f"The upgrade would leave rows of {broken[0]} without their {broken[2]}.")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA busy_timeout = {patience}")
        connection.execute("PRAGMA foreign_keys = ON")


def _version(connection: Connection) -> str:
    """Return the version of the tables, HEAD if they are newer and this program can use them. Raises as :func:`check_version`."""
    return min(check_version(*_versions(connection)), HEAD)


def check_version(version: str, readable_from: str) -> str:
    """Return ``version``, if this program can use its tables or bring them up to date.

    Raises:
        NewerDatabaseError: only later programs can use them.
        OlderDatabaseError: they are of before the first release.
    """
    if readable_from > HEAD:
        raise NewerDatabaseError(version, HEAD)
    if BEFORE_MIGRATIONS < version < OlderDatabaseError.FIRST:
        raise OlderDatabaseError(version)
    return version


def plain_url(url: str) -> str:
    """Return what psycopg understands: names of drivers are SQLAlchemy's."""
    return "postgresql://" + url.split("://", 1)[1]


def versions_of(location: str, direct: str = "") -> tuple[str, str]:
    """Return the version of a database's tables, and the oldest program's that can use them. Blocks. Raises DatabaseError.

    Args:
        direct: its URL without a pooler in between, if there is one.
    """
    with explained(location), looked_at(location) as connection:
        if connection.dialect.name == "postgresql":
            raw: Any = connection.connection.driver_connection
            check_encoding(raw.info.parameter_status("server_encoding"))
            check_sessions(raw, plain_url(location), plain_url(direct or location))
        _check_finished(connection)
        return _versions(connection)


@contextmanager
def looked_at(location: str, *, writes: bool = False) -> Iterator[Connection]:
    """Yield a connection to a database that nothing else uses, or that is only read; ``writes``: in a transaction. Blocks."""
    if "://" in location:
        options = {"client_encoding": "utf8", "connect_timeout": 10}
        location = plain_url(location)
        engine = create_engine(location.replace("://", "+psycopg://", 1), connect_args=options)
    else:
        address = Path(location).absolute().as_uri() if writes else unchanged(Path(location))
        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True), poolclass=NullPool)
    try:
        with engine.begin() if writes else engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def check_usable(location: str, users_dir: Path | None = None, direct: str = "") -> str:
    """Return the version of a database's tables, or raise the DatabaseError that a server would. Writes nothing. Blocks."""
    if "://" not in location:
        check_file(Path(location), users_dir)
    return check_version(*versions_of(location, direct))


def _versions(connection: Connection) -> tuple[str, str]:
    found = None
    if connection.dialect.name == "postgresql" and inspect(connection).has_table(ForeignDatabaseError.TABLE):
        raise ForeignDatabaseError("postgresql://")  # a file was looked at before it was opened
    if inspect(connection).has_table("alembic_version"):
        found = connection.scalar(text("SELECT max(version_num) FROM alembic_version"))
    version = found or BEFORE_MIGRATIONS
    return version, _readable_from(connection, version) if found else version


def _note_readers(connection: Connection) -> None:
    """Write into the database which older programs may use it after a rollback."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA user_version = {HEAD}{READABLE_FROM}")
    else:
        connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS '{HEAD}{READABLE_FROM}'")


def _readable_from(connection: Connection, version: str) -> str:
    """Return what the program of ``version`` noted; without a note of its own its tables are for itself alone."""
    if connection.dialect.name == "sqlite":
        note = f"{connection.scalar(text('PRAGMA user_version')):08}"
    else:
        note = connection.scalar(text("SELECT obj_description('alembic_version'::regclass)")) or ""
    return note[4:] if note[:4] == version else version


def _copy_aside(connection: Connection, version: str) -> None:
    path = connection.scalar(text("SELECT file FROM pragma_database_list WHERE name = 'main'"))
    if not path or not _holds_something(connection, version):
        return
    copy = Path(f"{path}.{version}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.bak")
    copy_database(path, copy)
    logger.info("The database %s is upgraded from version %s to %s. It was copied to %s.", path, version, HEAD, copy)
    for old in copies_before_upgrades(Path(path))[KEPT_COPIES:]:
        old.unlink(missing_ok=True)


def copies_before_upgrades(database: Path) -> list[Path]:
    """Return the copies of a SQLite file that were made before its upgrades, the newest first."""
    copies = database.parent.glob(f"{database.name}.*.bak")
    return sorted(copies, key=lambda each: each.name.rpartition("-")[2], reverse=True)


def _holds_something(connection: Connection, version: str) -> bool:
    if version != BEFORE_MIGRATIONS:
        return True
    has_checkpoints = inspect(connection).has_table("checkpoints")
    return has_checkpoints and bool(connection.scalar(text("SELECT EXISTS (SELECT 1 FROM checkpoints)")))


def copy_database(source: str | Path, target: Path) -> None:
    """Copy a SQLite database as it is at one moment, also while it is used. Only the owner may read the copy.

    Raises:
        FileExistsError: ``target`` exists.
        sqlite3.Error: ``source`` cannot be read, or ``target`` not be written.
    """
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"{Path(source).absolute().as_uri()}?mode=ro", uri=True)) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
