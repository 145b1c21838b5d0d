"""The package in ``examples/my_package``, installed as people install theirs, in turns of the whole product."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.replies import Text, ToolCalls
from bench.scenarios import text_of
from bench.scripted_openai import ScriptedOpenAI
from tests.support import warm_python
from tests.support.own_package import EXAMPLE, install

CHAT = """
from deerflow import DeerFlowClient
from my_package.middleware import HouseRules

with DeerFlowClient(extra_middleware=[HouseRules("Degrees without a unit are wrong.")]) as client:
    print(client.chat("Is it warm in Bergen?", thread_id="t"))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("own"))


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI(models=("house-large",), api_key="house-key") as server:
        server.unscripted.add("title")
        yield server


def _run(code: str, directory: Path, endpoint: ScriptedOpenAI, site: Path | None) -> subprocess.CompletedProcess[str]:
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(directory),
        "HOUSE_MODEL_URL": endpoint.base_url,
        "HOUSE_MODEL_KEY": "house-key",
        **({"PYTHONPATH": str(site)} if site else {}),
    }
    command = [sys.executable, "-c", code]
    return warm_python.run(command, cwd=directory, env=environ, timeout=120)


def test_a_turn_uses_tool_model_and_middleware_of_a_package(tmp_path: Path, installed: Path, endpoint: ScriptedOpenAI):
    shutil.copy(EXAMPLE / "config.yaml", tmp_path)
    endpoint.script(ToolCalls(("weather", {"city": "Bergen"}), ("weather", {"city": "Rome"})), Text("48 degrees."))
    done = _run(CHAT, tmp_path, endpoint, installed)
    assert done.stdout.strip() == "48 degrees.", done.stderr
    first, last = (json.loads(raw) for raw in endpoint.raw_requests[:2])
    assert first["model"] == "house-large" and endpoint.headers[0]["x-team"] == "research"
    for request in (first, last):
        assert text_of(request["messages"][0]).endswith("\n\nDegrees without a unit are wrong.")
    (schema,) = [tool["function"] for tool in first["tools"] if tool["function"]["name"] == "weather"]
    assert list(schema["parameters"]["properties"]) == ["city"]
    results = [text_of(message) for message in last["messages"] if message["role"] == "tool"]
    assert results[0] == "Bergen: 48 °F" and "There are: Bergen, Aarau, Cork." in results[1]


def test_a_package_that_is_not_installed_is_named_with_what_to_do(tmp_path: Path, endpoint: ScriptedOpenAI):
    config = yaml.safe_load((EXAMPLE / "config.yaml").read_text())
    del config["capabilities"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    without = CHAT.replace("from my_package.middleware import HouseRules", "def HouseRules(rules): ...")
    done = _run(without, tmp_path, endpoint, None)
    said = done.stdout + done.stderr
    assert "Module my_package" in said and "pip install my-package" in said, said
    assert endpoint.raw_requests == []


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("my_package.tools:wether_tool", "has no 'wether_tool'"),
        ("my_package.tool:weather_tool", "Check the spelling"),
        ("my_package.tools.weather_tool", "package.module:attribute"),
        ("my_package.tools:CELSIUS", "is a dict, but a BaseTool is needed"),
    ],
)
def test_a_wrong_path_is_told_from_a_missing_package(
    tmp_path: Path, installed: Path, endpoint: ScriptedOpenAI, use: str, words: str
):
    config: Any = (EXAMPLE / "config.yaml").read_text().replace("my_package.tools:weather_tool", use)
    (tmp_path / "config.yaml").write_text(config)
    done = _run(CHAT, tmp_path, endpoint, installed)
    assert words in done.stdout + done.stderr and endpoint.raw_requests == [], done.stderr[-2000:]
