"""`deerflow backup` and `restore` with a bucket, whose keys `deerflow config secret` keeps encrypted."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.support.s3_server import KEY_ID, NAME, REGION, SECRET, s3_server

from .conftest import Cli


def test_the_keys_are_kept_encrypted_and_bring_a_backup_back(
    cli: Cli, folder: Path, data_dir: Path, sqlite_template: Path
) -> None:
    def holding(text: str) -> list[Path]:
        return [file for file in data_dir.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]

    (data_dir / "data").mkdir(parents=True)
    (data_dir / "data/deerflow.db").write_bytes(sqlite_template.read_bytes())
    with s3_server(folder / "storage") as storage:
        bucket = f"{{address: '{storage.url}', name: {NAME}, region: {REGION}}}"
        (folder / "config.yaml").write_text(f"config_version: 9\nbackups: {{bucket: {bucket}}}\n")
        refused = cli("backup", f"s3://{NAME}/by-hand/one.tar.zst")
        assert refused.code == 1 and "run `deerflow config secret DEER_FLOW_BACKUP_KEY_ID`" in refused.err
        for name, value in (("DEER_FLOW_BACKUP_KEY_ID", KEY_ID), ("DEER_FLOW_BACKUP_SECRET_KEY", SECRET)):
            done = cli("config", "secret", name, stdin=f"{value}\n")
            assert done.code == 0 and value not in done.out, done.err
        assert not holding(SECRET)
        done = cli("backup", f"s3://{NAME}/by-hand/one.tar.zst")
        assert done.code == 0 and list(storage.objects) == ["by-hand/one.tar.zst"], done.err
        assert "is whole" in cli("backup", "--verify", f"s3://{NAME}/by-hand/one.tar.zst").out

        (data_dir / "users").mkdir(exist_ok=True)
        (data_dir / "users/later").touch()
        assert "no archive in s3://backups/ that" in cli("restore", f"s3://{NAME}").err
        gone = cli("restore", f"s3://{NAME}/by-hand/two.tar.zst")
        assert gone.code == 1 and "There is no 'by-hand/two.tar.zst' in the bucket" in gone.err
        newest = time.strftime("by-hand/deerflow-%Y%m%dT%H%M%SZ.tar.zst", time.gmtime())
        storage.objects[newest] = storage.objects.pop("by-hand/one.tar.zst")
        done = cli("restore", f"s3://{NAME}/by-hand/")
        assert done.code == 0 and f"The newest is s3://{NAME}/{newest}" in done.out, done.err
        assert not (data_dir / "users/later").exists() and (data_dir / "data/deerflow.db").exists()
        assert not list(data_dir.glob(".deerflow-work-*"))


def test_doctor_tries_the_bucket_as_backups_use_it(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEER_FLOW_BACKUP_KEY_ID", KEY_ID)
    monkeypatch.setenv("DEER_FLOW_BACKUP_SECRET_KEY", SECRET)
    with s3_server(folder / "storage") as storage:
        bucket = f"{{address: '{storage.url}', name: {NAME}, region: {REGION}, prefix: a/}}"
        (folder / "config.yaml").write_text(f"config_version: 9\nbackups: {{bucket: {bucket}}}\n")
        checks = json.loads(cli("doctor", "--json").out)["checks"]
        [check] = [check for check in checks if check["name"] == "backups"]
        assert (check["status"], check["found"]) == ("ok", f"s3://{NAME}/a/: can be listed and written")
        assert not storage.objects and not storage.uploads


def test_a_secret_is_forgotten_and_one_of_the_environment_stays(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("config", "secret", "A_KEY", stdin="x").code == 0
    assert cli("config", "secret", "A_KEY", "--forget").code == 0
    assert cli("config", "secret", "A_KEY", stdin="\n").code == 2
    assert cli("config", "secret", "A KEY", stdin="x").code == 2
    monkeypatch.setenv("A_KEY", "y")
    assert "is set in the environment" in cli("config", "secret", "A_KEY", stdin="x").err
