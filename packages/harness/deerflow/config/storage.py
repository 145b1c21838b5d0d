"""Where things are kept: ``database``, ``checkpointer``, ``run_events`` and ``stream_bridge``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from deerflow.config.section import Section

DEFAULT_SQLITE_DIR = ".deer-flow/data"


class CheckpointerConfig(Section):
    """Deprecated, use ``database``. Takes precedence over it for LangGraph's state alone."""

    type: Literal["memory", "sqlite", "postgres"]
    connection_string: str | None = None


class DatabaseConfig(Section):
    """The one database. In code the default is memory; a configuration that is loaded has sqlite unless its file says otherwise."""

    backend: Literal["memory", "sqlite", "postgres"] = "memory"
    sqlite_dir: str = DEFAULT_SQLITE_DIR
    postgres_url: str = ""
    echo_sql: bool = False
    pool_size: int = Field(default=5, ge=1)

    def sqlite_directory(self, data_dir: Path, project_root: Path) -> Path:
        """The directory of the SQLite files: ``data_dir`` (see :class:`Paths`) unless the file names another one.

        It never depends on the directory in which a process happens to start.
        """
        if self.sqlite_dir.rstrip("/") == DEFAULT_SQLITE_DIR:
            return data_dir
        return (project_root / Path(self.sqlite_dir).expanduser()).absolute()

    def location(self, data_dir: Path, project_root: Path) -> Path | str:
        """What ``Database`` opens: a URL, ``:memory:``, or the path of the SQLite file.

        Raises:
            ValueError: the backend is postgres and no URL is given.
        """
        if self.backend == "postgres":
            if not self.postgres_url:
                raise ValueError("database.backend is postgres: set database.postgres_url, too.")
            return self.postgres_url
        if self.backend == "memory":
            return ":memory:"
        return self.sqlite_directory(data_dir, project_root) / "deerflow.db"


class RunEventsConfig(Section):
    """The log of what happens in runs."""

    backend: Literal["memory", "db", "jsonl"] = "memory"
    max_trace_content: int = Field(default=10240, ge=0)
    """Bytes."""
    track_token_usage: bool = True


class StreamBridgeConfig(Section):
    """Without effect: processes notify each other through PostgreSQL."""

    type: Literal["memory", "redis"] = "memory"
    redis_url: str | None = None
    queue_maxsize: int = Field(default=256, ge=1)
