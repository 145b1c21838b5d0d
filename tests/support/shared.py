"""What tests in several processes use together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of this test run: the same one in every worker process."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    directory.mkdir(mode=0o755, exist_ok=True)
    return directory
