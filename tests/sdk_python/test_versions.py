"""Older versions of the official Python client, as other people's programs have them; the suite beside this has the pinned one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.sdk_python.conftest import CONFIG
from tests.support.gateway_process import GUARD, GatewayProcess

CLIENT = Path(__file__).with_name("versions_client.py")
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ScriptedOpenAI]]:
    root = tmp_path_factory.mktemp("gateway")
    with ScriptedOpenAI() as endpoint, GatewayProcess(root, model_url=endpoint.base_url, config=CONFIG) as gateway:
        yield gateway.start().url, endpoint


@pytest.mark.parametrize("version", ["0.1.51", "0.2.0", "0.3.0", "0.4.0"])
def test_other_versions_of_the_python_client(served: tuple[str, ScriptedOpenAI], tmp_path: Path, version: str):
    url, endpoint = served
    uv = str(Path(sys.executable).with_name("uv"))
    install = [uv, "pip", "install", "--quiet", "--target", tmp_path, f"langgraph-sdk=={version}"]
    subprocess.run(install, check=True, timeout=GUARD)
    key = "v" + version.replace(".", "-")
    endpoint.script(Text("One."), Text("Two."), Text("Three."), key=key)
    done = subprocess.run(
        [sys.executable, CLIENT, url, key],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=GUARD,
    )
    assert done.returncode == 0, done.stderr
