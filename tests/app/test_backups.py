"""Backups on a schedule: one is made when it is due, old ones go, and a failure is reported and deletes nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from deerflow.config import AppConfig, ConfigSource
from deerflow.storage.backup import verify
from deerflow_app.backups import make_due


@pytest.fixture
def config(tmp_path: Path, clean_environment: Path) -> AppConfig:
    backups: dict[str, Any] = {"directory": str(tmp_path / "elsewhere"), "every_hours": 2, "keep": 2}
    return ConfigSource(None, overrides={"backups": backups}).current()


def _of(hours_ago: float, directory: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - hours_ago * 3600))
    (file := directory / f"deerflow-{stamp}.tar.zst").touch()
    return file


def test_one_is_made_when_it_is_due_and_the_oldest_goes(
    tmp_path: Path, config: AppConfig, sqlite_template: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    (clean_environment / "data").mkdir()
    (clean_environment / "data/deerflow.db").write_bytes(sqlite_template.read_bytes())
    directory = tmp_path / "elsewhere"
    made = make_due(config)
    assert isinstance(made, Path) and verify(made).database == "sqlite" and made.stat().st_mode & 0o077 == 0
    assert make_due(config) is None
    made.unlink()
    oldest, older, mine = _of(9, directory), _of(3, directory), directory / "my-own.tar.zst"
    mine.touch()
    newest = make_due(config)
    assert newest and sorted(directory.iterdir()) == sorted([older, newest, mine]) and not oldest.exists()
    assert make_due(config) is None
    monkeypatch.undo()
    time.tzset()


def test_a_failure_is_reported_and_deletes_nothing(tmp_path: Path, config: AppConfig, clean_environment: Path) -> None:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    old = [_of(hours, directory) for hours in (5, 6, 7)]
    (clean_environment / "data").mkdir()
    (clean_environment / "data/deerflow.db").write_text("this is no database, whatever its name")
    with pytest.raises(RuntimeError, match="no SQLite database"):
        make_due(config)
    assert all(one.exists() for one in old)


def test_none_is_made_unless_a_directory_is_named(clean_environment: Path) -> None:
    assert make_due(ConfigSource(None).current()) is None and not os.listdir(clean_environment)
