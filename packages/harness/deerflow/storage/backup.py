"""One file that holds everything of an installation, made while it is used, and the way back.

::

    deerflow-backup.json             what this is
    database.sqlite | database.pg    of one moment; for PostgreSQL what pg_dump writes
    config/{config.yaml,...}         the files of the configuration, as they are
    home/...                         what people and agents made, without what can be made again
    deerflow-digests.json            SHA-256 of each entry before it: {"home/users/…": "9f86…"}

Nothing of temporary threads is in it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import os
import shutil
import sqlite3
import stat
import subprocess
import tarfile
import tempfile
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import urlsplit

import orjson
import zstandard

from deerflow.config import Paths
from deerflow.config.document import parse_yaml, read_text
from deerflow.config.env import mask_secrets
from deerflow.storage import rollback, sql
from deerflow.storage.errors import DatabaseError, NewerDatabaseError, explained
from deerflow.storage.migrate import (
    BEFORE_MIGRATIONS,
    HEAD,
    check_version,
    copy_database,
    looked_at,
    plain_url,
    versions_of,
)
from deerflow.storage.threads import begin_deletion, end_deletion, temporary_threads

logger = logging.getLogger(__name__)

_MANIFEST = "deerflow-backup.json"
_DIGESTS = "deerflow-digests.json"
_FORMAT = 2
_CHUNK = 1 << 20
_DATABASE = {"sqlite": "database.sqlite", "postgres": "database.pg"}
_ASIDE = "before-restore-"
WORK_PREFIX = ".deerflow-work-"
_SQLITE = b"SQLite format 3\0"

_INTERRUPT = (
    "UPDATE runs SET cancel_action = 'interrupt' WHERE status IN ('pending', 'running') AND cancel_action IS NULL"
)

Kind = Literal["sqlite", "postgres"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself. ``version``: that of the tables; ``readable_from``: the oldest that suffices for them;
    ``without``: keys and secrets that were left out."""

    created_at: str
    database: Kind
    version: str
    format: int = _FORMAT
    without: list[str] = field(default_factory=list[str])
    readable_from: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written. ``changed``: files, relative to the base directory, that others wrote or removed meanwhile, and so
    may be newer than the database says."""

    manifest: Manifest
    changed: list[str]


def backup(
    location: str, paths: Paths, target: Path, *, config_files: Sequence[Path] = (), keys: bool = True
) -> Written:
    """Write everything to ``target``, ``*.tar.gz`` or ``*.tar.zst``, which only its owner may read. Blocks.

    The database is of one moment. Files are noted before it and read after it: what changes between is reported.

    Args:
        location: as of :class:`Database`.
        config_files: kept as they are, with the secrets that stand in them.
        keys: with the installation's keys and what they encrypt in files; otherwise configuration that holds a secret is left out, too.

    Raises:
        DatabaseError: the database cannot be read, or ``pg_dump`` is missing or failed.
        FileExistsError: ``target`` exists.
        ValueError: the name of ``target`` tells no known format.
    """
    if not target.name.endswith((".tar.gz", ".tar.zst")):
        raise ValueError(f"A backup is a file *.tar.gz or *.tar.zst, got {target.name!r}.")
    if target.exists():
        raise FileExistsError(f"{target} exists. Choose another name.")
    kind = _kind(location)
    with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=WORK_PREFIX) as work:
        copy, partial = Path(work, _DATABASE[kind]), Path(work, "archive")
        left_out = [*_left_out(paths, location), *_archives(target.absolute().parent)]
        secret = [] if keys else [*_secret_files(paths), *filter(_holds_secret, config_files)]
        left_out += secret
        left_out += _temporary_dirs(location, paths)
        before = _noted(paths, left_out)
        version, readable_from = _copy(kind, location, copy)
        _forget_temporary(kind, location, copy)
        left_out += _temporary_dirs(location, paths)  # begun since
        without = sorted(_shown(file, paths) for file in secret)
        created_at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        manifest = Manifest(created_at, kind, version, without=without, readable_from=readable_from)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
            with (
                _compressing(raw, target.name) as stream,
                tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                archive = _Archive(tar)
                archive.add_bytes(_MANIFEST, orjson.dumps(manifest))  # first, so that it is read at once
                archive.add_file(copy.name, copy)
                for file in (one for one in config_files if one not in secret):
                    archive.add_file(f"config/{file.name}", file.resolve())
                _add_home(archive, paths, Path(work), left_out=left_out)
                archive.add_bytes(_DIGESTS, json.dumps(archive.digests).encode())
            raw.flush()
            os.fsync(raw.fileno())
        os.link(partial, target)
    after = _noted(paths, left_out)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return Written(manifest, [os.fsencode(name).decode(errors="replace") for name in changed])


def verify(source: Path) -> Manifest:
    """Read the whole archive and compare each entry with its digest. Writes nothing. Blocks.

    Raises:
        ValueError: ``source`` is no backup, or damaged.
        NewerDatabaseError, OlderDatabaseError: the backup is of a program that is newer, or of before the first release.
    """
    return _read(source)


def manifest_of(source: Path) -> Manifest:
    """Return what a backup says of itself, without reading the rest. Blocks. Raises as :func:`verify`."""
    return _read(source, only_manifest=True)


def restore(source: Path, location: str, paths: Paths, *, config_dir: Path, resume: bool = False) -> Path:
    """Make the installation what it was when ``source`` was written. Nothing of it may run meanwhile. Blocks.

    The whole archive is verified before anything is touched. What is there now is moved aside, but for a PostgreSQL
    database, which must be empty. Configuration goes to ``config_dir``: as ``*.restored`` where such a file is there already.

    Args:
        resume: the next start goes on with the runs that were at work. Otherwise it ends them as interrupted: what they
            did since, and perhaps finished, is not in the backup.

    Returns:
        Where that is now which was there before.

    Raises:
        DatabaseError: the database is in use or not empty, or ``pg_restore`` is missing or failed.
        NewerDatabaseError, OlderDatabaseError: the backup is of a program that is newer, or of before the first release.
        ValueError: ``source`` is no backup, a damaged one, or one of another kind of database.
    """
    manifest = verify(source)
    base = paths.ensure_base_dir()
    kind = _kind(location)
    if manifest.database != kind:
        raise ValueError(f"{source} is a backup of a {manifest.database} database, `database` names {kind}.")
    with tempfile.TemporaryDirectory(dir=base, prefix=WORK_PREFIX) as directory:
        work = Path(directory)
        _read(source, to=work.resolve())
        aside = Path(tempfile.mkdtemp(dir=base, prefix=f"{_ASIDE}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-"))
        try:
            if kind == "postgres":
                if versions_of(location)[0] != BEFORE_MIGRATIONS:
                    raise DatabaseError(
                        "The PostgreSQL database is not empty. Create an empty one, let `database.postgres_url` name it and "
                        "try again; so nothing of the present one is lost."
                    )
                _load(location, work / _DATABASE[kind], resume=resume)
            else:
                if not resume:
                    _interrupt_runs(work / _DATABASE[kind])
                _retire(Path(location), aside)
        except BaseException:
            with suppress(OSError):
                aside.rmdir()
            raise
        for leftover in Paths(work / "home").of_this_machine():  # archives of before hold them
            shutil.rmtree(leftover, ignore_errors=True) if leftover.is_dir() else leftover.unlink(missing_ok=True)
        _replace(base, work / "home", aside, [paths.tools_dir, *paths.of_this_machine()])
        if kind == "sqlite":
            Path(location).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.move(work / _DATABASE[kind], location)
        for file in (work / "config").glob("*"):
            taken = (config_dir / file.name).exists()
            shutil.move(file, config_dir / f"{file.name}{'.restored' * taken}")
    return aside


@contextmanager
def database_copy(location: str, work: Path) -> Iterator[str]:
    """Yield where a copy of the database is, in which no run is at work; it is gone at the end. Blocks.

    Args:
        work: a directory for it. A copy of a PostgreSQL database is another database of that server.

    Raises:
        DatabaseError: the database cannot be read, or PostgreSQL's tools are missing, or the role may not create a database.
    """
    kind = _kind(location)
    copy = work / _DATABASE[kind]
    _copy(kind, location, copy)
    if kind == "sqlite":
        _interrupt_runs(copy)
        yield str(copy)
        return
    with _beside(location, copy) as made:
        yield made


@contextmanager
def _beside(location: str, copy: Path, *, resume: bool = False) -> Iterator[str]:
    """Yield the address of another database of the same PostgreSQL server, filled with ``copy``; it is gone at the end."""
    import psycopg
    from psycopg import sql as postgres_sql

    server, name = plain_url(location), f"deerflow_trial_{os.getpid()}"
    with explained(location), psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            postgres_sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0").format(
                postgres_sql.Identifier(name)
            )
        )
        try:
            beside = urlsplit(server)._replace(path=f"/{name}").geturl()
            _load(beside, copy, resume=resume)
            yield beside
        finally:
            connection.execute(postgres_sql.SQL("DROP DATABASE {} WITH (FORCE)").format(postgres_sql.Identifier(name)))


def _kind(location: str) -> Kind:
    return "postgres" if "://" in location else "sqlite"


def _copy(kind: Kind, location: str, copy: Path) -> tuple[str, str]:
    """Copy the database and return the version of its tables, and the oldest program's that can use them."""
    if kind == "postgres":
        versions = versions_of(location)
        _dump(location, copy)
        return versions
    with explained(location):
        copy_database(location, copy)
        with closing(sqlite3.connect(copy)) as connection:
            # One file instead of three when somebody opens it.
            connection.execute("PRAGMA journal_mode = DELETE")
    return versions_of(str(copy))


def _temporary(location: str) -> list[tuple[str, str]]:
    with explained(location), looked_at(location) as connection:
        return temporary_threads(connection)


def _temporary_dirs(location: str, paths: Paths) -> list[Path]:
    return [paths.thread_dir(thread_id, user_id) for thread_id, user_id in _temporary(location)]


def _forget_temporary(kind: Kind, location: str, copy: Path) -> None:
    """Take temporary threads out of the copy of a database. What pg_dump wrote becomes a database for that, since it dumps whole tables."""
    if kind == "sqlite":
        return _delete_temporary(str(copy))
    if not _temporary(location):
        return
    without = copy.with_suffix(".without")
    try:
        with _beside(location, copy, resume=True) as trial:
            _delete_temporary(trial)
            _dump(trial, without)
        without.replace(copy)
    except DatabaseError as error:  # a backup with too much is better than none
        logger.warning(
            "This backup holds temporary chats, which could not be left out: %s For that the database's role creates a "
            "database beside it (ALTER ROLE … CREATEDB).",
            error,
        )


def _delete_temporary(location: str) -> None:
    with explained(location), looked_at(location, writes=True) as connection:
        found, is_sqlite = temporary_threads(connection), connection.dialect.name == "sqlite"
        if is_sqlite:
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
            connection.exec_driver_sql("PRAGMA secure_delete = ON")  # no bytes stay in free pages
        tables = ["checkpoint_lines"] if is_sqlite else ["checkpoints", "checkpoint_blobs", "checkpoint_writes"]
        for key, user_id in found:
            sql.execute(connection, "UPDATE runs SET status = 'interrupted' WHERE thread_id = ?", key)
            begin_deletion(connection, user_id, key)
            for table in tables:
                beside = "thread_id = ? OR substr(thread_id, 1, ?) = ?"
                sql.execute(connection, f"DELETE FROM {table} WHERE {beside}", key, len(key) + 1, f"{key}:")
            sql.execute(connection, "DELETE FROM jobs WHERE key = ?", key)
            end_deletion(connection, key)
        if is_sqlite and found:
            for table in ("checkpoint_steps", "checkpoint_writes"):
                sql.execute(connection, f"DELETE FROM {table} WHERE line NOT IN (SELECT line FROM checkpoint_lines)")


def _left_out(paths: Paths, location: str) -> list[Path]:
    """What is in the archive already, can be made again, is of this machine alone, or is a copy itself."""
    database = Path(location).absolute()
    journals = [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
    copies = [
        *paths.data_dir.glob("*.bak"),
        *paths.data_dir.glob(f"{rollback.ASIDE}*"),
        *paths.base_dir.glob(f"{_ASIDE}*"),
        *paths.base_dir.glob(f"{WORK_PREFIX}*"),
    ]
    return [
        paths.tools_dir,
        paths.deleted_dir,
        *paths.of_this_machine(),
        *journals,
        *copies,
        *_archives(paths.base_dir),
    ]


def _archives(directory: Path) -> list[Path]:
    return [*directory.glob("*.tar.gz"), *directory.glob("*.tar.zst")]


def _secret_files(paths: Paths) -> list[Path]:
    """Return the keys of the installation, and the files that hold what they encrypt."""
    found = [paths.secrets_key_file, paths.data_dir / "auth.secret", paths.data_dir / "variables"]
    found += [*paths.users_dir.glob("*/skills/secrets*"), *(paths.base_dir / "mcp").glob("*/oauth")]
    return [file for file in found if file.is_file()]


def _holds_secret(file: Path) -> bool:
    """Return whether a configuration file holds a secret itself, not the name of a variable."""
    data = parse_yaml(read_text(file), file).data
    return mask_secrets(data) != data


def _shown(file: Path, paths: Paths) -> str:
    return file.relative_to(paths.base_dir).as_posix() if file.is_relative_to(paths.base_dir) else file.name


def _compressing(target: IO[bytes], name: str) -> Any:
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=target, mode="wb", compresslevel=6)
    return zstandard.ZstdCompressor(level=6, write_checksum=True).stream_writer(target, closefd=False)


def _decompressing(source: IO[bytes], name: str) -> Any:
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=source)
    return zstandard.ZstdDecompressor().stream_reader(source)


def _read(source: Path, *, to: Path | None = None, only_manifest: bool = False) -> Manifest:
    """Return what the archive says of itself, and either extract each entry or hold it against its digest.

    Args:
        to: where it is extracted.
        only_manifest: stop where it is known.

    Raises:
        ValueError: no backup, or a damaged one.
        NewerDatabaseError, OlderDatabaseError: the backup is of a program that is newer, or of before the first release.
    """
    found: dict[str, str] = {}
    manifest: Manifest | None = None
    digests: dict[str, str] | None = None
    try:
        with source.open("rb") as raw, _decompressing(raw, source.name) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                archive.extraction_filter = lambda member, path: member  # Python 3.11.2 has none; ours follows
                for member in archive:
                    if member.name in (_MANIFEST, _DIGESTS):
                        content = archive.extractfile(member).read()  # pyright: ignore[reportOptionalMemberAccess]
                        if member.name == _DIGESTS:
                            digests = json.loads(content)
                        else:
                            manifest = Manifest(**orjson.loads(content))
                            found[member.name] = hashlib.sha256(_header(member) + content).hexdigest()
                            if only_manifest:
                                break
                        continue
                    if to is None:
                        found[member.name] = _digest(archive, member)
                    else:
                        _check_inside(member, to)
                        archive.extract(member, to)
            while not only_manifest and stream.read(
                _CHUNK
            ):  # to the end, where the checksum of the compressed stream stands
                pass
    except (tarfile.ReadError, gzip.BadGzipFile, zstandard.ZstdError) as error:
        what = "is damaged" if manifest else "is no backup of DeerFlow"
        raise ValueError(f"{source} cannot be read: it {what} ({error}). Nothing was changed.") from error
    except (tarfile.TarError, EOFError, TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"{source} cannot be read as a backup of DeerFlow: {error}. Nothing was changed.") from error
    if manifest is None:
        raise ValueError(f"{source} cannot be read as a backup of DeerFlow: it holds no {_MANIFEST}.")
    if manifest.format > _FORMAT:
        raise NewerDatabaseError(manifest.version, HEAD)
    check_version(manifest.version, manifest.readable_from or manifest.version)
    if to is None and manifest.format > 1 and not only_manifest:  # those of the first format have no digests
        _compare(source, digests, found)
    return manifest


def _compare(source: Path, expected: Mapping[str, str] | None, found: Mapping[str, str]) -> None:
    if expected is None:
        raise ValueError(f"{source} is damaged: its end is missing. Nothing was changed; use another backup.")
    if wrong := sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name)):
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ValueError(
            f"{source} is damaged: {', '.join(wrong[:3])}{more} are not what was written. Nothing was changed; use another "
            "backup."
        )


def _header(entry: tarfile.TarInfo) -> bytes:
    return f"{entry.type!r} {entry.mode:o} {entry.linkname}\0".encode("utf-8", "surrogateescape")


def _digest(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    digest = hashlib.sha256(_header(member))
    if (content := archive.extractfile(member) if member.isreg() else None) is not None:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _check_inside(member: tarfile.TarInfo, work: Path) -> None:
    """Links may lead anywhere, as they did; but nothing is written to where they lead. Raises ValueError."""
    name = Path(member.name)
    written = [(work / name).parent] + ([work / member.linkname] if member.islnk() else [])
    if name.is_absolute() or ".." in name.parts or not all(path.resolve().is_relative_to(work) for path in written):
        raise ValueError(f"it would write outside of the installation: {member.name}")


def _interrupt_runs(database: Path) -> None:
    with explained(str(database)), closing(sqlite3.connect(database)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            connection.execute(_INTERRUPT)
            connection.commit()


def _retire(database: Path, aside: Path) -> None:
    if database.exists():
        rollback.let_go(database)
    for suffix in ("", "-wal", "-shm"):
        file = database.with_name(database.name + suffix)
        if file.exists():
            shutil.move(file, aside / file.name)


def _replace(base: Path, home: Path, aside: Path, kept: Collection[Path]) -> None:
    for entry in list(base.iterdir()):
        if entry not in kept and not entry.name.startswith((_ASIDE, WORK_PREFIX)):
            entry.rename(aside / entry.name)
    if home.is_dir():
        for entry in list(home.iterdir()):
            entry.rename(base / entry.name)


# files that people and sandboxes use meanwhile ----------------------------------------------------------------------------


class _Archive:
    """A tar file that notes the digest of each entry."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.digests: dict[str, str] = {}

    def add(self, entry: tarfile.TarInfo, content: IO[bytes] | None = None) -> None:
        digest = hashlib.sha256(_header(entry))
        self._tar.addfile(entry, None if content is None else _Exactly(content, digest))
        self.digests[entry.name] = digest.hexdigest()

    def add_bytes(self, name: str, content: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime, entry.mode = len(content), time.time(), 0o600
        self.add(entry, io.BytesIO(content))

    def add_file(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            entry, status = tarfile.TarInfo(name), os.fstat(file.fileno())
            entry.size = status.st_size
            self.add(_with_status(entry, status), file)


def _noted(paths: Paths, left_out: Collection[Path]) -> dict[str, tuple[int, ...]]:
    """Size, time of change and inode of each file of threads, by its path below the base directory."""
    found: dict[str, tuple[int, ...]] = {}
    for path, parent_fd in _entries(paths, [*left_out, paths.data_dir]):
        with suppress(OSError):
            status = os.stat(path.name, dir_fd=parent_fd, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                key = str(path.relative_to(paths.base_dir))
                found[key] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found


def _entries(paths: Paths, left_out: Collection[Path]) -> Iterator[tuple[Path, int]]:
    """Everything below the base directory, with the descriptor of the directory that it is in; links are not followed."""
    for parent, directories, files, parent_fd in os.fwalk(paths.ensure_base_dir(), follow_symlinks=False):
        place = Path(parent)
        directories[:] = [name for name in directories if place / name not in left_out]
        for name in directories + files:
            if place / name not in left_out:
                yield place / name, parent_fd


def _add_home(archive: _Archive, paths: Paths, work: Path, *, left_out: Collection[Path]) -> None:
    """Add everything below the base directory as ``home/...``: directories, files, and links as links.

    Much of it belongs to sandboxes: nothing is followed, whatever they swap meanwhile. What vanishes is left out.

    Args:
        work: where databases are copied to before they are added.
        left_out: paths that are not added.
    """
    for path, parent_fd in _entries(paths, left_out):
        of_data = path.parent == paths.data_dir
        if of_data and path.name.endswith(("-wal", "-shm")):
            continue
        entry = tarfile.TarInfo(f"home/{path.relative_to(paths.base_dir)}")
        if of_data and _is_database(path):
            copy = work / path.name
            copy_database(path, copy)
            archive.add_file(entry.name, copy)
            copy.unlink()
        else:
            _add_entry(archive, entry, path.name, parent_fd)


def _add_entry(archive: _Archive, entry: tarfile.TarInfo, name: str, parent_fd: int) -> None:
    try:
        status = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=parent_fd)
            archive.add(_with_status(entry, status))
        elif stat.S_ISDIR(status.st_mode):
            entry.type = tarfile.DIRTYPE
            archive.add(_with_status(entry, status))
        elif stat.S_ISREG(status.st_mode):
            # NONBLOCK, since it may have become a pipe, which would keep us waiting.
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent_fd)
            with os.fdopen(opened, "rb") as file:
                status = os.fstat(opened)
                if stat.S_ISREG(status.st_mode):
                    entry.size = status.st_size
                    archive.add(_with_status(entry, status), file)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.filename is None:
            raise  # of the archive: no space, for example


def _with_status(entry: tarfile.TarInfo, status: os.stat_result) -> tarfile.TarInfo:
    entry.mode, entry.uid, entry.gid, entry.mtime = (
        stat.S_IMODE(status.st_mode),
        status.st_uid,
        status.st_gid,
        status.st_mtime,
    )
    return entry


class _Exactly(io.RawIOBase):
    """A file that never ends early: one that is cut short while it is read goes on with zeros, as its size was told.

    Args:
        digest: of ``hashlib``; takes what is read.
    """

    def __init__(self, file: IO[bytes], digest: Any) -> None:
        self._file = file
        self._digest = digest

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size).ljust(size, b"\0")
        self._digest.update(content)
        return content


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return path.is_file() and not path.is_symlink() and file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


# PostgreSQL, by its own tools -------------------------------------------------------------------------------------------


def _dump(url: str, copy: Path) -> None:
    _run_tool("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", f"--file={copy}")


def _load(url: str, source: Path, *, resume: bool) -> None:
    """Fill the database, which must be empty, with what :func:`_copy` wrote: all of it or nothing. Raises DatabaseError."""
    import psycopg

    _run_tool(
        "pg_restore", url, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(source)
    )
    if not resume:
        with explained(url), psycopg.connect(plain_url(url)) as connection:
            connection.execute(_INTERRUPT)


def _run_tool(tool: str, url: str, *arguments: str) -> None:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    if shutil.which(tool) is None:
        raise DatabaseError(
            f"{tool} was not found. Install PostgreSQL's client programs of the server's version or newer (on Debian and "
            "Ubuntu: apt install postgresql-client) and try again."
        )
    # Arguments are visible to everyone on the machine, the environment is not.
    known = {key: str(value) for key, value in conninfo_to_dict(plain_url(url)).items()}
    environment = {name: known.pop(key) for key, name in _VARIABLES.items() if key in known}
    target = ["--dbname", make_conninfo(**known)] if known else []
    done = subprocess.run(
        [tool, "--no-password", *target, *arguments], env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        raise DatabaseError(f"{tool} failed: {done.stderr.strip()}")


_VARIABLES = {"password": "PGPASSWORD", "sslpassword": "PGSSLPASSWORD"}
