"""The way back from an upgrade never strands anyone: the older program gets a database that it can use, and nothing is lost."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text

from deerflow.storage import migrate
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError, NewerDatabaseError
from deerflow.storage.migrate import HEAD, copy_database
from deerflow.storage.rollback import rollback
from deerflow.storage.tables import users, utc_now

NEWER = f"{int(HEAD) + 1:04}"


async def _with_user(location: str, name: str) -> list[str]:
    database = Database(location)
    try:
        row = {"id": name, "email": name, "created_at": utc_now()}
        await database.write(lambda connection: connection.execute(insert(users).values(row)) and None)
        return await database.read(lambda connection: sorted(connection.scalars(select(users.c.id))))
    finally:
        await database.aclose()


async def _upgraded(location: str, readable_from: str = NEWER) -> None:
    """As a newer program leaves the database: with a table of its own."""

    def change(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE IF NOT EXISTS of_the_newer (name TEXT)"))
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{NEWER}'"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(migrate, "HEAD", NEWER)
            patch.setattr(migrate, "READABLE_FROM", readable_from)
            migrate._note_readers(connection)

    database = Database(location)
    await database.write(change)
    await database.aclose()


def _tables(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


async def test_the_copy_of_before_an_upgrade_takes_the_place_of_the_newer_database(migrated_location: str):
    location = migrated_location
    await _with_user(location, "alice")
    if "://" not in location:
        await asyncio.to_thread(shutil.copy, location, f"{location}.{HEAD}-20260101T000000Z.bak")
        await _with_user(location, "bob")
        await _upgraded(location, readable_from=HEAD)  # an upgrade before, which only added something
        newest = Path(f"{location}.{NEWER}-20260102T000000Z.bak")
        await asyncio.to_thread(copy_database, location, newest)
    await _upgraded(location)
    with pytest.raises(NewerDatabaseError, match="deerflow rollback"):
        await _with_user(location, "eve")
    if "://" in location:
        with pytest.raises(DatabaseError, match="deerflow restore ARCHIVE"):
            await asyncio.to_thread(rollback, location)
        return
    done = await asyncio.to_thread(rollback, location)
    assert done and done.copy == newest and newest.exists()
    assert "of_the_newer" in _tables(done.aside / Path(location).name)
    assert await _with_user(location, "carol") == ["alice", "bob", "carol"]
    assert await asyncio.to_thread(rollback, location) is None


@pytest.mark.parametrize("journal", ["kept", "gone"])
async def test_a_journal_of_the_newer_database_never_reaches_the_copy(
    sqlite_template: Path, tmp_path: Path, journal: str
):
    file = tmp_path / "deerflow.db"
    shutil.copy(sqlite_template, file)
    shutil.copy(file, f"{file}.{HEAD}-20260101T000000Z.bak")
    await _upgraded(str(file))
    killed = sqlite3.connect(file)
    killed.execute("CREATE TABLE in_the_journal (name TEXT)")
    for suffix in ("", "-wal") if journal == "kept" else ("",):  # as a killed process leaves them
        shutil.copy(f"{file}{suffix}", f"{tmp_path}/killed{suffix}")
    killed.close()
    for suffix in ("", "-wal") if journal == "kept" else ("",):
        shutil.move(f"{tmp_path}/killed{suffix}", f"{file}{suffix}")
    done = await asyncio.to_thread(rollback, str(file))
    assert done and ("in_the_journal" in _tables(done.aside / file.name)) == (journal == "kept")
    assert not _tables(file) & {"in_the_journal", "of_the_newer"}


async def test_a_database_in_use_or_without_a_copy_is_left_as_it_is(sqlite_template: Path, tmp_path: Path):
    file = tmp_path / "deerflow.db"
    shutil.copy(sqlite_template, file)
    await _upgraded(str(file))
    with pytest.raises(DatabaseError, match=r"No copy that this program can use .*`deerflow restore ARCHIVE"):
        await asyncio.to_thread(rollback, str(file))
    shutil.copy(sqlite_template, f"{file}.{HEAD}-20260101T000000Z.bak")
    with closing(sqlite3.connect(file)) as user:
        user.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match=r"in use\. Stop DeerFlow"):
            await asyncio.to_thread(rollback, str(file))
    assert "of_the_newer" in _tables(file) and not list(tmp_path.glob("*rollback-*"))


async def test_a_power_cut_before_the_last_step_leaves_the_newer_database(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "deerflow.db"
    shutil.copy(sqlite_template, file)
    await _upgraded(str(file))
    shutil.copy(sqlite_template, f"{file}.{HEAD}-20260101T000000Z.bak")

    def cut(*_: Any) -> None:
        raise OSError("power")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", cut)
        with pytest.raises(OSError):
            await asyncio.to_thread(rollback, str(file))
    assert "of_the_newer" in _tables(file)
    assert await asyncio.to_thread(rollback, str(file))


async def test_an_older_program_goes_on_where_the_upgrade_only_added_something(migrated_location: str):
    await _upgraded(migrated_location, readable_from=HEAD)
    assert await _with_user(migrated_location, "alice") == ["alice"]
    assert await asyncio.to_thread(rollback, migrated_location) is None
