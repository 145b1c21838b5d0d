"""Chat channels in `deerflow doctor`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from deerflow.config import AppConfig, Paths
from deerflow.features.channels import leases
from deerflow.storage.database import Database
from deerflow.storage.sql import change
from deerflow_app.cli.commands.doctor_channels import channels


def report(folder: Path, **config: Any) -> list[tuple[Any, ...]]:
    given = {"models": [], "database": {"backend": "sqlite", "sqlite_dir": str(folder)}, **config}
    return list(channels(AppConfig.model_validate(given), Paths(folder)))


async def _stored(location: Path | str, state: str, error: str) -> None:
    database = Database(location)
    await database.migrate()
    await database.write(leases.ensure, "x", "telegram")
    await database.write(change, "UPDATE channel_connections SET state = ?, error = ? WHERE id = 'x'", state, error)
    await database.aclose()


def test_without_channels_it_says_nothing(tmp_path: Path) -> None:
    assert report(tmp_path) == []


def test_mistakes_in_the_file_are_named(tmp_path: Path) -> None:
    broken = {"telegram": {"enabled": True, "session": 5}, "slack": {"enabled": False, "session": 5}}
    found = report(tmp_path, channels=broken | {"langgraph_url": "http://x"})
    assert [line[:2] for line in found] == [("telegram", "bad"), ("note", "warn")]
    assert "channels.telegram.session" in found[0][2] and "langgraph_url" in found[1][2]
    assert report(tmp_path, channels={"max_concurrency": 0})[0][1] == "bad"


def test_the_state_that_a_server_left_is_reported_with_what_helps(tmp_path: Path) -> None:
    config = AppConfig.model_validate({"models": [], "database": {"backend": "sqlite", "sqlite_dir": str(tmp_path)}})
    location = config.database_location(Paths(tmp_path))
    for state, error, status in [("connected", "", "ok"), ("signed-out", "The token is void.", "warn")]:
        asyncio.run(_stored(location, state, error))
        (line,) = report(tmp_path)
        assert line[:2] == ("telegram", status) and error in line[2]
    assert "new token" in line[3]


def test_a_database_of_before_channels_is_no_error(tmp_path: Path) -> None:
    config = AppConfig.model_validate({"models": [], "database": {"backend": "sqlite", "sqlite_dir": str(tmp_path)}})
    Path(config.database_location(Paths(tmp_path))).touch()
    assert report(tmp_path) == []
