from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deerflow.config import AppConfig, Paths
from deerflow.features.mcp.servers import McpServers
from deerflow.sandbox.interface import SandboxProvider
from deerflow.sandbox.policy import build_sandbox_provider

SERVER = Path(__file__).with_name("server.py")


def on_host(**more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVER)], "isolation": "host", **more}


def config_of(servers: dict[str, Any], **extensions: Any) -> AppConfig:
    made = {"mcpServers": servers, **extensions}
    return AppConfig.model_validate({"extensions": made, "sandbox": {"tool_image": {"enabled": False}}})


@pytest.fixture(autouse=True)
def servers_start_warm(warm_programs: None) -> None:
    """Many of these tests start a server."""


class World:
    """The servers of a configuration that tests change."""

    def __init__(self, directory: Path) -> None:
        self.servers = McpServers(directory / "mcp", directory / "key")
        self.config = AppConfig()
        self.provider: SandboxProvider = build_sandbox_provider(config_of({}), Paths(directory))

    async def tools(self, servers: dict[str, Any] | None = None, **extensions: Any) -> dict[str, Any]:
        if servers is not None:
            self.config = config_of(servers, **extensions)
        return {tool.name: tool for tool in await self.servers.tools(self.config, self.provider, wait=True)}

    async def call(self, name: str, /, **arguments: Any) -> Any:
        tool = (await self.tools())[name]
        return await tool.ainvoke(
            {"type": "tool_call", "id": "c1", "name": name, "args": {**arguments, "tool_runtime": None}}
        )

    async def state(self, name: str) -> Any:
        return next(one for one in await self.servers.states(self.config, self.provider) if one["name"] == name)

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(20):
            while not await holds():
                await asyncio.sleep(0.02)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr("deerflow.features.mcp.servers.FIRST_SECONDS", 60.0)  # a busy machine starts Python in 10
    made = await asyncio.to_thread(World, tmp_path)
    yield made
    await made.servers.aclose()
    await made.provider.shutdown()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def start() -> Iterator[Callable[..., str]]:
    """Start a server over HTTP, on ``port`` if given; its address."""
    processes: list[subprocess.Popen[bytes]] = []

    def begin(kind: str, port: int | None = None) -> str:
        port = port or free_port()
        processes.append(subprocess.Popen([sys.executable, str(SERVER), kind, str(port)], stderr=subprocess.DEVNULL))
        while True:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
            assert processes[-1].poll() is None
            time.sleep(0.01)

    yield begin
    for process in processes:
        process.kill()
        process.wait()
