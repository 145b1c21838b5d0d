"""deer-flow's data directory, database and configuration, found and opened without a byte written."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from deerflow.config import ConfigError
from deerflow.config.document import parse_json, parse_yaml, read_text
from deerflow.errors import InvalidRequestError
from deerflow.identity import ID_PATTERN

ORIGIN = "deer-flow"
DEFAULT_USER = "default"
"""Of those who use deer-flow without an account."""
_MARKS = ("data/deerflow.db", "users", "threads", "memory.json", "channels/store.json")
_EXTENSIONS = ("extensions_config.json", "mcp_config.json")


@dataclass(frozen=True, slots=True)
class DeerFlowHome:
    """Args:
    directory: ``.deer-flow``.
    database: its SQLite file; None: there is none.
    problem: why there is none.
    root: where its configuration is.
    """

    directory: Path
    database: Path | None
    problem: str
    root: Path
    extensions: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def find(cls, directory: Path, config: Path | None) -> Self:
        """Blocks. Raises InvalidRequestError if nothing of deer-flow is there, ConfigError if its configuration cannot be read."""
        places = (directory, directory / ".deer-flow", directory / "backend" / ".deer-flow")
        home = next((place for place in places if any((place / mark).exists() for mark in _MARKS)), None)
        if home is None:
            raise InvalidRequestError(
                f"{directory} holds no data of deer-flow. Name its data directory, which holds `users` and `data/deerflow.db`; "
                "it is `backend/.deer-flow` in its checkout."
            )
        home = home.absolute()
        if config is not None and not config.is_file():
            raise InvalidRequestError(f"There is no configuration file {config}.")
        near = [place / "config.yaml" for place in (home, *home.parents[:2])]
        file = config or next((one for one in near if one.is_file()), None)
        root = file.absolute().parent if file else home.parent
        settings = parse_yaml(read_text(file), file).data if file else {}
        database, problem = _database(home, root, settings.get("database") or {})
        return cls(home, database, problem, root, _extensions(home, root))

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Open the database as it is, or a copy of it if its last changes still stand in a log beside it. Blocks.

        Raises:
            InvalidRequestError: deer-flow writes into it just now.
        """
        if self.database is None:
            raise InvalidRequestError(self.problem)
        names = [f"{self.database.name}{suffix}" for suffix in ("", "-wal", "-journal")]
        files = [file for name in names if (file := self.database.with_name(name)).exists() and file.stat().st_size]
        if len(files) == 1:
            with closing(
                sqlite3.connect(f"{files[0].as_uri()}?mode=ro&immutable=1", uri=True, **_ANY_THREAD)
            ) as opened:
                yield _prepared(opened)
            return
        with tempfile.TemporaryDirectory(prefix="deerflow-import-") as work:
            before = [file.stat().st_mtime_ns for file in files]
            for file in files:
                shutil.copyfile(file, Path(work, file.name))
            if before != [file.stat().st_mtime_ns for file in files]:
                raise InvalidRequestError(f"deer-flow writes into {self.database}. Stop it first, then try again.")
            with closing(sqlite3.connect(Path(work, self.database.name), **_ANY_THREAD)) as opened:
                yield _prepared(opened)

    def users(self) -> list[str]:
        """Ids of those who have a directory, and of the one without an account."""
        found = {path.name for path in (self.directory / "users").glob("*") if path.is_dir()}
        return sorted({DEFAULT_USER, *filter(ID_PATTERN.fullmatch, found)})

    def user_dirs(self, user: str) -> list[Path]:
        """Directories that hold what belongs to a user; early versions kept that of the only one in the root."""
        own = self.directory / "users" / user
        return [own, self.directory] if user == DEFAULT_USER else [own]


_ANY_THREAD: dict[str, Any] = {"check_same_thread": False}


def rows(database: sqlite3.Connection, table: str, tail: str = "", *, columns: str = "*") -> list[dict[str, Any]]:
    """Return the rows of a table, none if there is no such table."""
    there = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    return [dict(row) for row in database.execute(f"SELECT {columns} FROM {table} {tail}")] if there else []


def json_object(text: Any) -> dict[str, Any]:
    """Return the object that a column or a file holds as JSON, an empty one if it is none."""
    with suppress(ValueError, TypeError, RecursionError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}


def text_of(file: Path) -> str | None:
    """Return a file's text; None: there is none that can be read."""
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text("utf-8-sig")
    return None


def _prepared(database: sqlite3.Connection) -> sqlite3.Connection:
    database.row_factory = sqlite3.Row
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    return database


def _database(home: Path, root: Path, settings: Any) -> tuple[Path | None, str]:
    settings = settings if isinstance(settings, Mapping) else {}
    if settings.get("backend") == "postgres":
        return None, "deer-flow keeps them in PostgreSQL, from which they are not taken over."
    places = [home / "data", home]
    if directory := settings.get("sqlite_dir"):
        places = [*(base / str(directory) for base in (root / "backend", root, home.parent)), *places]
    found = next((file for place in places if (file := place / "deerflow.db").is_file()), None)
    return found and found.absolute(), "there is no deerflow.db: name deer-flow's config.yaml with --config."


def _extensions(home: Path, root: Path) -> dict[str, Any]:
    folders = dict.fromkeys((root, root / "backend", *home.parents[:2]))
    file = next((one for folder in folders for name in _EXTENSIONS if (one := folder / name).is_file()), None)
    try:
        return dict(parse_json(read_text(file), file).data) if file else {}
    except ConfigError as error:
        raise InvalidRequestError(str(error)) from error
