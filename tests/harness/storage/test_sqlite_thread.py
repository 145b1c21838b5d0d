from __future__ import annotations

import asyncio
import gc
import shutil
import sqlite3
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError
from deerflow.storage.sqlite_thread import SqliteThread

SCHEMA = "CREATE TABLE IF NOT EXISTS t (k TEXT PRIMARY KEY, v TEXT);"


@pytest.fixture
def database(tmp_path: Path):
    thread = SqliteThread(tmp_path / "deep" / "test.db", SCHEMA)
    yield thread
    thread.close()


def _put(key: str):
    return lambda db: db.execute("INSERT INTO t VALUES (?, ?)", (key, key)).rowcount


def _keys(db: sqlite3.Connection) -> list[str]:
    return [key for (key,) in db.execute("SELECT k FROM t ORDER BY k")]


class _Held:
    """Something of a run."""


def test_a_job_that_failed_goes_with_its_error(database: SqliteThread):
    def fail_with(held: _Held) -> weakref.ref[_Held]:
        def fail(db: sqlite3.Connection) -> None:
            raise ValueError(repr(held))

        assert isinstance(database.submit(fail).exception(), ValueError)
        return weakref.ref(held)

    gc.collect()
    gc.disable()
    try:
        left = fail_with(_Held())
        for _ in range(2):  # the thread keeps its last batch until the next one
            database.submit(_keys, writes=False).result()
        assert left() is None
    finally:
        gc.enable()


def test_a_job_that_fails_is_rolled_back_alone(database: SqliteThread):
    def half(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO t VALUES ('half', '')")
        raise ValueError("no")

    futures = [database.submit(_put("a")), database.submit(half), database.submit(_put("b"))]
    assert futures[0].result() == 1
    with pytest.raises(ValueError):
        futures[1].result()
    assert futures[2].result() == 1
    assert database.submit(_keys, writes=False).result() == ["a", "b"]


def test_a_conflict_is_the_callers_error_and_the_rest_goes_on(database: SqliteThread):
    database.submit(_put("a")).result()
    with pytest.raises(sqlite3.IntegrityError):
        database.submit(_put("a")).result()
    assert database.submit(_put("b")).result() == 1


async def test_jobs_of_many_tasks_all_arrive(database: SqliteThread):
    await asyncio.gather(*(asyncio.wrap_future(database.submit(_put(f"{i:03}"))) for i in range(200)))
    assert len(database.submit(_keys, writes=False).result()) == 200


def test_what_was_committed_is_there_after_reopening(tmp_path: Path):
    first = SqliteThread(tmp_path / "x.db", SCHEMA)
    first.submit(_put("kept")).result()
    first.close()
    second = SqliteThread(tmp_path / "x.db", SCHEMA)
    assert second.submit(_keys, writes=False).result() == ["kept"]
    second.close()


def test_a_closed_database_says_so(tmp_path: Path):
    thread = SqliteThread(tmp_path / "x.db", SCHEMA)
    thread.submit(_keys, writes=False).result()
    thread.close()
    thread.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        thread.submit(_keys)


def test_a_database_that_cannot_be_opened_fails_each_job_and_recovers(tmp_path: Path):
    path = tmp_path / "dir.db"
    path.mkdir()
    thread = SqliteThread(path, SCHEMA)
    with pytest.raises(DatabaseError, match="cannot be opened"):
        thread.submit(_keys).result()
    path.rmdir()
    assert thread.submit(_keys).result() == []
    thread.close()


def test_a_job_that_must_stand_alone_fails_nobody_in_its_batch(database: SqliteThread):
    def vacuum(db: sqlite3.Connection) -> bool:
        db.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")
        return db.in_transaction

    blocker = threading.Event()
    first = database.submit(lambda _: blocker.wait(10))
    futures = [database.submit(_put("a")), database.submit(vacuum, alone=True), database.submit(_put("b"))]
    blocker.set()
    assert first.result() and [future.result() for future in futures] == [1, False, 1]
    assert database.submit(_keys, writes=False).result() == ["a", "b"]


def test_a_reader_sees_one_state_while_another_connection_writes(database: SqliteThread, tmp_path: Path):
    database.submit(_put("a")).result()
    other = SqliteThread(tmp_path / "deep" / "test.db", SCHEMA)

    def twice(db: sqlite3.Connection) -> list[list[str]]:
        first = _keys(db)
        other.submit(_put("b")).result()
        return [first, _keys(db)]

    assert database.submit(twice, writes=False).result() == [["a"], ["a"]]
    other.close()
    assert database.submit(_keys, writes=False).result() == ["a", "b"]


def test_nobody_else_can_read_the_database(database: SqliteThread, tmp_path: Path):
    database.submit(_put("secret")).result()
    directory = tmp_path / "deep"
    assert directory.stat().st_mode & 0o077 == 0
    assert [path.name for path in directory.iterdir() if path.stat().st_mode & 0o077] == []


def test_another_process_that_comes_and_goes_takes_nothing_away(database: SqliteThread, tmp_path: Path):
    database.submit(_put("a")).result()
    reader = SqliteThread(tmp_path / "deep" / "test.db", SCHEMA)
    reader.submit(_keys, writes=False).result()

    def seen_from_outside() -> str:
        code = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(*[key for (key,) in connection.execute("SELECT k FROM t ORDER BY k")])
connection.close()
"""
        command = [sys.executable, "-c", code, str(tmp_path / "deep" / "test.db")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert seen_from_outside() == "a"
    database.submit(_put("b")).result()
    assert seen_from_outside() == "a b"
    reader.close()


def test_what_must_outlive_a_power_failure_is_synced_with_its_commit_and_nothing_else_is(database: SqliteThread):
    statements: list[str] = []
    database.submit(lambda db: db.set_trace_callback(statements.append)).result()
    database.submit(_put("a")).result()
    assert not [each for each in statements if "synchronous" in each]
    database.submit(_put("b"), durable=True).result()
    after = statements[statements.index("PRAGMA synchronous = FULL") :]
    assert after.index("BEGIN IMMEDIATE") < after.index("COMMIT") < after.index("PRAGMA synchronous = NORMAL")


def test_an_empty_file_beside_threads_is_not_taken_for_a_new_database(tmp_path: Path):
    path, users = tmp_path / "deerflow.db", tmp_path / "users"
    path.touch()
    (users / "alice" / "threads").mkdir(parents=True)
    thread = SqliteThread(path, SCHEMA, users_dir=users)
    (users / "alice" / "threads" / "t").mkdir()
    with pytest.raises(DatabaseError, match=r"is empty, but .*users has files of threads\. Nothing was changed"):
        thread.submit(_keys).result()
    assert path.stat().st_size == 0
    path.unlink()
    with pytest.raises(DatabaseError, match=r"is missing, but .*users has files of threads\. Nothing was changed"):
        thread.submit(_keys).result()
    assert not path.exists()
    shutil.rmtree(users)
    assert thread.submit(_keys).result() == [], "without files of threads, a new one"
    thread.close()


def test_a_file_that_has_vanished_is_not_made_by_those_who_only_read(tmp_path: Path):
    thread = SqliteThread(path := tmp_path / "deerflow.db", SCHEMA, makes_file=False)
    with pytest.raises(DatabaseError, match="the file cannot be opened"):
        thread.submit(_keys, writes=False).result()
    assert not path.exists()
    SqliteThread(path, SCHEMA).submit(_put("a")).result()
    assert thread.submit(_keys, writes=False).result() == ["a"]
    thread.close()


async def test_a_database_whose_file_vanished_is_said_to_those_who_search(tmp_path: Path):
    database = Database(path := tmp_path / "deerflow.db")
    await database.migrate()
    path.rename(tmp_path / "aside.db")
    with pytest.raises(DatabaseError, match="the file cannot be opened"):
        await database.browse(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
    assert not path.exists()
    await database.aclose()
