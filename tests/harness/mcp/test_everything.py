"""The protocol's own test server, from npm, over all transports."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.mcp.conftest import World, free_port

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

PACKAGE = "@modelcontextprotocol/server-everything@2026.8.31"
PATHS = {"streamableHttp": ("http", "mcp"), "sse": ("sse", "sse")}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("everything")
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", PACKAGE], cwd=folder, check=True)
    return folder / "node_modules/.bin/mcp-server-everything"


@pytest.fixture
def entry(program: Path) -> Iterator[Callable[[str], dict[str, Any]]]:
    """What the configuration says of the server, started with a transport."""
    processes: list[subprocess.Popen[bytes]] = []

    def made(transport: str) -> dict[str, Any]:
        if transport == "stdio":
            return {"command": str(program), "args": ["stdio"], "isolation": "host"}
        port = free_port()
        environment = os.environ | {"PORT": str(port)}
        processes.append(subprocess.Popen([program, transport], env=environment, stderr=subprocess.DEVNULL))
        kind, path = PATHS[transport]
        return {"type": kind, "url": f"http://127.0.0.1:{port}/{path}"}

    yield made
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("transport", ["stdio", "sse", "streamableHttp"])
async def test_the_test_server_of_the_protocol_is_used_over(
    world: World, entry: Callable[[str], dict[str, Any]], transport: str
) -> None:
    given = await asyncio.to_thread(entry, transport)
    async with asyncio.timeout(60):
        while "all_echo" not in await world.tools({"all": given}):
            await asyncio.sleep(0.2)
    assert "hello" in (await world.call("all_echo", message="hello")).content
    assert "5" in (await world.call("all_get-sum", a=2, b=3)).content
    assert (await world.state("all"))["state"] == "ready"
