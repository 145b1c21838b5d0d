"""The official clients of platforms accept our doubles. They have an environment of their own: they want other versions than we do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = [str(ROOT / "packages" / name) for name in ("app", "harness")]
"""Of which doubles and oracles use frames and cards; those need nothing that is installed."""
GUARD = 300.0
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment with the official clients."""
    folder = tmp_path_factory.mktemp("oracles") / "venv"
    uv, made = str(Path(sys.executable).with_name("uv")), str(folder / "bin" / "python")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True, timeout=GUARD)
    install = [
        uv,
        "pip",
        "sync",
        "--quiet",
        "--require-hashes",
        "--python",
        made,
        ROOT / "requirements" / "oracles.txt",
    ]
    subprocess.run(install, check=True, timeout=GUARD)
    return made


@pytest.mark.parametrize("platform", ["telegram", "slack", "discord", "feishu", "dingtalk", "wecom"])
def test_the_official_client_accepts_the_double(python: str, platform: str):
    done = subprocess.run(
        [python, "-m", f"tests.contracts.channels.oracle_{platform}"],
        cwd=ROOT,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONPATH": os.pathsep.join(PACKAGES)},
        capture_output=True,
        text=True,
        timeout=GUARD,
    )
    assert done.returncode == 0, done.stdout + done.stderr
