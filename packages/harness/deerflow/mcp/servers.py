"""All servers of the configuration, on an event loop of their own, so that agents of any loop can call them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from deerflow.config import AppConfig
from deerflow.config.schema import McpServerConfig
from deerflow.errors import NotFoundError
from deerflow.sandbox.interface import SandboxProvider
from deerflow.sandbox.spawner import Spawner

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from deerflow.mcp.server import McpServer
    from deerflow.mcp.tools import Interceptor

GRACE_SECONDS = 0.5
"""A run waits so long for further servers when one has become ready."""
FIRST_SECONDS = 5.0
"""A run waits so long for the first one."""


class McpTool(TypedDict):
    name: str
    description: str
    read_only: bool


class McpServerState(TypedDict):
    """``state``: off, starting, ready or failed, ``since`` when (ISO 8601). ``error``: what went wrong last."""

    name: str
    type: str
    description: str
    state: str
    since: str | None
    error: str
    tools: list[McpTool]


@dataclass
class _Running:
    server: McpServer
    task: asyncio.Task[None]
    made_for: object
    """What it was started with."""
    tools: tuple[object, tuple[BaseTool, ...]] = (None, ())
    """Of which generation and interceptors, and the tools."""


@dataclass
class McpServers:
    """Nothing is imported or started while no server is configured.

    Args:
        directory: where servers that run in sandboxes have their homes.
        key_file: encrypts tokens.
    """

    directory: Path
    key_file: Path
    _spawner: Spawner = field(default_factory=Spawner, repr=False)
    _running: dict[str, _Running] = field(default_factory=dict[str, _Running])
    _interceptors: tuple[tuple[str, ...], list[Interceptor]] = ((), [])
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _began: float = 0.0

    async def tools(self, config: AppConfig, provider: SandboxProvider, *, wait: bool = False) -> tuple[BaseTool, ...]:
        """The tools of the servers that are up. Starts what ``config`` has new, ends what it has no longer; the others go on.

        Args:
            wait: for servers that are just starting, but not for those that hang.
        """
        if not config.extensions.enabled_mcp_servers and not self._running:
            return ()
        return await self._spawner.call(self._tools(config, provider, wait))

    async def states(self, config: AppConfig, provider: SandboxProvider) -> list[McpServerState]:
        """Of each configured server, in the order of the file."""
        await self.tools(config, provider, wait=True)
        return [_state(name, entry, self._running.get(name)) for name, entry in config.extensions.mcp_servers.items()]

    async def restart(self, name: str) -> None:
        """Open a new session, and wait until it is open or has failed. Raises NotFoundError: no server of that name is on."""
        await self._spawner.call(self._of(name).server.restart())

    def log(self, name: str) -> list[str]:
        """What the server has written to its standard error, and what went wrong with it. Raises NotFoundError."""
        return list(self._of(name).server.log)

    async def aclose(self) -> None:
        """End all servers. Idempotent."""
        if self._spawner.running:
            await self._spawner.call(self._stop(list(self._running)))
            self._spawner.close()
            self._spawner = Spawner()

    # on the loop of the servers -----------------------------------------------------------------------------------------

    async def _tools(self, config: AppConfig, provider: SandboxProvider, wait: bool) -> tuple[BaseTool, ...]:
        async with self._applying:
            await self._apply(config, provider)
        if wait:
            await self._settle()
        return tuple(tool for running in list(self._running.values()) for tool in self._tools_of(running))

    async def _apply(self, config: AppConfig, provider: SandboxProvider) -> None:
        wanted = {
            name: (entry, None if entry.type != "stdio" or entry.isolation == "host" else config.sandbox)
            for name, entry in config.extensions.enabled_mcp_servers.items()
        }
        await self._stop([name for name, one in self._running.items() if wanted.get(name) != one.made_for])
        new = wanted.keys() - self._running.keys()
        if not new:
            return
        for module in ("deerflow.mcp.tools", "deerflow.mcp.transport", "jsonschema"):  # costs seconds the first time
            await asyncio.to_thread(import_module, module)
        from deerflow.mcp.server import McpServer
        from deerflow.mcp.tools import interceptors_of
        from deerflow.mcp.transport import Place, transport_of

        if (paths := config.extensions.mcp_interceptors) != self._interceptors[0]:
            self._interceptors = paths, await asyncio.to_thread(interceptors_of, paths)
        place = Place(self.directory, self.key_file, provider, config.sandbox)
        self._began = asyncio.get_running_loop().time()
        for name in sorted(new, key=list(wanted).index):
            entry = wanted[name][0]
            server = McpServer(name, entry, partial(transport_of, name, entry, place))
            self._running[name] = _Running(server, asyncio.create_task(server.run(), name=f"mcp {name}"), wanted[name])

    async def _stop(self, names: list[str]) -> None:
        tasks = [self._running.pop(name).task for name in names]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _settle(self) -> None:
        clock = asyncio.get_running_loop().time
        until = self._began + FIRST_SECONDS
        while waiting := [one.server for one in self._running.values() if not one.server.tried.is_set()]:
            tries = {asyncio.ensure_future(server.tried.wait()): server for server in waiting}
            done, left = await asyncio.wait(tries, timeout=max(0, until - clock()), return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
            if not done:
                return
            if any(tries[task].state == "ready" for task in done):
                until = clock() + GRACE_SECONDS

    def _tools_of(self, running: _Running) -> tuple[BaseTool, ...]:
        from deerflow.mcp.tools import tool_of

        server, interceptors = running.server, self._interceptors[1]
        if server.state == "failed":
            return ()
        version = (server.generation, id(interceptors))
        if running.tools[0] != version:

            async def send(*call: Any) -> Any:
                return await self._spawner.call(server.call(*call))

            running.tools = version, tuple(tool_of(server.name, tool, send, interceptors) for tool in server.tools)
        return running.tools[1]

    def _of(self, name: str) -> _Running:
        if (running := self._running.get(name)) is None:
            raise NotFoundError(f"There is no MCP server {name!r} that is on.")
        return running


def _state(name: str, entry: McpServerConfig, running: _Running | None) -> McpServerState:
    server = running.server if running is not None else None
    return {
        "name": name,
        "type": entry.type,
        "description": entry.description,
        "state": server.state if server else "off",
        "since": server.since.isoformat() if server else None,
        "error": server.error if server else "",
        "tools": [
            {
                "name": tool.name,
                "description": tool.description or "",
                "read_only": bool(tool.annotations and tool.annotations.read_only_hint),
            }
            for tool in (server.tools if server else ())
        ],
    }
