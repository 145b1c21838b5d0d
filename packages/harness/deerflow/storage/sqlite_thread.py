"""One SQLite connection on a thread of its own, with group commit.

Every job that waits when the thread gets to work goes into one transaction: a superstep of an agent, which stores
several things at once, costs one commit and not one each.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, TypeVar

from deerflow.storage.errors import (
    DatabaseError,
    ForeignDatabaseError,
    FullDatabaseError,
    OlderDatabaseError,
    explanation,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

_OF_A_NEW_FILE = """
PRAGMA page_size = 512;
PRAGMA auto_vacuum = INCREMENTAL;
"""
"""Both must come before the first table. Small pages, since a step changes little of several of them and each is written as a
whole: three quarters of what it is with 1024, a third of 4096. auto_vacuum, or freed pages never return to the disk; set
again it would write, for which a full disk has no room."""
PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA busy_timeout = 10000;
PRAGMA foreign_keys = ON;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -512;
"""
"""A quarter of the usual 2 MB of pages for each connection: what is read again is in the memory of the kernel."""
_LOG_BYTES = 512 << 10
"""So long the log becomes before it goes back into the file: by default that is counted in pages, of 4096 bytes."""

_OPENS_WITHIN = 30.0
_STEPS = 20_000
"""Of SQLite's machine, a millisecond or so, between two looks at the clock."""


@dataclass(slots=True)
class _Task(Generic[T]):
    job: Job[T]
    writes: bool
    alone: bool
    durable: bool
    future: Future[T] = field(default_factory=Future)


class SqliteThread:
    """Runs functions of a connection, in order. Thread-safe; futures may be awaited from any loop.

    Args:
        path: the database file, or ``:memory:``; its directory is made.
        schema: a script that is run first; it must be repeatable.
        seconds: how long a job may take; one that takes longer raises TooSlowError.
        users_dir: where the files of its threads are. If there are some, an empty database is refused.
        makes_file: whether a missing file is made. Otherwise jobs raise.

    On a full disk, where SQLite cannot make its log, jobs that only read still get what the file holds.
    """

    def __init__(
        self,
        path: Path | str,
        schema: str = "",
        *,
        seconds: float | None = None,
        users_dir: Path | None = None,
        makes_file: bool = True,
    ) -> None:
        self._path = str(path)
        self._schema = schema
        self._seconds = seconds
        self._users_dir = users_dir
        self._makes_file = makes_file
        self._warned = False
        self._deadline = 0.0
        self._tasks: queue.SimpleQueue[_Task[Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        return self._thread is not None and not self._closed

    @property
    def waiting(self) -> int:
        """The number of jobs that are queued."""
        return self._tasks.qsize()

    def submit(self, job: Job[T], *, writes: bool = True, alone: bool = False, durable: bool = False) -> Future[T]:
        """Queue ``job``; its result or exception arrives in the future, after the commit.

        Args:
            job: called with the connection.
            writes: whether it changes something.
            alone: it must run outside of a transaction, as a vacuum must.
            durable: it is on the disk, and all before it, when the future is done. Without, a power failure can take the
                last seconds; the end of the process, however it comes, takes nothing.

        Raises:
            sqlite3.ProgrammingError: the database was closed.
        """
        task = _Task(job, writes, alone, durable)
        with self._lock:
            if self._closed:
                raise sqlite3.ProgrammingError(f"The database {self._path} is closed.")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="deerflow-sqlite", daemon=True)
                self._thread.start()
            future = task.future
            self._tasks.put(task)  # which may settle it at once
        return future

    def close(self) -> None:
        """Finish what is queued and close. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            self._tasks.put(None)
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        connection: sqlite3.Connection | None = None
        open_ = True
        while open_:
            batch, open_ = self._next_batch()
            try:
                connection = connection or self._connect()
            except (sqlite3.Error, OSError, DatabaseError) as error:
                self._work_without_room(batch, explanation(error, self._path))
                continue
            # A job that may take long has a transaction of its own, or the others would wait for it.
            for alone, tasks in groupby(batch, lambda task: task.alone or self._seconds is not None):
                for together in [[task] for task in tasks] if alone else [list(tasks)]:
                    self._deadline = time.monotonic() + (self._seconds or 0)
                    _run_batch(connection, together, self._path)
        if connection is not None:
            connection.close()

    def _work_without_room(self, batch: list[_Task[Any]], error: Exception) -> None:
        """Read the file alone, if that is all there is; the next batch tries again to do it properly."""
        log = Path(f"{self._path}-wal")
        readable = isinstance(error, FullDatabaseError) and not (log.exists() and log.stat().st_size)
        for task in batch:
            if task.writes or not readable:
                task.future.set_exception(error)
                continue
            if not self._warned:
                self._warned = True
                logger.warning("The disk is full: %s can only be read until there is room.", self._path)
            address = f"{Path(self._path).absolute().as_uri()}?immutable=1"
            with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
                _run_batch(connection, [task], self._path)

    def _next_batch(self) -> tuple[list[_Task[Any]], bool]:
        batch: list[_Task[Any]] = []
        task = self._tasks.get()
        while task is not None:
            if task.future.set_running_or_notify_cancel():
                batch.append(task)
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _connect(self) -> sqlite3.Connection:
        if self._path != ":memory:":
            check_file(Path(self._path), self._users_dir)
            if self._makes_file:
                _create(Path(self._path))
        address = self._path if self._makes_file else f"{Path(self._path).absolute().as_uri()}?mode=rw"
        until = time.monotonic() + _OPENS_WITHIN
        while True:
            connection = sqlite3.connect(address, uri=not self._makes_file, isolation_level=None)
            try:
                connection.executescript(_OF_A_NEW_FILE * _is_empty(self._path) + PRAGMAS + self._schema)
                (page_size,) = connection.execute("PRAGMA page_size").fetchone()
                connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_size}")
                if self._seconds is not None:
                    connection.set_progress_handler(lambda: time.monotonic() > self._deadline, _STEPS)
                return connection
            except sqlite3.Error as error:
                connection.close()
                # Who makes a file use a write-ahead log fails at once, without waiting, if another process does the same.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.02)


def check_file(path: Path, users_dir: Path | None) -> None:
    """Look at the file before it is opened. Writes nothing. Blocks.

    Raises:
        ForeignDatabaseError: another program's tables are in it.
        OlderDatabaseError: its checkpoints lie as they did up to 0001.
        DatabaseError: it is empty or missing, and ``users_dir`` has files of threads.
    """
    if path.exists() and not _is_empty(str(path)):
        with suppress(sqlite3.Error), closing(sqlite3.connect(unchanged(path), uri=True)) as connection:
            kinds = dict(connection.execute("SELECT name, type FROM sqlite_master"))
            if ForeignDatabaseError.TABLE in kinds:
                raise ForeignDatabaseError(str(path))
            if kinds.get("checkpoints") == "table":  # a view since 0002
                raise OlderDatabaseError("0001")
        return
    if users_dir is not None and next(users_dir.glob("*/threads/*"), None) is not None:
        raise DatabaseError(
            f"The database {path} is {'empty' if path.exists() else 'missing'}, but {users_dir} has files of "
            "threads. Nothing was changed. Bring a backup back with `deerflow restore ARCHIVE`, or move that directory "
            "away to begin without those threads."
        )


def unchanged(path: Path) -> str:
    """Return the URI by which SQLite reads a file and leaves it, and what lies beside it, as they were.

    A log that holds something would go into the file when the last connection that may write is closed; one that may not would
    leave an empty log. Never ``immutable``: closing that drops the locks of this process.
    """
    log = path.with_name(f"{path.name}-wal")
    mode = "ro" if log.exists() and log.stat().st_size else "rw"
    return f"{path.absolute().as_uri()}?mode={mode}"


def _is_empty(path: str) -> bool:
    return path == ":memory:" or not Path(path).stat().st_size


def _create(path: Path) -> None:
    """An empty file that only its owner may read, unless there is a file. SQLite gives its journals the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        return
    # Never opened by its own name: closing it would drop all locks that this process holds on the database, and another
    # process would take it for unused and delete its log, with what was written last.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    os.close(descriptor)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        Path(temporary).unlink()


def _run_batch(connection: sqlite3.Connection, batch: list[_Task[Any]], path: str) -> None:
    """One transaction for all; a job that fails is rolled back alone. Readers see one state of the database, too."""
    outcomes: list[tuple[_Task[Any], Any, Exception | None]] = []
    writes, alone = any(task.writes for task in batch), batch[0].alone
    durable = any(task.durable for task in batch)
    try:
        if durable:
            connection.execute("PRAGMA synchronous = FULL")
        if not alone:
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        for task in batch:
            outcomes.append((task, *_run(connection, task, savepoint=writes and not alone)))
            if not alone and not connection.in_transaction:
                # On a full disk SQLite takes back the whole transaction by itself.
                raise outcomes[-1][2] or sqlite3.OperationalError("A job ended the transaction of all.")
        if not alone:
            connection.execute("COMMIT")
    except Exception as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        for task in batch:
            _settle(task, None, error, path)
        return
    finally:
        if durable:
            connection.execute("PRAGMA synchronous = NORMAL")
    while outcomes:
        _settle(*outcomes.pop(0), path)


def _settle(task: _Task[Any], result: Any, failure: Exception | None, path: str) -> None:
    """Set the task's future and take it from the task, which the traceback of its own error holds: a cycle otherwise."""
    future = task.future
    del task.future
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(explanation(failure, path))


def _run(connection: sqlite3.Connection, task: _Task[Any], *, savepoint: bool) -> tuple[Any, Exception | None]:
    if savepoint:
        connection.execute("SAVEPOINT job")
    try:
        return task.job(connection), None
    except Exception as error:
        if savepoint and connection.in_transaction:
            connection.execute("ROLLBACK TO job")
        return None, error
    finally:
        if savepoint and connection.in_transaction:
            connection.execute("RELEASE job")
