"""A backup made while everything is used brings all of it back, and never destroys what is there."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import random
import shutil
import sqlite3
import tarfile
import threading
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sqlalchemy import insert, select

from deerflow.config import Paths
from deerflow.storage import backup as module
from deerflow.storage.backup import backup, manifest_of, restore, verify
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError, NewerDatabaseError
from deerflow.storage.tables import users, utc_now


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "home", environ={})


async def _add_user(database: Database, name: str) -> None:
    row = {"id": name, "email": name, "created_at": utc_now()}
    await database.write(lambda connection: connection.execute(insert(users).values(row)) and None)


async def _users(location: str) -> list[str]:
    database = Database(location)
    try:
        return await database.read(lambda connection: sorted(connection.scalars(select(users.c.id))))
    finally:
        await database.aclose()


async def _used(paths: Paths, location: str) -> Database:
    """An installation in use: its database is open."""
    await asyncio.to_thread(_fill, paths)
    database = Database(location)
    await _add_user(database, "alice")
    return database


def _fill(paths: Paths) -> None:
    workspace = paths.ensure_thread_dirs("t", "alice") and paths.workspace("t", "alice")
    (workspace / "report.md").write_text("done")
    (workspace / "script.sh").write_text("#!/bin/sh")
    (workspace / "script.sh").chmod(0o775)
    (workspace / "python").symlink_to("/usr/bin/python3")
    (workspace / "etc").symlink_to("/etc")
    os.mkfifo(workspace / "pipe")
    (workspace / os.fsdecode(b"caf\xe9")).touch()
    paths.user_memory_file("alice").write_text("{}")
    paths.tools_dir.mkdir()
    (paths.tools_dir / "big").write_text("can be made again")


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.zst"])
async def test_everything_comes_back_as_it_was_when_the_backup_was_made(tmp_path: Path, paths: Paths, suffix: str):
    location = str(paths.data_dir / "deerflow.db")
    database = await _used(paths, location)
    with closing(sqlite3.connect(paths.data_dir / "identities.db")) as other:
        other.execute("CREATE TABLE known AS SELECT 7 AS uid")
        other.commit()
    config = tmp_path / "config.yaml"
    config.write_text("models: []")
    archive = tmp_path / f"backup.{suffix}"
    written = await asyncio.to_thread(backup, location, paths, archive, config_files=[config])
    assert written.changed == []
    assert written.manifest == await asyncio.to_thread(verify, archive)
    assert written.manifest.database == "sqlite" and archive.stat().st_mode & 0o077 == 0
    await _add_user(database, "bob")
    await database.aclose()

    (paths.workspace("t", "alice") / "report.md").write_text("changed")
    (paths.workspace("t", "alice") / "new").touch()
    config.write_text("models: [x]")
    aside = await asyncio.to_thread(restore, archive, location, paths, config_dir=tmp_path)
    assert await _users(location) == ["alice"]
    workspace = paths.workspace("t", "alice")
    names = [os.fsdecode(b"caf\xe9"), "etc", "python", "report.md", "script.sh"]
    assert sorted(each.name for each in workspace.iterdir()) == names
    assert (workspace / "report.md").read_text() == "done"
    assert (workspace / "script.sh").stat().st_mode & 0o777 == 0o775
    assert (
        str((workspace / "python").readlink()) == "/usr/bin/python3" and str((workspace / "etc").readlink()) == "/etc"
    )
    assert workspace.stat().st_mode & 0o777 == 0o700 and paths.user_dir("alice").stat().st_mode & 0o777 == 0o711
    assert paths.user_memory_file("alice").read_text() == "{}"
    with closing(sqlite3.connect(paths.data_dir / "identities.db")) as other:
        assert other.execute("SELECT uid FROM known").fetchone() == (7,)
    assert (paths.tools_dir / "big").exists()
    assert config.read_text() == "models: [x]" and (tmp_path / "config.yaml.restored").read_text() == "models: []"

    assert await _users(str(aside / "deerflow.db")) == ["alice", "bob"]
    assert (aside / "users/alice/threads/t/user-data/workspace/report.md").read_text() == "changed"
    assert not list(paths.base_dir.glob(".deerflow-work-*")) and not list(tmp_path.glob(".deerflow-work-*"))


async def test_a_backup_holds_a_database_of_one_moment_while_others_write(tmp_path: Path, paths: Paths):
    location = str(paths.data_dir / "deerflow.db")
    database = await _used(paths, location)
    stop = threading.Event()

    def make() -> None:
        for number in range(3):
            backup(location, paths, tmp_path / f"{number}.tar.gz")
        stop.set()

    making = threading.Thread(target=make)
    making.start()
    number = 0
    while not stop.is_set():
        # Two rows a transaction: a copy that holds one of them alone was torn.
        rows = [{"id": f"{number}{side}", "email": f"{number}{side}", "created_at": utc_now()} for side in "lr"]
        await database.write(lambda connection, rows=rows: connection.execute(insert(users), rows) and None)
        number += 1
    making.join()
    await database.aclose()
    for archive in sorted(tmp_path.glob("*.tar.gz")):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        with tarfile.open(archive) as opened:
            opened.extract("database.sqlite", tmp_path / "out")
        found = await _users(str(tmp_path / "out/database.sqlite"))
        assert len(found) % 2 == 1 and "alice" in found


async def test_what_is_in_use_is_not_replaced(tmp_path: Path, paths: Paths):
    location = str(paths.data_dir / "deerflow.db")
    database = await _used(paths, location)
    await asyncio.to_thread(backup, location, paths, tmp_path / "b.tar.gz")
    with pytest.raises(DatabaseError, match=r"in use\. Stop DeerFlow"):
        await asyncio.to_thread(restore, tmp_path / "b.tar.gz", location, paths, config_dir=tmp_path)
    await _add_user(database, "bob")
    await database.aclose()
    assert await _users(location) == ["alice", "bob"]
    assert (paths.workspace("t", "alice") / "report.md").exists()


async def test_a_backup_goes_into_the_base_directory_without_the_ones_before(tmp_path: Path, paths: Paths):
    location = str(paths.data_dir / "deerflow.db")
    await (await _used(paths, location)).aclose()
    for number in range(2):
        await asyncio.to_thread(backup, location, paths, paths.base_dir / f"{number}.tar.gz")
    with tarfile.open(paths.base_dir / "1.tar.gz") as opened:
        names = opened.getnames()
    assert "home/users/alice/memory.json" in names
    assert [name for name in names if "tar.gz" in name or "deerflow.db" in name or "tools" in name] == []


async def test_a_damaged_database_can_be_replaced_by_a_backup(tmp_path: Path, paths: Paths):
    location = str(paths.data_dir / "deerflow.db")
    await (await _used(paths, location)).aclose()
    await asyncio.to_thread(backup, location, paths, tmp_path / "b.tar.gz")
    Path(location).write_bytes(b"not a database" * 1000)
    await asyncio.to_thread(restore, tmp_path / "b.tar.gz", location, paths, config_dir=tmp_path)
    assert await _users(location) == ["alice"]


async def test_nothing_is_overwritten_and_no_half_archive_stays(tmp_path: Path, paths: Paths):
    location = str(paths.data_dir / "deerflow.db")
    (tmp_path / "b.tar.gz").write_text("mine")
    with pytest.raises(FileExistsError):
        await asyncio.to_thread(backup, location, paths, tmp_path / "b.tar.gz")
    with pytest.raises(ValueError, match=r"\.tar\.gz or \*\.tar\.zst"):
        await asyncio.to_thread(backup, location, paths, tmp_path / "b.zip")
    with pytest.raises(DatabaseError, match="cannot be opened"):
        await asyncio.to_thread(backup, location, paths, tmp_path / "c.tar.gz")
    assert (tmp_path / "b.tar.gz").read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir() if each.name != "home"] == ["b.tar.gz"]


async def test_what_is_no_backup_or_a_newer_one_is_refused_before_anything_moves(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    location = str(paths.data_dir / "deerflow.db")
    await (await _used(paths, location)).aclose()
    for name in ("text.tar.gz", "text.tar.zst"):
        (tmp_path / name).write_text("hello")
        with pytest.raises(ValueError, match="is no backup of DeerFlow"):
            await asyncio.to_thread(restore, tmp_path / name, location, paths, config_dir=tmp_path)
    await asyncio.to_thread(backup, location, paths, tmp_path / "b.tar.gz")
    with pytest.raises(ValueError, match="backup of a sqlite database"):
        await asyncio.to_thread(restore, tmp_path / "b.tar.gz", "postgresql://x/y", paths, config_dir=tmp_path)
    with monkeypatch.context() as patch, pytest.raises(NewerDatabaseError):
        patch.setattr("deerflow.storage.migrate.HEAD", "0000")
        await asyncio.to_thread(restore, tmp_path / "b.tar.gz", location, paths, config_dir=tmp_path)
    assert await _users(location) == ["alice"]
    assert not list(paths.base_dir.glob("before-restore-*"))


async def test_an_archive_cannot_write_outside_of_the_installation(tmp_path: Path, paths: Paths):
    evil = tmp_path / "evil.tar.gz"
    with tarfile.open(evil, "w:gz") as archive:
        link = tarfile.TarInfo("home/way")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        entry = tarfile.TarInfo("home/way/out")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(ValueError, match="cannot be read as a backup"):
        await asyncio.to_thread(restore, evil, str(paths.data_dir / "deerflow.db"), paths, config_dir=tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.zst"])
async def test_no_damage_passes_for_a_backup(tmp_path: Path, paths: Paths, suffix: str):
    location = str(paths.data_dir / "deerflow.db")
    await (await _used(paths, location)).aclose()
    (paths.workspace("t", "alice") / "noise").write_bytes(os.urandom(20_000))
    archive, damaged = tmp_path / f"b.{suffix}", tmp_path / f"damaged.{suffix}"
    await asyncio.to_thread(backup, location, paths, archive)
    content = archive.read_bytes()
    dice = random.Random(7)
    ends = [*range(40), *range(len(content) - 20, len(content))]
    kinds = ("flip", "zeros", "cut", "hole")
    damages = [(dice.randrange(len(content)), dice.choice(kinds)) for _ in range(60)] + [(at, "flip") for at in ends]
    for position, kind in damages:
        changed = bytearray(content)
        if kind == "flip":
            changed[position] ^= 1 << dice.randrange(8)
        elif kind == "zeros":
            changed[position : position + 512] = bytes(len(changed[position : position + 512]))
        elif kind == "cut":
            del changed[position:]
        else:
            del changed[position : position + dice.randrange(1, 600)]
        if len(changed) == len(content) and _decompressed(changed) == _decompressed(content):
            continue  # bits without a meaning: gzip's time, what fills the last byte of a block
        damaged.write_bytes(changed)
        with pytest.raises(ValueError, match="Nothing was changed"):
            await asyncio.to_thread(restore, damaged, location, paths, config_dir=tmp_path)
    assert await _users(location) == ["alice"] and not list(paths.base_dir.glob("before-restore-*"))


def _decompressed(content: bytes | bytearray) -> bytes:
    """Nothing where it is damaged."""
    try:
        if content[:2] == b"\x1f\x8b":
            return gzip.decompress(content)
        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return b""


async def test_an_entry_that_is_not_what_was_written_is_named(tmp_path: Path, paths: Paths):
    location = str(paths.data_dir / "deerflow.db")
    await (await _used(paths, location)).aclose()
    await asyncio.to_thread(backup, location, paths, tmp_path / "b.tar.gz")
    raw = gzip.decompress((tmp_path / "b.tar.gz").read_bytes())
    assert raw.count(b"#!/bin/sh") == 1
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(raw.replace(b"#!/bin/sh", b"#!/bin/rm")))
    with pytest.raises(ValueError, match=r"damaged: home/users/alice/threads/t/user-data/workspace/script\.sh are not"):
        await asyncio.to_thread(verify, tmp_path / "b.tar.gz")


async def test_files_that_change_while_a_backup_is_written_are_named(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    location = str(paths.data_dir / "deerflow.db")
    await (await _used(paths, location)).aclose()
    workspace = paths.workspace("t", "alice")
    copy = module.copy_database

    def copy_while_the_agent_works(source: Any, target: Any) -> None:
        copy(source, target)
        (workspace / "report.md").write_text("changed")
        (workspace / "script.sh").unlink()
        (workspace / "new").touch()

    monkeypatch.setattr(module, "copy_database", copy_while_the_agent_works)
    written = await asyncio.to_thread(backup, location, paths, tmp_path / "b.tar.gz")
    assert [Path(name).name for name in written.changed] == ["new", "report.md", "script.sh"]


async def test_a_backup_of_the_first_format_has_no_digests_and_is_restored(tmp_path: Path, paths: Paths):
    location = str(paths.data_dir / "deerflow.db")
    await (await _used(paths, location)).aclose()
    await asyncio.to_thread(backup, location, paths, tmp_path / "b.tar.gz")
    with tarfile.open(tmp_path / "b.tar.gz") as new, tarfile.open(tmp_path / "old.tar.gz", "w:gz") as old:
        for member in new:
            content = new.extractfile(member) if member.isreg() else None
            if member.name == "deerflow-backup.json" and content:
                manifest = content.read().replace(b'"format":2', b'"format":1')
                old.addfile(member, io.BytesIO(manifest))
            elif member.name != "deerflow-digests.json":
                old.addfile(member, content)
    await asyncio.to_thread(restore, tmp_path / "old.tar.gz", location, paths, config_dir=tmp_path)
    assert await _users(location) == ["alice"]


async def test_a_postgres_database_goes_to_a_new_one(
    tmp_path: Path, paths: Paths, postgres: Any, postgres_template: str
):
    with postgres.fresh_database(postgres_template) as old, postgres.fresh_database() as new:
        await (await _used(paths, old)).aclose()
        await asyncio.to_thread(backup, old, paths, tmp_path / "b.tar.zst")
        with pytest.raises(DatabaseError, match="not empty"):
            await asyncio.to_thread(restore, tmp_path / "b.tar.zst", old, paths, config_dir=tmp_path)
        (paths.workspace("t", "alice") / "report.md").unlink()
        await asyncio.to_thread(restore, tmp_path / "b.tar.zst", new, paths, config_dir=tmp_path)
        assert await _users(new) == ["alice"]
        assert (paths.workspace("t", "alice") / "report.md").read_text() == "done"


async def test_without_postgres_tools_it_is_told_what_to_install(
    tmp_path: Path, paths: Paths, postgres_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DatabaseError, match=r"pg_dump was not found\. Install PostgreSQL's client programs"):
        await asyncio.to_thread(backup, postgres_url, paths, tmp_path / "b.tar.gz")


def _texts(target: Path) -> dict[str, bytes]:
    with tarfile.open(target) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive if one.isreg()}  # pyright: ignore


@pytest.mark.parametrize("key", ["api_key: sk-secret-of-the-owner", "api_key: $OPENAI_API_KEY"])
async def test_a_backup_without_keys_holds_no_secret_and_names_what_is_missing(tmp_path: Path, paths: Paths, key: str):
    location, target = str(paths.data_dir / "deerflow.db"), tmp_path / "b.tar.gz"
    database = await _used(paths, location)
    secret = ["data/secrets.key", "data/auth.secret", "data/variables", "mcp/s/oauth", "users/alice/skills/secrets"]
    for name in secret:
        (paths.base_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.base_dir / name).write_text("SECRET")
    (paths.base_dir / "users/alice/skills/usage.json").write_text("{}")
    config = tmp_path / "config.yaml"
    config.write_text(f"models:\n- name: m\n  {key}\n")
    await asyncio.to_thread(backup, location, paths, target, config_files=[config], keys=False)
    await database.aclose()
    texts = await asyncio.to_thread(_texts, target)
    assert not any(b"SECRET" in text or b"sk-secret" in text for text in texts.values())
    assert "home/users/alice/skills/usage.json" in texts
    missing = sorted([*secret, *(["config.yaml"] if "sk-" in key else [])])
    assert (await asyncio.to_thread(manifest_of, target)).without == missing
    await asyncio.to_thread(shutil.rmtree, paths.base_dir)
    (tmp_path / "there").mkdir()
    await asyncio.to_thread(restore, target, location, paths, config_dir=tmp_path / "there")
    assert await _users(location) == ["alice"] and not paths.secrets_key_file.exists()
    assert (tmp_path / "there/config.yaml").exists() is ("sk-" not in key)
