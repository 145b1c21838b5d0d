"""The one database: functions of a SQLAlchemy connection, run in a transaction, on SQLite or PostgreSQL.

A job is an ordinary function. On SQLite it runs on the thread that also writes checkpoints, so that what is written at
about the same time is one commit; on PostgreSQL it runs on a pooled connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import orjson
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool, StaticPool

from deerflow.storage.checkpoints.sqlite_steps import SCHEMA
from deerflow.storage.errors import explained
from deerflow.storage.migrate import exclusive, is_current, upgrade
from deerflow.storage.sqlite_thread import SqliteThread

T = TypeVar("T")
Job = Callable[[Connection], T]


class Database:
    """Args:
    location: the path of a SQLite file, ``:memory:``, or a URL ``postgresql://…``.
    pool_size: connections to PostgreSQL.

    Every method raises DatabaseError for what a person must put right: a damaged file, a full disk, no right to write.
    """

    def __init__(self, location: Path | str, *, pool_size: int = 5) -> None:
        self.location = str(location)
        self.is_postgres = self.location.startswith(("postgresql://", "postgres://", "postgresql+"))
        self._migrated = False
        self._connections: _Sqlite | _Postgres
        if self.is_postgres:
            self._connections = _Postgres(self.location, pool_size)
        else:
            self._connections = _Sqlite(self.location)

    async def read(self, job: Job[T]) -> T:
        """Run ``job``, which changes nothing."""
        if not self._migrated:
            await self.migrate()
        return await self._run(job, writes=False)

    async def write(self, job: Job[T]) -> T:
        """Run ``job`` in a transaction: all of it is kept, or nothing when it raises."""
        if not self._migrated:
            await self.migrate()
        return await self._run(job, writes=True)

    async def migrate(self) -> None:
        """Bring the tables up to date, after a copy of an older SQLite file was made. Done by itself before the first job.

        Raises:
            NewerDatabaseError: a newer version of the program has used the database.
        """
        if not self._migrated and not await self._run(is_current, writes=False):
            with explained(self.location):
                await self._connections.upgrade()
        self._migrated = True

    async def _run(self, job: Job[T], *, writes: bool) -> T:
        with explained(self.location):
            return await self._connections.run(job, writes=writes)

    @property
    def sqlite(self) -> SqliteThread:
        """The thread of the SQLite connection that writes. Raises TypeError on PostgreSQL."""
        if not isinstance(self._connections, _Sqlite):
            raise TypeError("This database is not SQLite.")
        return self._connections.thread

    @property
    def sqlite_reader(self) -> SqliteThread:
        """That of the SQLite connection that only reads. Raises TypeError on PostgreSQL."""
        if not isinstance(self._connections, _Sqlite):
            raise TypeError("This database is not SQLite.")
        return self._connections.reader

    @property
    def engine(self) -> AsyncEngine:
        """Of PostgreSQL. Raises TypeError on SQLite."""
        if not isinstance(self._connections, _Postgres):
            raise TypeError("This database is not PostgreSQL.")
        return self._connections.engine

    async def aclose(self) -> None:
        """Finish what is queued and close. Idempotent."""
        await self._connections.aclose()


class _Sqlite:
    """Two connections to one file: jobs that only read do not wait for those that write. In memory there is one."""

    def __init__(self, path: str) -> None:
        self.thread = SqliteThread(path, SCHEMA)
        self.reader = self.thread if path == ":memory:" else SqliteThread(path, SCHEMA)
        self._engines: dict[SqliteThread, Engine] = {}

    async def run(self, job: Job[T], *, writes: bool) -> T:
        thread = self.thread if writes else self.reader
        return await asyncio.wrap_future(thread.submit(lambda raw: self._call(job, thread, raw), writes=writes))

    async def upgrade(self) -> None:
        def on_thread(raw: sqlite3.Connection) -> None:
            with exclusive(raw):
                self._call(upgrade, self.thread, raw)

        await asyncio.wrap_future(self.thread.submit(on_thread, alone=True))

    def _call(self, job: Job[T], thread: SqliteThread, raw: sqlite3.Connection) -> T:
        engine = self._engines.get(thread) or self._engines.setdefault(thread, _engine_over(raw))
        with engine.connect() as connection:
            return job(connection)

    async def aclose(self) -> None:
        for thread in {self.thread, self.reader}:
            await asyncio.to_thread(thread.close)


class _Postgres:
    def __init__(self, url: str, pool_size: int) -> None:
        self._url = "postgresql+psycopg://" + url.split("://", 1)[1]
        self.engine = create_async_engine(
            self._url,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_pre_ping=True,
            json_serializer=_dumps,
            json_deserializer=orjson.loads,
        )
        event.listen(self.engine.sync_engine, "connect", _use_utc)

    async def run(self, job: Job[T], *, writes: bool) -> T:
        async with self.engine.begin() as connection:
            return await connection.run_sync(job)

    async def upgrade(self) -> None:
        def on_thread() -> None:
            with create_engine(self._url, poolclass=NullPool).begin() as connection:
                upgrade(connection)

        # Alembic reads files.
        await asyncio.to_thread(on_thread)

    async def aclose(self) -> None:
        await self.engine.dispose()


def _use_utc(connection: Any, record: Any) -> None:
    # For any other zone psycopg reads a file on the event loop.
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    connection.commit()


def _engine_over(raw: sqlite3.Connection) -> Engine:
    """SQLAlchemy over a connection whose transactions are begun and ended by its thread."""
    engine = create_engine(
        "sqlite://",
        creator=lambda: raw,
        poolclass=StaticPool,
        pool_reset_on_return=None,
        json_serializer=_dumps,
        json_deserializer=orjson.loads,
    )
    dialect: Any = engine.dialect
    dialect.do_commit = dialect.do_rollback = lambda _: None
    return engine


def _dumps(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
