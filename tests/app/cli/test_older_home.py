"""Commands refuse tables of before the first release in a sentence, and leave everything as it is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deerflow.storage.migrate import HEAD

Cli = Callable[..., Any]


def _set_version(data_dir: Path, version: str) -> bytes:
    """Return the file as it is then."""
    file = data_dir / "data" / "deerflow.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
    return file.read_bytes()


def _is_refused(text: str) -> bool:
    return "of version 0018" in text and "git checkout" in text and "Traceback" not in text and "locate" not in text


def test_an_older_home_is_left_as_it_is(cli: Cli, folder: Path, data_dir: Path, postgres_url: str) -> None:
    assert cli("user", "add", "ann@example.org").code == 0
    assert cli("backup", "new.tar.gz").code == 0
    before = _set_version(data_dir, "0018")
    for command in (("serve", "--port", "0"), ("run", "hello"), ("user", "list"), ("migrate-database", postgres_url)):
        ended = cli(*command)
        assert ended.code == 1 and _is_refused(ended.err), (command, ended)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    ended = cli("doctor", "--json")
    (check,) = [each for each in json.loads(ended.out)["checks"] if each["name"] == "database"]
    assert ended.code == 1 and check["status"] == "bad" and _is_refused(check["found"])
    assert cli("backup", "old.tar.gz").code == 0
    ended = cli("restore", "old.tar.gz")
    assert ended.code == 1 and _is_refused(ended.err)
    assert (data_dir / "data" / "deerflow.db").read_bytes() == before
    assert cli("restore", "new.tar.gz").code == 0
    assert "ann@example.org" in cli("user", "list").out


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("worker",), ("migrate-database", "back/deerflow.db")])
def test_an_older_postgres_database_is_left_as_it_is(
    cli: Cli, folder: Path, migrated_url: str, command: tuple[str, ...]
) -> None:
    with psycopg.connect(migrated_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0018'")
    (folder / "config.yaml").write_text(f"database:\n  backend: postgres\n  postgres_url: {migrated_url}\n")
    ended = cli(*command)
    assert ended.code == 1 and _is_refused(ended.err), ended
    assert not (folder / "back").exists()
    with psycopg.connect(migrated_url) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0018",)
        connection.execute(f"UPDATE alembic_version SET version_num = '{HEAD}'")  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert cli("user", "list").code == 0
