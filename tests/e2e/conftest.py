from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.shared import shared_directory

from deerflow.config import Paths
from deerflow.sandbox.tool_image import ToolImage


@pytest.fixture(scope="session")
def home_with_tools(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data directory with the tool image in it, as ``make run`` leaves it."""
    home = shared_directory(tmp_path_factory) / "home"
    ToolImage(Paths(home).tools_dir).build()
    return str(home)


@pytest.fixture
def own_home(tmp_path: Path, home_with_tools: str) -> Path:
    """A data directory of the test's own with the same tools: whoever runs DeerFlow with a shared one finds the server of another test."""
    home = tmp_path / "home"
    home.mkdir(mode=0o711)
    (home / "tools").symlink_to(Path(home_with_tools) / "tools")
    return home
