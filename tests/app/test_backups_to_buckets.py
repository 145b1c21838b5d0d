"""Backups in a bucket: made when due, and kept as many as configured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.s3_server import KEY_ID, NAME, REGION, SECRET, S3Server, s3_server

from deerflow.config import AppConfig, ConfigError, ConfigSource
from deerflow.storage.backup import verify
from deerflow_app.backups import make_due, newest
from deerflow_app.bucket import BucketError
from deerflow_app.cli.commands.doctor import backups

Configure = Callable[..., AppConfig]


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[S3Server]:
    with s3_server(tmp_path / "storage") as server:
        yield server


@pytest.fixture
def configure(
    storage: S3Server, sqlite_template: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> Configure:
    """Returns a configuration with the bucket, and a database to keep."""
    monkeypatch.setenv("DEER_FLOW_BACKUP_KEY_ID", KEY_ID)
    monkeypatch.setenv("DEER_FLOW_BACKUP_SECRET_KEY", SECRET)
    (clean_environment / "data").mkdir()
    (clean_environment / "data/deerflow.db").write_bytes(sqlite_template.read_bytes())

    def made(**changes: Any) -> AppConfig:
        bucket = {"address": storage.url, "name": NAME, "prefix": "deerflow/", "region": REGION}
        return ConfigSource(
            None, overrides={"backups": {"bucket": bucket, "every_hours": 2, "keep": 2} | changes}
        ).current()

    return made


def _of(hours_ago: float) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - hours_ago * 3600))
    return f"deerflow-{stamp}.tar.zst"


def test_one_is_made_there_when_it_is_due_and_the_oldest_goes(
    tmp_path: Path, storage: S3Server, configure: Configure, clean_environment: Path
) -> None:
    file = tmp_path / "an old one"
    file.touch()
    old = {f"deerflow/{name}": file for name in (_of(9), _of(3), "my-own.tar.zst")}
    storage.objects |= old
    assert newest(configure()) == {"bucket": 0}
    made = make_due(configure())
    assert time.time() - newest(configure())["bucket"] < 300
    assert isinstance(made, str) and made.startswith(f"s3://{NAME}/deerflow/deerflow-")
    key = made.removeprefix(f"s3://{NAME}/")
    assert set(storage.objects) == {*list(old)[1:], key} and not storage.uploads
    whole = storage.objects[key].rename(tmp_path / "whole.tar.zst")
    assert verify(whole).database == "sqlite"
    assert not list(clean_environment.rglob("*.tar.zst")), "it lies there alone"
    asked = len(storage.requests)
    assert make_due(configure()) is None and len(storage.requests) == asked, "the storage is not asked each minute"
    assert make_due(configure(every_hours=1e-6)) is not None


def test_an_archive_of_the_directory_goes_there_also_after_a_failure(
    tmp_path: Path, storage: S3Server, configure: Configure
) -> None:
    config, directory = configure(directory=str(tmp_path / "here")), tmp_path / "here"
    storage.denies = frozenset({"PUT"})
    with pytest.raises(BucketError, match="may have to"):
        make_due(config)
    [archive] = directory.glob("*.tar.zst")
    assert newest(config)["directory"] > newest(config)["bucket"] == 0
    storage.denies = frozenset()
    assert make_due(config) == archive, "the same one is uploaded"
    assert list(storage.objects) == [f"deerflow/{archive.name}"] and archive.exists()
    assert make_due(config) is None
    (directory / ".uploaded").unlink()
    assert make_due(config) is None, "the storage knows it"


@pytest.mark.parametrize(
    "address", ["s3.example.org", "https://me:secret@s3.example.org", "https://s3.example.org/?x=1"]
)
def test_an_address_is_that_of_a_storage(clean_environment: Path, address: str) -> None:
    with pytest.raises(ConfigError, match=r"backups\.bucket\.address"):
        ConfigSource(None, overrides={"backups": {"bucket": {"address": address, "name": "b"}}}).current()


def test_doctor_says_in_a_sentence_what_is_in_the_way_of_backups(
    storage: S3Server, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(**changes: Any) -> str:
        [(_, status, sentence)] = backups(configure(**changes))
        assert status == "bad"
        return sentence

    for method in ("GET", "POST", "PUT", "DELETE"):
        storage.denies = frozenset({method})
        assert "it may have to list the bucket 'backups', and get, put and delete its objects" in found(), method
        storage.objects.clear()
    storage.denies, storage.fails = frozenset(), 1
    asked = len(storage.requests)
    assert "503" in found() and len(storage.requests) == asked + 1, "it asks once"
    elsewhere = {"address": "http://127.0.0.1:1", "name": NAME}
    assert "check the network and backups.bucket.address" in found(bucket=elsewhere)
    monkeypatch.delenv("DEER_FLOW_BACKUP_SECRET_KEY")
    assert "run `deerflow config secret DEER_FLOW_BACKUP_SECRET_KEY`" in found()
    assert list(backups(configure(bucket=None))) == []
