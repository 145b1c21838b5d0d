"""The official JavaScript client against the gateway: the suite in ``tests/sdk_js``, run by node.

Its packages are installed once, into a folder that is named after their lock file.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from bench.scripted_openai import ScriptedOpenAI
from tests.app.gateway.conftest import listening, settings_for
from tests.support.node_packages import installed

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUITE = Path(__file__).parents[2] / "sdk_js"
FILES = sorted(path.name for path in SUITE.glob("*.test.mjs"))
OTHERS = ["1.6.0", "1.8.0", "2.0.0"]
"""Further versions of the client that interfaces in use are built on; 2.0.0 can do less than the pinned one."""


@pytest.fixture(scope="module")
def suite() -> Path:
    """The suite's folder, with its packages installed."""
    return installed(SUITE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """Where the suite finds the gateway and the model."""
    folder = tmp_path_factory.mktemp("gateway")
    with ScriptedOpenAI() as scripted:
        model = {"name": "scripted", "use": "langchain_openai:ChatOpenAI", "model": "scripted-model", "max_retries": 0}
        model |= {"base_url": scripted.base_url, "api_key": "test-key"}
        config = ConfigSource(cwd=folder, overrides={"models": [model], "title": {"enabled": False}})
        runtime = await asyncio.to_thread(Runtime, config, Paths(folder))
        async with listening(settings_for(folder, authentication=False), runtime) as gateway:
            yield {"DEERFLOW_URL": gateway.url, "MODEL_URL": scripted.base_url.removesuffix("/v1")}


@pytest.mark.nightly
@pytest.mark.parametrize("version", OTHERS)
async def test_other_versions_of_the_javascript_client(version: str, served: dict[str, str]) -> None:
    await test_the_javascript_client(
        "versions.test.mjs", await asyncio.to_thread(installed, SUITE, f"@langchain/langgraph-sdk@{version}"), served
    )


@pytest.mark.parametrize("name", FILES)
async def test_the_javascript_client(name: str, suite: Path, served: dict[str, str]) -> None:
    sources = await asyncio.to_thread(_beside_packages, suite)
    environment = {**os.environ, **served, "NO_PROXY": "127.0.0.1"}
    node = await asyncio.create_subprocess_exec(
        "node",
        "--experimental-websocket",  # the browser's client; node has it by itself from 22 on
        "--test",
        "--test-reporter=spec",
        "--test-timeout=120000",
        str(sources / name),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await node.communicate()
    finally:
        if node.returncode is None:
            node.kill()
            await node.wait()
    printed = output.decode(errors="replace")
    assert node.returncode == 0, printed[max(printed.find("✖"), 0) :]


def _beside_packages(suite: Path) -> Path:
    """The sources as they are now, where node finds the packages. Copies of several test processes are the same."""
    for source in SUITE.glob("*.mjs"):
        target = suite / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            making = target.with_suffix(f".{os.getpid()}")
            shutil.copy(source, making)
            making.replace(target)
    return suite
