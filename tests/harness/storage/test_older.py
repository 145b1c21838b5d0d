"""Tables of before the first release are refused in words, and left as they are."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, text

from deerflow.config import Paths
from deerflow.storage import migrate
from deerflow.storage.backup import backup, restore, verify
from deerflow.storage.database import Database
from deerflow.storage.errors import OlderDatabaseError
from deerflow.storage.migrate import HEAD, check_usable
from deerflow.storage.rollback import rollback
from deerflow.storage.tables import users

REFUSED = r"of version {}, made in development before DeerFlow 0\.1\.0.*Nothing was changed.*`git checkout"
BEFORE_0002 = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL, checkpoint BLOB);
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL, value BLOB);
INSERT INTO checkpoints VALUES ('t', '1', x'00');
"""


async def _make_older(location: str, version: str) -> None:
    database = Database(location)
    statement = text(f"UPDATE alembic_version SET version_num = '{version}'")
    await database.write(lambda connection: connection.execute(statement) and None)
    await database.aclose()


def _users(connection: Connection) -> list[str]:
    return list(connection.scalars(select(users.c.id)))


@pytest.mark.parametrize("version", ["0001", "0018", "0020"])
async def test_tables_of_development_are_refused_wherever_they_are_used(migrated_location: str, version: str):
    await _make_older(migrated_location, version)
    content = b"" if "://" in migrated_location else Path(migrated_location).read_bytes()
    refused = REFUSED.format(version)
    for _ in range(2):
        database = Database(migrated_location)
        with pytest.raises(OlderDatabaseError, match=refused):
            await database.migrate()
        with pytest.raises(OlderDatabaseError, match=refused):
            await database.read(_users)
        with pytest.raises(OlderDatabaseError, match=refused):
            await database.write(lambda connection: connection.execute(text("DROP TABLE users")) and None)
        await database.aclose()
    for use in (check_usable, rollback):
        with pytest.raises(OlderDatabaseError, match=refused):
            await asyncio.to_thread(use, migrated_location)
    await _make_usable_and_compare(migrated_location, content)


async def _make_usable_and_compare(location: str, content: bytes) -> None:
    if "://" not in location:
        file = Path(location)
        assert file.read_bytes() == content and not list(file.parent.glob("*.bak"))
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(f"UPDATE alembic_version SET version_num = '{HEAD}'")
    else:
        import psycopg

        with psycopg.connect(location) as connection:
            connection.execute(f"UPDATE alembic_version SET version_num = '{HEAD}'")  # pyright: ignore[reportArgumentType, reportCallIssue]
    again = Database(location)
    assert await again.read(_users) == []
    await again.aclose()


async def test_checkpoints_as_they_lay_first_are_refused_before_the_file_is_opened(tmp_path: Path):
    file = tmp_path / "deerflow.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(BEFORE_0002)
    before = file.read_bytes()
    database = Database(file)
    with pytest.raises(OlderDatabaseError, match=REFUSED.format("0001")):
        await database.migrate()
    await database.aclose()
    with pytest.raises(OlderDatabaseError):
        await asyncio.to_thread(check_usable, str(file))
    assert file.read_bytes() == before and [*tmp_path.iterdir()] == [file]


async def test_a_backup_of_development_can_be_made_but_is_refused_before_anything_moves(
    sqlite_template: Path, tmp_path: Path
):
    paths = Paths(tmp_path / "home")
    paths.data_dir.mkdir(parents=True)
    location, archive = str(paths.data_dir / "deerflow.db"), tmp_path / "b.tar.gz"
    await asyncio.to_thread(migrate.copy_database, sqlite_template, Path(location))
    await _make_older(location, "0018")
    written = await asyncio.to_thread(backup, location, paths, archive)
    assert written.manifest.version == "0018"
    before = Path(location).read_bytes()
    with pytest.raises(OlderDatabaseError, match=REFUSED.format("0018")):
        await asyncio.to_thread(verify, archive)
    with pytest.raises(OlderDatabaseError, match=REFUSED.format("0018")):
        await asyncio.to_thread(restore, archive, location, paths, config_dir=tmp_path)
    assert Path(location).read_bytes() == before and not list(paths.base_dir.glob("before-restore-*"))


async def test_a_rollback_never_takes_a_copy_of_development(sqlite_template: Path, tmp_path: Path):
    file = tmp_path / "deerflow.db"
    copies = {"0018": f"{file}.0018-20260102T000000Z.bak", HEAD: f"{file}.{HEAD}-20260101T000000Z.bak"}
    for version, copy in {**copies, "9999": str(file)}.items():
        await asyncio.to_thread(migrate.copy_database, sqlite_template, Path(copy))
        if version != HEAD:
            await _make_older(copy, version)
    done = await asyncio.to_thread(rollback, str(file))
    assert done and done.copy == Path(copies[HEAD])
