from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.harness.features.channels.platform_double import Platform
from tests.harness.features.channels.platform_double import platform as running


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    async with running() as made:
        yield made


@pytest.fixture
def sqlite_location(sqlite_template: Path, tmp_path: Path) -> str:
    return str(shutil.copy(sqlite_template, tmp_path / "deerflow.db"))
