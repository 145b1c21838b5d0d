from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from deerflow.config import AppConfig, ConfigSource, Paths
from deerflow.config.confinement import mount_problem, visible_mounts
from deerflow.sandbox.policy import build_sandbox_provider


def _problem(host: Path, target: str) -> str | None:
    try:
        config = AppConfig.model_validate({"sandbox": {"mounts": [{"host_path": str(host), "container_path": target}]}})
    except ValidationError as error:
        return str(error)
    return mount_problem(config, config.sandbox.mounts[0])


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/mnt",
        "/mnt/",
        "/mnt/user-data",
        "/mnt/user-data/workspace/x",
        "/mnt//user-data",
        "/mnt/skills",
        "/mnt/x/../skills",
    ],
)
def test_a_mount_that_would_hide_or_reach_into_the_threads_own_directories_is_refused(target: str, tmp_path: Path):
    assert _problem(tmp_path, target)


def test_a_mount_beside_them_is_fine_and_a_missing_directory_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    assert _problem(tmp_path, "/mnt/data") is None
    (tmp_path / "file").touch()
    assert "not a directory" in (_problem(tmp_path / "file", "/mnt/data") or "")
    mounts = [{"host_path": str(tmp_path / "none"), "container_path": "/mnt/data"}]
    (tmp_path / "config.yaml").write_text(json.dumps({"config_version": 9, "sandbox": {"mounts": mounts}}))
    config = ConfigSource(cwd=tmp_path, environ={}, probe=lambda *_: ()).current()
    assert visible_mounts(config) == []
    build_sandbox_provider(config, Paths(tmp_path))
    assert f"{tmp_path}/none does not exist" in caplog.text
