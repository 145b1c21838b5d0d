from __future__ import annotations

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
