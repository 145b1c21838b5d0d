"""All servers of the configuration, on an event loop of their own, so that agents of any loop can call them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from deerflow.config import AppConfig
from deerflow.config.schema import McpServerConfig, SandboxConfig
from deerflow.errors import NotFoundError
from deerflow.mcp import COMMAND, McpPrompt
from deerflow.sandbox.interface import SandboxProvider
from deerflow.sandbox.spawner import Spawner
from deerflow.security.text import inline

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, Tool

    from deerflow.mcp.connections import McpConnections
    from deerflow.mcp.questions import OpenCall
    from deerflow.mcp.server import McpServer
    from deerflow.mcp.tools import Interceptor

GRACE_SECONDS = 0.5
"""A run waits so long for further servers when one has become ready."""
FIRST_SECONDS = 5.0
"""A run waits so long for the first one."""
IDLE_SECONDS = 3600.0
"""A person's session that was not used for so long ends; the next run opens another."""


class McpTool(TypedDict):
    """``policy``: allow, ask or deny, as configured; null: as the guardrail judges."""

    name: str
    description: str
    read_only: bool
    enabled: bool
    policy: Literal["allow", "ask", "deny"] | None


class McpServerState(TypedDict):
    """``state``: off, starting, ready or failed, ``since`` when (ISO 8601). ``error``: what went wrong last. ``connection``: of the
    person who asks, needed or connected; null where the server has none of each person's own. What lacks it is off.
    """

    name: str
    type: str
    description: str
    state: str
    since: str | None
    error: str
    connection: Literal["needed", "connected"] | None
    tools: list[McpTool]


class McpTrial(TypedDict):
    """``state``: ready or failed. ``log``: what the server has written, and what went wrong."""

    state: str
    error: str
    tools: list[McpTool]
    log: list[str]


@dataclass
class _Running:
    server: McpServer
    task: asyncio.Task[None]
    made_for: object
    """What it was started with."""
    began: float
    used: float
    """When a run asked for it last."""
    tools: tuple[tuple[int, int] | None, tuple[BaseTool, ...]] = (None, ())
    """Of which generation and interceptors, and the tools."""


Key = tuple[str, str]
"""A server's name, and whose session it is; empty: everybody's."""


@dataclass
class McpServers:
    """Nothing is imported or started while no server is configured.

    Args:
        directory: where servers that run in sandboxes have their homes.
        key_file: encrypts tokens.
        connections: of people, to servers that want one of each person. None: there are none.
    """

    directory: Path
    key_file: Path
    connections: McpConnections | None = None
    _spawner: Spawner = field(default_factory=Spawner, repr=False)
    _running: dict[Key, _Running] = field(default_factory=dict[Key, _Running])
    _interceptors: tuple[tuple[str, ...], list[Interceptor]] = ((), [])
    _open: dict[str, OpenCall] = field(default_factory=dict[str, "OpenCall"])
    """Calls on their way."""
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def tools(
        self, config: AppConfig, provider: SandboxProvider, user_id: str = "", *, wait: bool = False
    ) -> tuple[BaseTool, ...]:
        """The tools of the servers that are up, for this person. Starts what ``config`` has new, ends what it has no longer; the
        others go on.

        Args:
            wait: for servers that are just starting, but not for those that hang.
        """
        if not config.extensions.enabled_mcp_servers and not self._running:
            return ()
        mine = await self.connected(config, user_id)
        return await self._spawner.call(self._tools(config, provider, user_id, mine, wait))

    async def connected(self, config: AppConfig, user_id: str) -> set[str]:
        """Servers that want a connection of each person's own, and have one of this person."""
        servers = config.extensions.enabled_mcp_servers
        return await self.connections.connected(user_id, servers) if self.connections is not None else set()

    async def unconnected(self, config: AppConfig, user_id: str) -> tuple[tuple[str, str], ...]:
        """Name and description of those that have none."""
        own = {name: one.description for name, one in config.extensions.enabled_mcp_servers.items() if one.is_own}
        mine = await self.connected(config, user_id) if own else set()
        return tuple((name, description) for name, description in own.items() if name not in mine)

    async def states(self, config: AppConfig, provider: SandboxProvider, user_id: str = "") -> list[McpServerState]:
        """Of each configured server, in the order of the file."""
        await self.tools(config, provider, user_id, wait=True)
        mine = await self.connected(config, user_id)
        return [
            _state(name, entry, self._running.get(_key(name, entry, user_id)), name in mine)
            for name, entry in config.extensions.mcp_servers.items()
        ]

    async def prompts(self, config: AppConfig, provider: SandboxProvider, user_id: str) -> list[McpPrompt]:
        """Of the servers that are up for this person."""
        await self.tools(config, provider, user_id, wait=True)
        found = [one.server for one in self._of_person(config, user_id)]
        return [prompt for server in found if server.state == "ready" for prompt in server.prompts]

    async def prompt(
        self, config: AppConfig, provider: SandboxProvider, user_id: str, text: str
    ) -> dict[str, str] | None:
        """What a person's message calls: ``{"name", "text"}``, or ``{"name", "error"}``; None: it calls no prompt."""
        called = COMMAND.fullmatch(text.strip())
        if called is None or not config.extensions.enabled_mcp_servers:
            return None
        wanted = f"/{called[1]}:{called[2]}"
        known = await self.prompts(config, provider, user_id)
        if (prompt := next((one for one in known if one["command"] == wanted), None)) is None:
            return None
        from deerflow.mcp.server import arguments_of, text_of

        name = inline(wanted[1:])
        try:
            server = self._of(prompt["server"], user_id).server
            arguments = arguments_of(prompt, called[3] or "")
            return {"name": name, "text": text_of(await self._spawner.call(server.prompt(prompt["name"], arguments)))}
        except Exception as error:  # whatever a server does, the message is the person's
            return {"name": name, "error": inline(str(error))[:500]}

    def _of_person(self, config: AppConfig, user_id: str) -> list[_Running]:
        """The sessions with servers that are on, in the order of the file."""
        keys = [_key(name, one, user_id) for name, one in config.extensions.enabled_mcp_servers.items()]
        return [self._running[key] for key in keys if key in self._running]

    async def restart(self, name: str, user_id: str = "") -> None:
        """Open a new session, and wait until it is open or has failed. Raises NotFoundError: no server of that name is on."""
        await self._spawner.call(self._of(name, user_id).server.restart())

    async def trial(self, name: str, entry: McpServerConfig, config: AppConfig, provider: SandboxProvider) -> McpTrial:
        """Open a session with a server that need not be configured, and close it. What a program writes to its home is gone then."""
        return await self._spawner.call(self._trial(name, entry, config, provider))

    def log(self, name: str, user_id: str = "") -> list[str]:
        """What the server has written to its standard error, and what went wrong with it. Raises NotFoundError."""
        return list(self._of(name, user_id).server.log)

    async def begin(
        self, name: str, user_id: str, key: str, tool: str, arguments: dict[str, Any], call: OpenCall
    ) -> CallToolResult | ElicitRequestParams:
        """Call a tool, in the person's own session where the server wants that: its result, or what the server asks.

        Args:
            key: by which a call that asks is found again.

        Raises:
            McpCallError: there is no result.
        """

        if (running := self._found(name, user_id)) is None:
            from deerflow.mcp.server import McpCallError

            raise McpCallError(f"The MCP server {name} is not connected any more.")

        async def begin() -> CallToolResult | ElicitRequestParams:
            running.used = asyncio.get_running_loop().time()
            self._open[key] = call
            call.task = asyncio.create_task(running.server.call(tool, arguments, call))
            call.task.add_done_callback(partial(self._ended, key, call))
            return await call.step()

        return await self._spawner.call(begin())

    def held(self, key: str) -> OpenCall | None:
        """The call that is open since it asked something."""
        return self._open.get(key)

    async def go_on(self, call: OpenCall, answer: ElicitResult | None = None) -> CallToolResult | ElicitRequestParams:
        """With an open call, and the answer to what it asks. Raises McpCallError: there is no result."""

        async def go_on() -> CallToolResult | ElicitRequestParams:
            if answer is not None:
                call.give(answer)
            return await call.step()

        return await self._spawner.call(go_on())

    def _ended(self, key: str, call: OpenCall, task: asyncio.Task[CallToolResult]) -> None:
        if self._open.get(key) is call:
            del self._open[key]
        if not task.cancelled():
            task.exception()  # who waited has it; else nobody does any more

    async def aclose(self) -> None:
        """End all servers. Idempotent."""
        if self._spawner.running:
            await self._spawner.call(self._stop(list(self._running)))
            self._spawner.close()
            self._spawner = Spawner()

    # on the loop of the servers -----------------------------------------------------------------------------------------

    async def _tools(
        self, config: AppConfig, provider: SandboxProvider, user_id: str, mine: set[str], wait: bool
    ) -> tuple[BaseTool, ...]:
        async with self._applying:
            await self._apply(config, provider, user_id, mine)
        now = asyncio.get_running_loop().time()
        for running in self._of_person(config, user_id):
            running.used = now
        if wait:
            await self._settle(config, user_id)
        return tuple(tool for running in self._of_person(config, user_id) for tool in self._tools_of(running))

    async def _apply(self, config: AppConfig, provider: SandboxProvider, user_id: str, mine: set[str]) -> None:
        entries = config.extensions.enabled_mcp_servers
        now = asyncio.get_running_loop().time()
        own = {name for name, entry in entries.items() if entry.is_own}
        keys = [_key(name, entry, user_id) for name, entry in entries.items() if name in mine or name not in own]
        keys += [
            (name, whose)
            for (name, whose), one in self._running.items()
            if name in own and whose not in ("", user_id) and (now - one.used < IDLE_SECONDS or one.server.calls)
        ]
        wanted = {key: _opened_by(entries[key[0]], config.sandbox) for key in keys}
        await self._stop([key for key, one in self._running.items() if wanted.get(key) != one.made_for])
        for key, one in self._running.items():
            if (entry := entries[key[0]]) != one.server.config:
                one.server.config = entry
                one.server.generation += 1
        new = [key for key in wanted if key not in self._running]
        if not new:
            return
        await _load()
        from deerflow.mcp.server import McpServer
        from deerflow.mcp.tools import interceptors_of
        from deerflow.mcp.transport import Place, transport_of

        if (paths := config.extensions.mcp_interceptors) != self._interceptors[0]:
            self._interceptors = paths, await asyncio.to_thread(interceptors_of, paths)
        place = Place(self.directory, self.key_file, provider, config.sandbox)
        now = asyncio.get_running_loop().time()
        for key in new:
            name, whose = key
            entry = entries[name]
            header = partial(self.connections.header, whose, name, entry) if whose and self.connections else None
            server = McpServer(name, entry, partial(transport_of, name, entry, place, header))
            task = asyncio.create_task(server.run(), name=f"mcp {name}")
            self._running[key] = _Running(server, task, wanted[key], now, now)

    async def _trial(self, name: str, entry: McpServerConfig, config: AppConfig, provider: SandboxProvider) -> McpTrial:
        await _load()
        from anyio import TemporaryDirectory

        from deerflow.mcp.server import McpServer
        from deerflow.mcp.transport import Place, transport_of

        await asyncio.to_thread(self.directory.mkdir, parents=True, exist_ok=True)
        async with TemporaryDirectory(dir=str(self.directory), prefix="test-", ignore_cleanup_errors=True) as directory:
            # A program must not share its sandbox with the one that runs; a rotated token must not be lost.
            own, home = (secrets.token_hex(8), Path(directory)) if entry.type == "stdio" else (name, self.directory)
            place = Place(home, self.key_file, provider, config.sandbox)
            server = McpServer(name, entry, partial(transport_of, own, entry, place, None))
            task = asyncio.create_task(server.run(), name=f"mcp test of {name}")
            try:
                await server.tried.wait()
                state, error, tools = server.state, server.error, _shown(entry, server.tools)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        return {"state": state, "error": error, "tools": tools, "log": list(server.log)}

    async def _stop(self, keys: list[Key]) -> None:
        ended = [self._running.pop(key) for key in keys]
        tasks = [one.task for one in ended]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if calls := [call.task for one in ended for call in one.server.calls if call.task]:
            await asyncio.wait(calls, timeout=1)  # which end by themselves when their session has

    async def _settle(self, config: AppConfig, user_id: str) -> None:
        clock = asyncio.get_running_loop().time
        until = max((one.began for one in self._of_person(config, user_id)), default=0.0) + FIRST_SECONDS
        while waiting := [one.server for one in self._of_person(config, user_id) if not one.server.tried.is_set()]:
            tries = {asyncio.ensure_future(server.tried.wait()): server for server in waiting}
            done, left = await asyncio.wait(tries, timeout=max(0, until - clock()), return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
            if not done:
                return
            if any(tries[task].state == "ready" for task in done):
                until = clock() + GRACE_SECONDS

    def _tools_of(self, running: _Running) -> tuple[BaseTool, ...]:
        from deerflow.mcp.tools import tools_of

        server, interceptors = running.server, self._interceptors[1]
        if server.state == "failed":
            return ()
        version = (server.generation, id(interceptors))
        if running.tools[0] != version:
            # People with the same tools share them, and so their agents.
            alike = (one.tools for one in self._running.values() if _offers_same(one, running))
            made = next((tools for of, tools in alike if of and of[1] == version[1]), None)
            made = made or tools_of(server, self, interceptors)
            running.tools = version, made
        return running.tools[1]

    def _found(self, name: str, user_id: str) -> _Running | None:
        return self._running.get((name, user_id)) or self._running.get((name, ""))

    def _of(self, name: str, user_id: str) -> _Running:
        if (running := self._found(name, user_id)) is None:
            raise NotFoundError(f"There is no MCP server {name!r} that is on.")
        return running


async def _load() -> None:
    """What costs seconds the first time."""
    for module in ("deerflow.mcp.tools", "deerflow.mcp.transport", "jsonschema"):
        await asyncio.to_thread(import_module, module)


def _key(name: str, entry: McpServerConfig, user_id: str) -> Key:
    return name, user_id if entry.is_own else ""


def _opened_by(entry: McpServerConfig, sandbox: SandboxConfig) -> object:
    """What a session depends on: others of its settings change while it goes on."""
    is_sandboxed = entry.type == "stdio" and entry.isolation == "sandbox"
    fixed = entry.model_copy(update={"tools": {}, "description": "", "timeout": 0})
    return fixed, sandbox if is_sandboxed else None


def _offers_same(one: _Running, other: _Running) -> bool:
    """As far as ``one`` has made its tools."""
    of = one.tools[0]
    return (
        (one.server.name, one.server.config) == (other.server.name, other.server.config)
        and of is not None
        and of[0] == one.server.generation
        and one.server.tools == other.server.tools
    )


def _state(name: str, entry: McpServerConfig, running: _Running | None, is_connected: bool) -> McpServerState:
    server = running.server if running is not None else None
    return {
        "name": name,
        "type": entry.type,
        "description": entry.description,
        "state": server.state if server else "off",
        "since": server.since.isoformat() if server else None,
        "error": server.error if server else "",
        "connection": ("connected" if is_connected else "needed") if entry.is_own else None,
        "tools": _shown(entry, server.tools if server else ()),
    }


def _shown(entry: McpServerConfig, tools: Iterable[Tool]) -> list[McpTool]:
    return [
        {
            "name": tool.name,
            "description": tool.description or "",
            "read_only": bool(tool.annotations and tool.annotations.read_only_hint),
            "enabled": entry.tool(tool.name).enabled,
            "policy": entry.tool(tool.name).policy,
        }
        for tool in tools
    ]
