"""Converters for tests: a tool image with the libraries for pages and pictures alone, which takes seconds to build."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.shared import shared_directory

from deerflow.sandbox.auto import AutoSandboxProvider
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.tool_image import PACKAGED_REQUIREMENTS, ToolImage

NEEDED = ("faust-cchardet", "html-to-markdown", "lxml", "pi-heif", "pillow")


def small_image(directory: Path) -> ToolImage:
    """Build an image below ``directory``, unless it is there."""
    blocks = re.split(r"^(?=[a-z])", PACKAGED_REQUIREMENTS.read_text(), flags=re.MULTILINE)
    wanted = [block for block in blocks if block.partition("==")[0] in NEEDED]
    requirements = directory / "small.txt"
    draft = directory / f"small-{os.getpid()}.txt"
    draft.write_text("".join(wanted))
    draft.replace(requirements)
    image = ToolImage(directory / "small-tools", requirements)
    image.build()
    return image


@pytest.fixture(scope="session")
def converters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Converters]:
    """Warm for the whole session: in a sandbox, with the libraries for pages and pictures."""
    root = Path(tempfile.mkdtemp(prefix="deerflow-converters-", dir="/var/tmp"))
    root.chmod(0o755)
    made = Converters(AutoSandboxProvider(root), small_image(shared_directory(tmp_path_factory)))
    yield made
    asyncio.run(made.shutdown())
    shutil.rmtree(root)
