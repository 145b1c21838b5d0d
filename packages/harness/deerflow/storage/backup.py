"""One file that holds everything of an installation, made while it is used, and the way back.

::

    deerflow-backup.json             what this is
    database.sqlite | database.pg    of one moment; for PostgreSQL what pg_dump writes
    config/{config.yaml,...}         the files of the configuration, as they are
    home/...                         what people and agents made, without what can be made again
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import orjson

from deerflow.config import Paths
from deerflow.storage.backup_files import add_bytes, add_home
from deerflow.storage.errors import DatabaseError, NewerDatabaseError, explained
from deerflow.storage.migrate import HEAD, copy_database
from deerflow.storage.postgres_dump import check_empty, dump, load

_MANIFEST = "deerflow-backup.json"
_FORMAT = 1
_DATABASE = {"sqlite": "database.sqlite", "postgres": "database.pg"}
_ASIDE = "before-restore-"
_WORK = ".deerflow-work-"

Kind = Literal["sqlite", "postgres"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself. ``version``: that of the tables."""

    created_at: str
    database: Kind
    version: str
    format: int = _FORMAT


def backup(location: str, paths: Paths, target: Path, *, config_files: Sequence[Path] = ()) -> Manifest:
    """Write everything to ``target``, ``*.tar.gz`` or ``*.tar.zst``, which only its owner may read. Blocks.

    The database is of one moment; files are taken as they are found, one after the other.

    Args:
        location: as of :class:`Database`.
        config_files: kept as they are, with the secrets that stand in them.

    Raises:
        DatabaseError: the database cannot be read, or ``pg_dump`` is missing or failed.
        FileExistsError: ``target`` exists.
        ValueError: the name of ``target`` tells no known format.
    """
    _check_name(target)
    kind = _kind(location)
    with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=_WORK) as work:
        copy, partial = Path(work, _DATABASE[kind]), Path(work, "archive")
        version = _copy(kind, location, copy)
        manifest = Manifest(time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()), kind, version)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
            with (
                _compressing(raw, target.name) as stream,
                tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
            ):
                add_bytes(archive, _MANIFEST, orjson.dumps(manifest))
                archive.add(copy, copy.name)
                for file in config_files:
                    archive.add(file.resolve(), f"config/{file.name}")
                add_home(archive, paths, Path(work), left_out=_left_out(paths, location))
            raw.flush()
            os.fsync(raw.fileno())
        os.link(partial, target)
    return manifest


def restore(source: Path, location: str, paths: Paths, *, config_dir: Path) -> Path:
    """Make the installation what it was when ``source`` was written. Nothing of it may run meanwhile. Blocks.

    What is there now is moved aside, but for a PostgreSQL database, which must be empty. Configuration goes to
    ``config_dir``: as ``*.restored`` where such a file is there already.

    Returns:
        Where that is now which was there before.

    Raises:
        DatabaseError: the database is in use or not empty, or ``pg_restore`` is missing or failed.
        NewerDatabaseError: the backup is of a newer program.
        ValueError: ``source`` is no backup, or one of another kind of database.
    """
    base = paths.ensure_base_dir()
    kind = _kind(location)
    with tempfile.TemporaryDirectory(dir=base, prefix=_WORK) as directory:
        work = Path(directory)
        manifest = _extract(source, work)
        if manifest.database != kind:
            raise ValueError(f"{source} is a backup of a {manifest.database} database, `database` names {kind}.")
        aside = Path(tempfile.mkdtemp(dir=base, prefix=f"{_ASIDE}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-"))
        try:
            if kind == "postgres":
                check_empty(location)
                load(location, work / _DATABASE[kind])
            else:
                _retire(Path(location), aside)
        except BaseException:
            with suppress(OSError):
                aside.rmdir()
            raise
        _replace(base, work / "home", aside, paths.tools_dir)
        if kind == "sqlite":
            Path(location).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.move(work / _DATABASE[kind], location)
        for file in (work / "config").glob("*"):
            taken = (config_dir / file.name).exists()
            shutil.move(file, config_dir / f"{file.name}{'.restored' * taken}")
    return aside


def _kind(location: str) -> Kind:
    return "postgres" if "://" in location else "sqlite"


def _copy(kind: Kind, location: str, copy: Path) -> str:
    """Copy the database and return the version of its tables."""
    if kind == "postgres":
        return dump(location, copy)
    with explained(location):
        copy_database(location, copy)
        with closing(sqlite3.connect(copy)) as connection:
            # One file instead of three when somebody opens it.
            connection.execute("PRAGMA journal_mode = DELETE")
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            return connection.execute("SELECT version_num FROM alembic_version").fetchone()[0] if known else "0000"


def _left_out(paths: Paths, location: str) -> list[Path]:
    """What is in the archive already, can be made again, or is a copy itself."""
    database = Path(location).absolute()
    journals = [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
    copies = [*paths.data_dir.glob("*.bak"), *paths.base_dir.glob(f"{_ASIDE}*"), *paths.base_dir.glob(f"{_WORK}*")]
    archives = [*paths.base_dir.glob("*.tar.gz"), *paths.base_dir.glob("*.tar.zst")]
    return [paths.tools_dir, *journals, *copies, *archives]


@contextmanager
def _compressing(target: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if name.endswith(".tar.gz"):
        with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=6) as stream:
            yield stream  # pyright: ignore[reportReturnType]
    else:
        import zstandard

        with zstandard.ZstdCompressor(level=6).stream_writer(target, closefd=False) as stream:
            yield stream  # pyright: ignore[reportReturnType]


def _check_name(target: Path) -> None:
    if not target.name.endswith((".tar.gz", ".tar.zst")):
        raise ValueError(f"A backup is a file *.tar.gz or *.tar.zst, got {target.name!r}.")
    if target.exists():
        raise FileExistsError(f"{target} exists. Choose another name.")


def _extract(source: Path, work: Path) -> Manifest:
    try:
        with source.open("rb") as raw, _decompressed(raw, source.name) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                archive.extraction_filter = lambda member, path: member  # Python 3.11.2 has none; ours follows
                for member in archive:
                    _check_inside(member, work.resolve())
                    archive.extract(member, work)
        manifest = Manifest(**orjson.loads((work / _MANIFEST).read_bytes()))
    except (tarfile.TarError, OSError, EOFError, TypeError, ValueError) as error:
        raise ValueError(f"{source} cannot be read as a backup of DeerFlow: {error}.") from error
    if manifest.format > _FORMAT or manifest.version > HEAD:
        raise NewerDatabaseError(manifest.version, HEAD)
    return manifest


def _check_inside(member: tarfile.TarInfo, work: Path) -> None:
    """Links may lead anywhere, as they did; but nothing is written to where they lead. Raises ValueError."""
    name = Path(member.name)
    written = [(work / name).parent] + ([work / member.linkname] if member.islnk() else [])
    if name.is_absolute() or ".." in name.parts or not all(path.resolve().is_relative_to(work) for path in written):
        raise ValueError(f"it would write outside of the installation: {member.name}")


def _decompressed(raw: IO[bytes], name: str) -> Any:
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=raw)
    import zstandard

    return zstandard.ZstdDecompressor().stream_reader(raw)


def _retire(database: Path, aside: Path) -> None:
    if not database.exists():
        return
    with closing(sqlite3.connect(database, timeout=1)) as connection:
        try:
            # Whoever has the file open holds a lock that this does not go with.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise DatabaseError(f"The database {database} is in use. Stop DeerFlow and try again.") from error
        except sqlite3.DatabaseError:
            pass  # damaged: what it is replaced for
    for suffix in ("", "-wal", "-shm"):
        file = database.with_name(database.name + suffix)
        if file.exists():
            shutil.move(file, aside / file.name)


def _replace(base: Path, home: Path, aside: Path, kept: Path) -> None:
    for entry in list(base.iterdir()):
        if entry != kept and not entry.name.startswith((_ASIDE, _WORK)):
            entry.rename(aside / entry.name)
    if home.is_dir():
        for entry in list(home.iterdir()):
            entry.rename(base / entry.name)
