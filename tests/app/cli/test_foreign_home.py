"""deer-flow's data directory and configuration are recognised before anything is written into them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.deer_flow_home import AUGUST_TABLES, TABLES, DeerFlowHome, talk

from deerflow.config import ConfigSource, Paths
from deerflow_app.cli.commands.doctor import database

Cli = Callable[..., Any]


@pytest.fixture(params=[34, 8])
def theirs(tmp_path: Path, request: pytest.FixtureRequest) -> DeerFlowHome:
    made = DeerFlowHome(tmp_path / "theirs", version=request.param)
    made.thread("t1", [talk()])
    made.write("users/default/threads/t1/user-data/outputs/plan.md", "owls")
    return made


@pytest.mark.parametrize(
    "command",
    [("serve", "--port", "0"), ("run", "hello"), ("user", "list"), ("memory", "list"), ("prune",), ("worker",)],
)
def test_their_home_is_left_as_it_is(
    cli: Cli, theirs: DeerFlowHome, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DEER_FLOW_HOME", str(theirs.home))
    before = theirs.tree()
    ended = cli(*command)
    assert ended.code == 1 and "deerflow import deer-flow DIR" in ended.err
    assert theirs.tree() == before


def test_a_home_that_was_left_in_a_crash_is_recognised_by_its_log(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = DeerFlowHome(tmp_path / "theirs")
    theirs.database.unlink()
    monkeypatch.setenv("DEER_FLOW_HOME", str(theirs.home))
    writer = sqlite3.connect(theirs.database)
    writer.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + TABLES)
    before = theirs.tree()
    ended = cli("serve", "--port", "0")
    writer.close()
    assert ended.code == 1 and "belongs to deer-flow" in ended.err
    assert {name for name in before if not name.endswith(("-shm", "-wal"))} <= theirs.tree().keys()


def test_the_doctor_says_what_a_server_would(
    cli: Cli, theirs: DeerFlowHome, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[dict[str, Any]]:
        ended = cli("doctor", "--json")
        assert ended.code == 1
        return [check for check in json.loads(ended.out)["checks"] if check["name"] == "database"]

    files = data_dir / "users" / "default" / "threads" / "t"
    files.mkdir(parents=True)
    (lost,) = found()
    assert lost["status"] == "bad" and "is missing, but" in lost["found"]
    monkeypatch.setenv("DEER_FLOW_HOME", str(theirs.home))
    before = theirs.tree()
    (foreign,) = found()
    assert foreign["status"] == "bad" and "deerflow import deer-flow DIR" in foreign["found"]
    assert theirs.tree() == before


def test_a_postgres_database_of_theirs_is_left_as_it_is(clean_environment: Path, postgres: Any) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE of_deer_flow ENCODING 'UTF8' TEMPLATE template0")
    url = postgres.url.rpartition("/")[0] + "/of_deer_flow"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((TABLES + AUGUST_TABLES).replace("DATETIME", "TIMESTAMP"))
        tables = connection.execute("SELECT count(*) FROM pg_class").fetchone()
        config = ConfigSource(None, overrides={"database": {"backend": "postgres", "postgres_url": url}}).current()
        (found,) = database(config, Paths())
        assert found[1] == "bad" and "The PostgreSQL database belongs to deer-flow" in found[2]
        assert connection.execute("SELECT count(*) FROM pg_class").fetchone() == tables


def test_the_version_of_their_configuration_is_known_as_theirs(cli: Cli, folder: Path) -> None:
    august = Path(__file__).parents[2] / "harness" / "config" / "august.yaml"
    file = folder / "config.yaml"
    file.write_text(august.read_text().replace("$SOME_KEY", "k"))
    before = file.read_bytes()
    ended = cli("config", "upgrade")
    assert ended.code == 2 and "34 is a version of deer-flow" in ended.err and "deerflow import" in ended.err
    assert cli("config", "upgrade", "--dry-run").code == 2
    assert file.read_bytes() == before and [*folder.glob("config.yaml.*")] == []
    (warning,) = [each for each in ConfigSource(file).read().origin.warnings if "deerflow import" in each]
    assert "config_version 34 is deer-flow's" in warning
