"""The doctor looks at the database that is configured, and names what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from deerflow.config import ConfigSource, Paths
from deerflow_app.cli.commands.doctor import database


def _found(url: str) -> tuple[Any, ...]:
    config = ConfigSource(None, overrides={"database": {"backend": "postgres", "postgres_url": url}}).current()
    (found,) = database(config, Paths())
    return found


def test_a_postgres_database_is_looked_at(clean_environment: Path, postgres: Any, migrated_url: str) -> None:
    assert _found(migrated_url)[:2] == ("database", "ok")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE of_the_doctor ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    other = _found(postgres.url.rpartition("/")[0] + "/of_the_doctor")
    assert other[1] == "bad" and "encoding is SQL_ASCII" in other[2]
    nowhere = _found("postgresql://postgres@127.0.0.1:1/x")
    assert nowhere[1] == "bad" and "cannot be reached" in nowhere[2]
