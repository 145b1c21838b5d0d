"""Tables are brought up to date once, completely or not at all, and what people had is kept."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from sqlalchemy import Connection, create_engine, insert, inspect, select, text

from deerflow.agents.thread_state import ThreadState
from deerflow.storage import migrate, tables
from deerflow.storage import search as message_search
from deerflow.storage.checkpoints.sqlite import SqliteCheckpointer
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError, NewerDatabaseError, OlderDatabaseError
from deerflow.storage.migrate import HEAD, MIGRATIONS, copy_database, is_current, run_migrations
from deerflow.storage.sqlite_thread import SqliteThread

THREAD: Any = {"configurable": {"thread_id": "t"}}
NEXT = f"{int(HEAD) + 1:04}"
NEXT_MIGRATION = f'''"""Of a test."""

from alembic import op

revision = "{NEXT}"
down_revision = "{HEAD}"


def upgrade() -> None:
    op.execute("CREATE TABLE of_the_next (name TEXT)")
    op.execute("UPDATE users SET role = 'admin'")
'''


def _next_release(folder: Path, patch: pytest.MonkeyPatch, migration: str = NEXT_MIGRATION) -> None:
    """Make this program the next one, which has a migration more."""
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"{NEXT}_of_a_test.py").write_text(migration)
    for name, value in {"MIGRATIONS": folder, "HEAD": NEXT, "READABLE_FROM": NEXT}.items():
        patch.setattr(migrate, name, value)


async def _add_user(database: Database, name: str = "alice") -> None:
    row = {"id": name, "email": name, "created_at": tables.utc_now()}
    await database.write(lambda connection: connection.execute(insert(tables.users).values(row)) and None)


def _roles(connection: Connection) -> list[Any]:
    return [tuple(row) for row in connection.execute(select(tables.users.c.id, tables.users.c.role))]


def _differences(connection: Connection) -> list[Any]:
    options = {"include_object": _not_ours, "compare_type": True, "target_metadata": None}
    context = MigrationContext.configure(connection, opts=options)
    return compare_metadata(context, [tables.metadata, message_search.metadata])  # pyright: ignore[reportArgumentType]


def _not_ours(item: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """LangGraph's tables, and what only SQL can say of the full-text index."""
    if kind == "table":
        return not re.match("checkpoint|writes$|(message_search|memory)_index", name or "")
    return name not in ("words", "message_search_words", "message_search_newest", "memory_index_words")


def _layout(connection: Connection) -> dict[str, Any]:
    """Return what Alembic does not compare: all keys, conditions of indexes, what goes with a row, tables without row ids."""
    found, layout = inspect(connection), dict[str, Any]()
    without_rowid = "SELECT name FROM pragma_table_list WHERE wr"
    is_sqlite = connection.dialect.name == "sqlite"
    without = set(connection.scalars(text(without_rowid))) if is_sqlite else set[str]()
    for name in (*tables.metadata.tables, *message_search.metadata.tables):
        keys = found.get_foreign_keys(name) + found.get_unique_constraints(name)
        indexes = [] if name == "message_search" else found.get_indexes(name)
        conditions = [(str(index["name"]), _condition(index)) for index in indexes]
        primary = found.get_pk_constraint(name)["constrained_columns"]
        layout[name] = primary, sorted(map(str, keys)), sorted(conditions), name in without
    return layout


def _condition(index: Any) -> str:
    return " ".join(str(value) for name, value in index.get("dialect_options", {}).items() if name.endswith("_where"))


async def test_migrations_make_exactly_the_tables_that_the_code_declares(database: Database):
    assert await database.read(_differences) == []


async def test_keys_and_indexes_are_those_that_the_code_declares(database: Database, postgres_url: str):
    declared = postgres_url.replace("://", "+psycopg://") if database.is_postgres else "sqlite://"
    with create_engine(declared).begin() as connection:
        for metadata in (tables.metadata, message_search.metadata):
            metadata.create_all(connection)
        wanted = _layout(connection)
    assert await database.read(_layout) == wanted


def test_a_new_file_has_what_the_migrations_make_and_nothing_else(sqlite_template: Path):
    """If this fails after a new migration: ``python scripts/schema.py``."""
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
    with closing(sqlite3.connect(sqlite_template)) as made, create_engine("sqlite://").begin() as migrated:
        for statement in tables.CHECKPOINTS.split(";\n"):
            migrated.exec_driver_sql(statement)
        run_migrations(migrated)
        for query in (schema, "SELECT * FROM alembic_version"):
            assert made.execute(query).fetchall() == [tuple(row) for row in migrated.exec_driver_sql(query)]


def test_the_newest_migration_is_the_one_the_program_asks_for():
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert revisions[0] == HEAD
    assert sorted(revisions, reverse=True) == revisions
    assert revisions[-1] == OlderDatabaseError.FIRST


async def test_tables_that_change_most_have_room_and_are_vacuumed_early(migrated_url: str):
    database = Database(migrated_url)
    query = "SELECT relname, reloptions FROM pg_class WHERE reloptions IS NOT NULL AND relkind = 'r' ORDER BY relname"
    found = await database.read(lambda connection: dict(map(tuple, connection.execute(text(query)))))
    assert found["runs"] == found["threads"] == ["fillfactor=70", "autovacuum_vacuum_scale_factor=0.01"]
    assert found["run_events"] == ["autovacuum_vacuum_scale_factor=0.01"]
    await database.aclose()


async def test_nothing_is_left_of_an_upgrade_that_fails(database_location: str, monkeypatch: pytest.MonkeyPatch):
    from deerflow.storage import database as module

    def fails_at_the_end(connection: Connection) -> None:
        upgrade(connection)
        raise RuntimeError("power failure")

    upgrade = module.upgrade
    monkeypatch.setattr(module, "upgrade", fails_at_the_end)
    database = Database(database_location)
    with pytest.raises(RuntimeError):
        await database.migrate()
    await database.aclose()
    monkeypatch.undo()
    again = Database(database_location)
    assert await asyncio.wrap_future(again._connections.submit(is_current, "read")) is False
    assert await again.read(lambda connection: connection.execute(select(tables.users)).all()) == []
    await again.aclose()


async def test_a_database_of_a_newer_program_is_refused_and_left_as_it_is(database_location: str):
    database = Database(database_location)
    await database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    await database.aclose()
    older = Database(database_location)
    with pytest.raises(NewerDatabaseError, match=f"version 9999, this program knows versions up to {HEAD}.*left as"):
        await older.read(lambda connection: connection.execute(select(tables.users)).all())
    with pytest.raises(NewerDatabaseError):
        await older.write(lambda connection: connection.execute(text("DROP TABLE users")))
    await older.aclose()


async def test_threads_of_a_file_without_our_tables_are_kept_and_copied_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "deerflow.db"
    old = SqliteCheckpointer(SqliteThread(path, tables.CHECKPOINTS))
    graph = StateGraph(ThreadState)
    graph.add_node("answer", lambda state: {"title": "kept"})
    graph.add_edge(START, "answer")
    await graph.compile(checkpointer=old).ainvoke({"messages": [HumanMessage("hi", id="h")]}, THREAD)
    await old.aclose()

    database = Database(path)
    with caplog.at_level(logging.INFO, "deerflow.storage"):
        await database.migrate()
    state = await graph.compile(checkpointer=SqliteCheckpointer(database.sqlite)).aget_state(THREAD)
    assert (state.values["title"], state.values["messages"][0].text) == ("kept", "hi")
    assert await database.read(_differences) == []
    await database.aclose()
    (copy,) = tmp_path.glob("*.bak")
    assert str(copy) in caplog.text and copy.name.startswith("deerflow.db.0000-")
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert names >= {"checkpoints", "writes"} and "users" not in names
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0] > 0


async def test_the_next_release_keeps_and_changes_rows_and_shuts_out_this_one(
    migrated_location: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    before = Database(migrated_location)
    await _add_user(before)
    await before.aclose()
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "deerflow.storage"):
        await asyncio.to_thread(_next_release, tmp_path / "next", patch)
        database = Database(migrated_location)
        assert await database.read(_roles) == [("alice", "admin")]
        assert await database.read(lambda c: inspect(c).has_table("of_the_next"))
        await database.aclose()
    assert f"upgraded from version {HEAD} to {NEXT}" in caplog.text
    again = Database(migrated_location)
    with pytest.raises(NewerDatabaseError, match=f"version {NEXT}"):
        await again.read(_roles)
    await again.aclose()
    if "://" not in migrated_location:
        (copy,) = tmp_path.glob("*.bak")
        assert str(copy) in caplog.text and copy.name.startswith(f"deerflow.db.{HEAD}-")
        assert copy.stat().st_mode & 0o077 == 0
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("SELECT id, role FROM users").fetchall() == [("alice", "user")]


async def test_an_upgrade_that_fails_at_its_end_leaves_this_release_as_it_was(
    migrated_location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = Database(migrated_location)
    await _add_user(before)
    await before.aclose()
    with monkeypatch.context() as patch:
        fails = f"{NEXT_MIGRATION}    raise RuntimeError('power failure')\n"
        await asyncio.to_thread(_next_release, tmp_path / "next", patch, fails)
        database = Database(migrated_location)
        with pytest.raises(RuntimeError):
            await database.migrate()
        await database.aclose()
    again = Database(migrated_location)
    assert await again.read(_roles) == [("alice", "user")]
    assert not await again.read(lambda c: inspect(c).has_table("of_the_next"))
    await again.aclose()


async def test_a_new_database_needs_no_copy_and_only_three_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "deerflow.db"
    first = Database(path)
    await first.migrate()
    await first.aclose()
    assert not list(tmp_path.glob("*.bak"))
    for day in range(4):
        (tmp_path / f"deerflow.db.0000-2020010{day}T000000Z.bak").touch()
    await asyncio.to_thread(_next_release, tmp_path / "next", monkeypatch)
    again = Database(path)
    await again.migrate()
    await again.aclose()
    copies = sorted(copy.name for copy in tmp_path.glob("*.bak"))
    assert len(copies) == 3 and copies[2].startswith(f"deerflow.db.{HEAD}-")
    assert copies[:2] == [f"deerflow.db.0000-2020010{day}T000000Z.bak" for day in (2, 3)]


_START = """
import asyncio, sys
from deerflow.storage.database import Database
from deerflow.storage.tables import users, utc_now
from sqlalchemy import insert

async def main():
    database = Database(sys.argv[1])
    sys.stdin.readline()
    row = {"id": sys.argv[2], "email": sys.argv[2], "created_at": utc_now()}
    await database.write(lambda connection: connection.execute(insert(users).values(row)) and None)
    await database.aclose()

print("ready", flush=True)
asyncio.run(main())
"""


def test_processes_that_start_at_the_same_time_all_succeed(database_location: str):
    command = [sys.executable, "-c", _START, database_location]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen([*command, str(i)], text=True, **pipes) for i in range(3)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, errors

    async def found() -> list[str]:
        database = Database(database_location)
        try:
            return await database.read(lambda connection: sorted(connection.scalars(select(tables.users.c.id))))
        finally:
            await database.aclose()

    assert asyncio.run(found()) == ["0", "1", "2"]


async def test_many_tasks_may_be_the_first_to_use_a_database(database_location: str):
    database = Database(database_location)
    found = await asyncio.gather(*(database.read(lambda c: c.execute(select(tables.users)).all()) for _ in range(8)))
    assert found == [[]] * 8
    await database.aclose()


async def test_a_rebuilt_table_takes_no_rows_of_others_with_it(tmp_path: Path):
    from deerflow.storage.migrate import exclusive

    database = Database(tmp_path / "deerflow.db")
    now = tables.utc_now()
    user = {"id": "u", "email": "u@x", "created_at": now}
    session = {"id": "s", "user_id": "u", "created_at": now, "expires_at": now}
    await database.write(lambda c: c.execute(insert(tables.users).values(user)) and None)
    await database.write(lambda c: c.execute(insert(tables.sessions).values(session)) and None)

    def rebuild(raw: sqlite3.Connection) -> None:
        with exclusive(raw):
            raw.execute("CREATE TABLE users_new AS SELECT * FROM users")
            raw.execute("DROP TABLE users")
            raw.execute("ALTER TABLE users_new RENAME TO users")

    with pytest.raises(sqlite3.Error):  # the new table lacks the key that sessions refer to
        await asyncio.wrap_future(database.sqlite.submit(rebuild, alone=True))
    assert await database.read(lambda c: c.scalars(select(tables.sessions.c.id)).all()) == ["s"]
    assert await asyncio.wrap_future(
        database.sqlite.submit(lambda raw: raw.execute("PRAGMA foreign_keys").fetchone(), writes=False)
    ) == (1,)
    await database.aclose()


@pytest.mark.parametrize("content", [b"this is a letter, not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
async def test_a_file_that_is_no_database_is_left_alone_and_said_to_be_none(tmp_path: Path, content: bytes):
    path = tmp_path / "deerflow.db"
    path.write_bytes(content)
    database = Database(path)
    with pytest.raises(DatabaseError, match=r"deerflow\.db cannot be used: .*(no SQLite database|damaged)"):
        await database.migrate()
    await database.aclose()
    assert path.read_bytes() == content


async def test_a_damaged_database_is_said_to_be_damaged(tmp_path: Path):
    path = tmp_path / "deerflow.db"
    whole = Database(path)
    await whole.migrate()
    await whole.aclose()
    content = bytearray(path.read_bytes())
    content[1024:] = b"\x7f" * (len(content) - 1024)
    path.write_bytes(content)
    database = Database(path)
    with pytest.raises(DatabaseError, match="damaged"):
        await database.read(lambda connection: connection.execute(select(tables.users)).all())
    await database.aclose()


async def test_where_no_directory_can_be_made_the_reason_and_the_way_out_are_told(tmp_path: Path):
    (tmp_path / "file").touch()
    database = Database(tmp_path / "file" / "deerflow.db")
    with pytest.raises(DatabaseError, match=r"cannot be used: .* Make sure that its directory exists"):
        await database.migrate()
    await database.aclose()


async def test_a_full_disk_loses_nothing_and_is_said_to_be_full(tmp_path: Path):
    database = Database(tmp_path / "deerflow.db")
    await database.migrate()

    def fill(raw: sqlite3.Connection) -> None:
        (pages,) = raw.execute("PRAGMA page_count").fetchone()
        raw.execute(f"PRAGMA max_page_count = {pages + 1}")

    await asyncio.wrap_future(database.sqlite.submit(fill, alone=True))
    row = {"run_id": "r", "call": "x" * 100_000}
    with pytest.raises(DatabaseError, match=r"disk is full\. Nothing was changed"):
        await database.write(lambda c: c.execute(insert(tables.tool_executions).values(row)) and None)
    assert await database.read(lambda c: c.execute(select(tables.tool_executions)).all()) == []
    await database.aclose()


async def test_a_server_that_does_not_answer_is_told_without_its_password():
    database = Database("postgresql://deer:secret@127.0.0.1:1/deerflow")
    with pytest.raises(DatabaseError, match="PostgreSQL cannot be reached") as caught:
        await database.migrate()
    assert "secret" not in str(caught.value)
    await database.aclose()


def test_a_copy_never_overwrites(tmp_path: Path):
    sqlite3.connect(tmp_path / "a").close()
    (tmp_path / "b").write_text("mine")
    with pytest.raises(FileExistsError):
        copy_database(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "mine"


def test_importing_the_package_imports_no_database_library():
    code = "import sys, deerflow; print([m for m in ('sqlalchemy', 'alembic', 'psycopg') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
