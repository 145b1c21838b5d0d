from __future__ import annotations

from pathlib import Path

import pytest

from deerflow.config import AppConfig
from deerflow.sandbox.policy import mount_problem


def _problem(host: Path, target: str) -> str | None:
    config = AppConfig.model_validate({"sandbox": {"mounts": [{"host_path": str(host), "container_path": target}]}})
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


def test_a_mount_beside_them_is_fine_and_a_missing_directory_is_named(tmp_path: Path):
    assert _problem(tmp_path, "/mnt/data") is None
    assert "not a directory" in (_problem(tmp_path / "none", "/mnt/data") or "")
