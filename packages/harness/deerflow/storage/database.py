"""The one database: functions of a SQLAlchemy connection, run in a transaction, on SQLite or PostgreSQL.

A job is an ordinary function, called on a thread that has a connection of its own. What people search and list has
connections apart, so that no run waits for it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple

import orjson
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool, StaticPool

from deerflow.storage.errors import DatabaseError, check_encoding, check_sessions, explained
from deerflow.storage.migrate import exclusive, is_current, plain_url, upgrade
from deerflow.storage.sql import dumps
from deerflow.storage.sqlite_thread import SqliteThread
from deerflow.storage.tables import CHECKPOINTS

if TYPE_CHECKING:
    from deerflow.config import AppConfig, Paths

T = TypeVar("T")
Args = TypeVarTuple("Args")
Job = Callable[[Connection], T]
Purpose = Literal["read", "browse", "write"]


@dataclass(frozen=True, slots=True)
class Load:
    """``connections`` that are open, of ``most``, and jobs that wait for one."""

    connections: int
    most: int
    waiting: int


BROWSE_SECONDS = 10
"""How long the database may work on what a person searches."""

# A process that freezes in the middle of a transaction lets go of its rows when others take its runs.
_WRITE = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '15s'"
_BROWSE = f"{_WRITE}; SET LOCAL statement_timeout = '{BROWSE_SECONDS}s'"


class Database:
    """Args:
    location: the path of a SQLite file, ``:memory:``, or a URL ``postgresql://…``.
    direct: the URL of the same database without the pooler that ``location`` names, which may pool transactions: for locks and
        notices, which need a session.
    pool_size: connections to PostgreSQL.
    users_dir: where the files of its threads are. If there are some, an empty SQLite file is refused.
    filling: a transfer into it goes on; nothing else may use it.

    Every method raises DatabaseError for what a person must put right: a damaged file, a full disk, no right to write.
    """

    def __init__(
        self,
        location: Path | str,
        *,
        direct: str = "",
        pool_size: int = 5,
        users_dir: Path | None = None,
        filling: bool = False,
    ) -> None:
        self.location = str(location)
        self._is_current = partial(is_current, filling=filling)
        self.is_postgres = self.location.startswith(("postgresql://", "postgres://", "postgresql+"))
        if self.is_postgres:
            self.location = plain_url(self.location)
        self.direct = plain_url(direct) if self.is_postgres and direct else self.location
        """The address at which a session is ours alone."""
        self._migrated = False
        self._connections: _Sqlite | _Postgres
        if self.is_postgres:
            self._connections = _Postgres(self.location, self.direct, pool_size)
        else:
            self._connections = _Sqlite(self.location, users_dir)

    @classmethod
    def of(cls, config: AppConfig, paths: Paths, *, alone: bool = False) -> Database:
        """Return the configured database.

        Args:
            alone: for a command that does one thing: by the address without a pooler.
        """
        return cls(
            config.database_location(paths, direct=alone),
            direct=config.database.postgres_direct_url,
            pool_size=config.database.pool_size,
            users_dir=paths.users_dir,
        )

    async def read(self, job: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """Run ``job``, which changes nothing and may be run again. For what runs need: short, by a key."""
        return await self._run("read", lambda connection: job(connection, *args))

    async def browse(self, job: Callable[[Connection, *Args], T], *args: *Args) -> T:
        """As :meth:`read`, for what people search and list: no run waits for it.

        Raises TooSlowError when it takes longer than 10 seconds.
        """
        return await self._run("browse", lambda connection: job(connection, *args))

    async def write(self, job: Callable[[Connection, *Args], T], *args: *Args, durable: bool = False) -> T:
        """Run ``job`` in a transaction: all of it is kept, or nothing when it raises.

        Args:
            durable: also a power failure right after this takes nothing of it. PostgreSQL always writes so.
        """
        return await self._run("write", lambda connection: job(connection, *args), durable=durable)

    async def _run(self, purpose: Purpose, job: Job[T], *, durable: bool = False) -> T:
        await self.migrate()
        with explained(self.location):
            return await asyncio.wrap_future(self._connections.submit(job, purpose, durable=durable))

    def loads(self) -> dict[str, Load]:
        """Return what the connections of each pool have to do now."""
        return self._connections.loads()

    async def migrate(self) -> None:
        """Bring the tables up to date, after a copy of an older SQLite file was made. Done by itself before the first job.

        Raises:
            NewerDatabaseError: a newer version of the program has used the database.
        """
        if self._migrated:
            return
        with explained(self.location):
            if isinstance(self._connections, _Postgres):
                await asyncio.wrap_future(self._connections.check())
            if not await asyncio.wrap_future(self._connections.submit(self._is_current, "read")):
                await asyncio.wrap_future(self._connections.upgrade())
        self._migrated = True

    @property
    def sqlite(self) -> SqliteThread:
        """The thread of the SQLite connection that writes. Raises TypeError on PostgreSQL."""
        return self._sqlite.writer

    @property
    def sqlite_reader(self) -> SqliteThread:
        """That of the SQLite connection that reads for runs. Raises TypeError on PostgreSQL."""
        return self._sqlite.reader

    @property
    def postgres(self) -> _Pool:
        """The connections to PostgreSQL that runs use. Raises TypeError on SQLite."""
        if not isinstance(self._connections, _Postgres):
            raise TypeError("This database is not PostgreSQL.")
        return self._connections.runs

    @property
    def _sqlite(self) -> _Sqlite:
        if not isinstance(self._connections, _Sqlite):
            raise TypeError("This database is not SQLite.")
        return self._connections

    async def aclose(self) -> None:
        """Finish what is queued and close. Idempotent."""
        await asyncio.to_thread(self._connections.close)


class _Sqlite:
    """Three connections to one file: to write, to read for runs, to browse. In memory there is one."""

    def __init__(self, path: str, users_dir: Path | None) -> None:
        self.writer = SqliteThread(path, CHECKPOINTS, users_dir=users_dir)
        in_memory = path == ":memory:"
        self.reader = self.writer if in_memory else SqliteThread(path, CHECKPOINTS, users_dir=users_dir)
        self.browser = (
            self.writer if in_memory else SqliteThread(path, CHECKPOINTS, seconds=BROWSE_SECONDS, makes_file=False)
        )
        self._connections: dict[SqliteThread, tuple[sqlite3.Connection, Connection]] = {}

    def submit(self, job: Job[T], purpose: Purpose, *, durable: bool = False) -> Future[T]:
        thread = {"read": self.reader, "browse": self.browser, "write": self.writer}[purpose]
        writes = purpose == "write"
        return thread.submit(lambda raw: job(self._connection(thread, raw)), writes=writes, durable=durable)

    def upgrade(self) -> Future[None]:
        def on_thread(raw: sqlite3.Connection) -> None:
            with exclusive(raw):
                upgrade(self._connection(self.writer, raw))

        return self.writer.submit(on_thread, alone=True)

    def loads(self) -> dict[str, Load]:
        names = {"write": self.writer, "read": self.reader, "browse": self.browser}
        return {name: Load(int(thread.is_open), 1, thread.waiting) for name, thread in names.items()}

    def close(self) -> None:
        for thread in (self.browser, self.reader, self.writer):
            thread.close()

    def _connection(self, thread: SqliteThread, raw: sqlite3.Connection) -> Connection:
        """SQLAlchemy over a connection whose transactions are begun and ended by its thread."""
        known, connection = self._connections.get(thread, (None, None))
        if known is not raw or connection is None:
            engine = _engine("sqlite://", creator=lambda: raw, poolclass=StaticPool, pool_reset_on_return=None)
            dialect: Any = engine.dialect
            dialect.do_commit = dialect.do_rollback = lambda _: None
            connection = engine.connect()
            self._connections[thread] = raw, connection
        return connection


class _Postgres:
    """Two pools of connections, so that people who search take none from runs.

    Nothing is set in a session but what a pooler of transactions keeps for each client: settings are those of a transaction.
    """

    def __init__(self, url: str, direct: str, pool_size: int) -> None:
        self._url, self._direct = url, direct
        self.runs = _Pool(url, pool_size, prepares=direct == url)
        self._people = _Pool(url, pool_size, prepares=direct == url)

    def submit(self, job: Job[T], purpose: Purpose, *, durable: bool = True) -> Future[T]:
        pool = self._people if purpose == "browse" else self.runs
        return pool.submit(job, begin={"read": None, "browse": _BROWSE, "write": _WRITE}[purpose])

    def check(self) -> Future[None]:
        """Raise DatabaseError if sessions are not what they must be."""
        return self.runs.submit(
            lambda connection: check_sessions(connection.connection.driver_connection, self._url, self._direct)
        )

    def upgrade(self) -> Future[None]:
        return self.submit(upgrade, "write")

    def loads(self) -> dict[str, Load]:
        return {"runs": self.runs.load, "browse": self._people.load}

    def close(self) -> None:
        for pool in (self.runs, self._people):
            pool.close()


class _Pool:
    """Threads with a connection to PostgreSQL each: psycopg's asynchronous connections take three times the CPU.

    Args:
        prepares: statements that come often. A pooler of transactions would send them to sessions that do not know them.
    """

    def __init__(self, url: str, size: int, *, prepares: bool) -> None:
        self._engine = _engine(
            url.replace("://", "+psycopg://", 1),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={"client_encoding": "utf8", **({} if prepares else {"prepare_threshold": None})},
        )
        self._size = size
        self._threads = ThreadPoolExecutor(size, "deerflow-postgres")
        self._of_thread = threading.local()
        self._open: set[Connection] = set()
        self._once = threading.Lock()
        self._done: set[str] = set()

    @property
    def load(self) -> Load:
        return Load(len(self._open), self._size, self._threads._work_queue.qsize())

    def submit(self, job: Job[T], *, begin: str | None = None) -> Future[T]:
        """``begin``: what begins a transaction around the job, if there is to be one."""
        return self._threads.submit(self._run, job, begin)

    def write(self, job: Job[T]) -> Future[T]:
        return self.submit(job, begin=_WRITE)

    def once(self, name: str, work: Callable[[], None]) -> None:
        """Do ``work`` unless it was done before. To be called by a job."""
        with self._once:
            if name not in self._done:
                work()
                self._done.add(name)

    def close(self) -> None:
        self._threads.shutdown()
        while self._open:
            self._open.pop().close()

    def _run(self, job: Job[T], begin: str | None) -> T:
        known: Connection | None = getattr(self._of_thread, "connection", None)
        connection = known or self._connect()
        raw: Any = connection.connection.driver_connection
        begun = False
        try:
            if begin is not None:
                raw.execute(begin, prepare=False)
                begun = True
            result = job(connection)
            if begun:
                raw.execute("COMMIT")
            return result
        except BaseException:
            # The server may have closed it since it was last used; then nothing was done.
            if self._is_usable(connection) or known is None or begun:
                raise
        return self._run(job, begin)

    def _connect(self) -> Connection:
        made = self._engine.connect()
        raw: Any = made.connection.driver_connection
        try:
            check_encoding(raw.info.parameter_status("server_encoding"))
        except DatabaseError:
            made.close()
            raise
        raw.execute("SET timezone = 'UTC'")  # for any other psycopg reads a file
        self._of_thread.connection = made
        self._open.add(made)
        return made

    def _is_usable(self, connection: Connection) -> bool:
        """Whether it is, after an error: its transaction is taken back. If not, it is closed."""
        raw: Any = None if connection.invalidated else connection.connection.driver_connection
        if raw is not None and not raw.closed:
            with suppress(Exception):
                raw.rollback()
        if raw is not None and not raw.closed:
            return True
        self._of_thread.connection = None
        self._open.discard(connection)
        with suppress(Exception):
            connection.close()
        return False


def _engine(url: str, **options: Any) -> Engine:
    return create_engine(url, json_serializer=dumps, json_deserializer=orjson.loads, **options)
