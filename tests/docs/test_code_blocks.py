"""Every ```python and ```bash block of README and docs runs, in the order of its page, in a directory of its own.

The demo model answers at once, and no page builds the sandbox's Python packages, which takes 13 s of CPU.
Pages that mention DEERFLOW_URL get a real server under that address, and with DEERFLOW_TOKEN an API token for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.docs.served import served
from tests.docs.warm_command import warm_command
from tests.support import warm_python

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"^```javascript\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIG = """
models:
  - {name: demo, use: "deerflow.models.demo:DemoChatModel", model: demo, chunk_delay: 0}
sandbox:
  tool_image: {enabled: false}
"""


@pytest.fixture(scope="module")
def command() -> Iterator[Path]:
    with warm_command() as folder:
        yield folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_code_block_runs(page: Path, tmp_path: Path, clean_environment: Path, command: Path):
    environ = {
        "PATH": f"{command}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "DEER_FLOW_HOME": str(clean_environment),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }
    for example in (ROOT / "examples").glob("*.csv"):
        (tmp_path / example.name).write_bytes(example.read_bytes())
    (tmp_path / "config.yaml").write_text(CONFIG)
    blocks = BLOCK.findall(page.read_text())
    code_of_page = "".join(code for _, code in blocks)
    wants_token = "DEERFLOW_TOKEN" in code_of_page
    server = served(tmp_path, environ, with_token=wants_token) if "DEERFLOW_URL" in code_of_page else nullcontext({})
    with server as more:
        for language, code in blocks:
            line = [sys.executable, "-c", code] if language == "python" else ["bash", "-euo", "pipefail", "-c", code]
            options = {"cwd": tmp_path, "env": environ | more, "stdin": subprocess.DEVNULL, "timeout": 120}
            done = warm_python.run(line, **options)
            assert done.returncode == 0, f"{language} block of {page.name}:\n{code}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if SCRIPT.search(page.read_text())], ids=lambda page: page.name
)
def test_every_javascript_block_is_javascript(page: Path, tmp_path: Path):
    if not shutil.which("node"):
        pytest.skip("node is needed to check JavaScript.")
    for code in SCRIPT.findall(page.read_text()):
        file = tmp_path / "block.mjs"
        file.write_text(code)
        done = subprocess.run(["node", "--check", str(file)], capture_output=True, text=True)
        assert done.returncode == 0, f"{page.name}:\n{code}\n{done.stderr}"
