"""All servers of the configuration, on an event loop of their own, so that agents of any loop can call them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from deerflow.config import AppConfig
from deerflow.config.schema import McpServerConfig, SandboxConfig
from deerflow.errors import NotFoundError
from deerflow.features.mcp import COMMAND, McpPrompt, Reason
from deerflow.features.mcp.connections import McpConnections
from deerflow.features.mcp.definitions import ServerOffer, names_of, offer_of
from deerflow.features.mcp.pins import McpChange, Pins
from deerflow.features.mcp.rows import McpConnectionRepository, McpPinRepository
from deerflow.features.mcp.states import McpServerState, McpTool, state_of, tools_shown
from deerflow.sandbox.interface import SandboxProvider
from deerflow.sandbox.spawner import Spawner
from deerflow.security.outbound import Outbound
from deerflow.security.text import inline
from deerflow.storage.database import Database
from deerflow.tools import OWN_NAMES

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

    from deerflow.features.mcp.files import ThreadFiles
    from deerflow.features.mcp.questions import OpenCall
    from deerflow.features.mcp.server import McpServer
    from deerflow.features.mcp.tools import Interceptor, OfferedTool
    from deerflow.features.mcp.transport import ProgramPlace

GRACE_SECONDS = 0.5
"""A run waits so long for further servers when one has become ready."""
FIRST_SECONDS = 5.0
"""A run waits so long for the first one."""
MAX_THREADS = 8
"""Programs that work on threads' files at a time; each holds a sandbox. The one that was idle longest makes room."""
THREAD_SECONDS = 900.0
"""Such a program ends after so long without a call."""
IDLE_SECONDS = 3600.0
"""A person's session that was not used for so long ends; the next run opens another."""


class McpTrial(TypedDict):
    """``state``: ready or failed, with ``error``, ``reason`` and ``values`` as in :class:`McpServerState`. ``log``: what the server has written, and what went wrong."""

    state: str
    error: str
    reason: Reason | None
    values: dict[str, str]
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
    offers: tuple[int, ServerOffer] = (-1, ServerOffer())
    """Of which generation, and what it offers."""
    seen: int = -1
    """The generation whose definitions are recorded."""
    tools: tuple[object, tuple[BaseTool, ...]] = (None, ())
    """What the tools were made of, and the tools."""

    @property
    def offer(self) -> ServerOffer:
        if self.offers[0] != self.server.generation:
            self.offers = self.server.generation, offer_of(self.server.config, self.server.tools)
        return self.offers[1]


Key = tuple[str, str]
"""A server's name, and whose session it is: a person's, or of a thread (by the id of its sandbox); empty: everybody's."""


@dataclass
class McpServers:
    """Nothing is imported or started while no server is configured.

    Args:
        directory: where servers that run in sandboxes have their homes.
        key_file: encrypts tokens.
        connections: of people, to servers that want one of each person. None: there are none.
        pins: definitions of tools that trust holds for.
    """

    directory: Path
    key_file: Path
    connections: McpConnections | None = None
    pins: Pins = field(default_factory=Pins)
    _spawner: Spawner = field(default_factory=Spawner, repr=False)
    _running: dict[Key, _Running] = field(default_factory=dict[Key, _Running])
    _interceptors: tuple[tuple[str, ...], list[Interceptor]] = ((), [])
    _open: dict[str, OpenCall] = field(default_factory=dict[str, "OpenCall"])
    """Calls on their way."""
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _place: ProgramPlace | None = None
    """The place of programs when servers were started last."""

    def keep(self, database: Database, outbound: Outbound) -> None:
        """Keep connections of people, and definitions that trust holds for, in a database. ``outbound``: which addresses may be asked."""
        self.connections = McpConnections(McpConnectionRepository(database), self.key_file, outbound)
        self.pins = Pins(McpPinRepository(database))

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
        names = self._names(config)
        found: list[McpServerState] = []
        for name, entry in config.extensions.mcp_servers.items():
            running = self._running.get(_key(name, entry, user_id))
            tools = tools_shown(name, entry, running.server.tools, running.offer, self.pins, names) if running else []
            server, changes = running.server if running else None, len(self.changes(name, entry))
            found.append(state_of(name, entry, server, tools, is_connected=name in mine, changes=changes))
        return found

    def changes(self, name: str, entry: McpServerConfig) -> list[McpChange]:
        """Return the definitions of a server that wait for an administrator: of all people's sessions with it."""
        running = [one for (server, _), one in list(self._running.items()) if server == name]
        offered = {one.digest for each in running for one in each.offer.definitions}
        return self.pins.waiting(name, None if entry.is_own else offered)

    async def accept(self, name: str, digests: Collection[str]) -> None:
        """Rely on definitions that have changed. Raises ConflictError: one of them is not waiting."""
        await self._spawner.call(self.pins.accept(name, digests))

    async def forget(self, names: Sequence[str]) -> None:
        """Forget what was pinned of servers whose entries were deleted."""
        await self._spawner.call(self.pins.forget(names))

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
        from deerflow.features.mcp.server import arguments_of, text_of

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
        server = self._of(name, user_id).server
        await self._spawner.call(self._stop([key for key in self._running if key[0] == name and _is_of_thread(key)]))
        await self._spawner.call(server.restart())

    async def trial(self, name: str, entry: McpServerConfig, config: AppConfig, provider: SandboxProvider) -> McpTrial:
        """Open a session with a server that need not be configured, and close it. What a program writes to its home is gone then."""
        return await self._spawner.call(self._trial(name, entry, config, provider))

    def log(self, name: str, user_id: str = "") -> list[str]:
        """What the server has written to its standard error, and what went wrong with it. Raises NotFoundError."""
        return list(self._of(name, user_id).server.log)

    async def begin(
        self,
        name: str,
        user_id: str,
        key: str,
        tool: str,
        arguments: dict[str, Any],
        call: OpenCall,
        digest: str | None = None,
        files: ThreadFiles | None = None,
    ) -> CallToolResult | ElicitRequestParams:
        """Call a tool, in the session of the person or the thread where the server wants that: its result, or what the server asks.

        Args:
            key: by which a call that asks is found again.
            digest: of the definition that the call was judged by; None: of any.
            files: of the thread.

        Raises:
            McpCallError: there is no result, or the tool has another definition now.
        """
        from deerflow.features.mcp.server import McpCallError

        async def begin() -> CallToolResult | ElicitRequestParams:
            running = self._found(name, user_id)
            if running is not None and running.server.config.thread_files:
                running = await self._of_thread(running, files)
            if running is None:
                raise McpCallError(f"The MCP server {name} is not connected any more.")
            if digest is not None and all(one.digest != digest for one in running.offer.definitions):
                raise McpCallError(
                    f"The call was not made: the MCP server {name} offers another tool under this name since this run began. "
                    "The user's next message works with the new one."
                )
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
        present = self._of_person(config, user_id)
        for running in present:
            if running.seen != running.server.generation:
                generation = running.server.generation
                await self.pins.see(running.server.name, running.offer)
                running.seen = generation
        if any(self.pins.change_of(one.server.name, each) for one in present for each in one.offer.definitions):
            await self.pins.refresh()
        names = self._names(config)
        return tuple(tool for running in present for tool in self._tools_of(running, names))

    def _names(self, config: AppConfig) -> dict[tuple[str, str], str]:
        """How agents call the tools of configured servers, also of those that are down or off."""
        servers = config.extensions.mcp_servers
        running = ((name, one) for (name, _), one in list(self._running.items()) if name in servers)
        offered = {(name, each.tool.name) for name, one in running for each in one.offer.definitions}
        own = OWN_NAMES | {tool.name for tool in config.tools if "name" in vars(tool)}
        return names_of(self.pins.tools(servers) | offered, own)

    async def _apply(self, config: AppConfig, provider: SandboxProvider, user_id: str, mine: set[str]) -> None:
        entries = config.extensions.enabled_mcp_servers
        now = asyncio.get_running_loop().time()
        own = {name for name, entry in entries.items() if entry.is_own}
        keys = [_key(name, entry, user_id) for name, entry in entries.items() if name in mine or name not in own]
        keys += [
            (name, whose)
            for (name, whose), one in self._running.items()
            if name in own
            and not _is_of_thread((name, whose))
            and whose not in ("", user_id)
            and (now - one.used < IDLE_SECONDS or one.server.calls)
        ]
        keys += [
            key
            for key, one in self._running.items()
            if _is_of_thread(key) and key[0] in entries and (now - one.used < THREAD_SECONDS or one.server.calls)
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
        from deerflow.features.mcp.tools import interceptors_of
        from deerflow.features.mcp.transport import ProgramPlace

        if (paths := config.extensions.mcp_interceptors) != self._interceptors[0]:
            self._interceptors = paths, await asyncio.to_thread(interceptors_of, paths)
        self._place = ProgramPlace(self.directory, self.key_file, provider, config.sandbox)
        for key in new:
            name, whose = key
            entry = entries[name]
            header = partial(self.connections.header, whose, name, entry) if whose and self.connections else None
            self._start(key, entry, wanted[key], self._place, header=header)

    def _start(
        self,
        key: Key,
        entry: McpServerConfig,
        made_for: object,
        place: ProgramPlace,
        *,
        header: Any = None,
        files: Any = None,
    ) -> _Running:
        from deerflow.features.mcp.server import McpServer
        from deerflow.features.mcp.transport import transport_of

        now = asyncio.get_running_loop().time()
        server = McpServer(key[0], entry, partial(transport_of, key[0], entry, place, header, files=files))
        task = asyncio.create_task(server.run(), name=f"mcp {key[0]}")
        self._running[key] = _Running(server, task, made_for, now, now)
        return self._running[key]

    async def _of_thread(self, known: _Running, files: ThreadFiles | None) -> _Running:
        """Return the session of a thread with a server that works on its files; open it if need be. Raises McpCallError."""
        from deerflow.features.mcp.server import PROGRAM_SECONDS, McpCallError

        name, place = known.server.name, self._place
        if files is None or place is None:
            raise McpCallError(f"The MCP server {name} works on the files of a thread, and there are none here.")
        key = name, files.owner
        if (running := self._running.get(key)) is None:
            idle = [
                (one.used, each) for each, one in self._running.items() if _is_of_thread(each) and not one.server.calls
            ]
            count = sum(map(_is_of_thread, self._running))
            running = self._start(key, known.server.config, known.made_for, place, files=files)
            await self._stop([each for _, each in sorted(idle)[: max(0, count + 1 - MAX_THREADS)]])
        with suppress(TimeoutError):
            async with asyncio.timeout(PROGRAM_SECONDS):
                await running.server.tried.wait()
        return running

    async def _trial(self, name: str, entry: McpServerConfig, config: AppConfig, provider: SandboxProvider) -> McpTrial:
        await _load()
        from anyio import TemporaryDirectory

        from deerflow.features.mcp.server import McpServer
        from deerflow.features.mcp.transport import ProgramPlace, transport_of

        await asyncio.to_thread(self.directory.mkdir, parents=True, exist_ok=True)
        async with TemporaryDirectory(dir=str(self.directory), prefix="test-", ignore_cleanup_errors=True) as directory:
            # A program must not share its sandbox with the one that runs; a rotated token must not be lost.
            own, home = (secrets.token_hex(8), Path(directory)) if entry.type == "stdio" else (name, self.directory)
            place = ProgramPlace(home, self.key_file, provider, config.sandbox)
            server = McpServer(name, entry, partial(transport_of, own, entry, place, None))
            task = asyncio.create_task(server.run(), name=f"mcp test of {name}")
            try:
                await server.tried.wait()
                state, error, reason, values = server.state, server.error, server.reason, server.values
                tools = tools_shown(name, entry, server.tools, offer_of(entry, server.tools))
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        log = list(server.log)
        return {"state": state, "error": error, "reason": reason, "values": values, "tools": tools, "log": log}

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

    def _tools_of(self, running: _Running, names: Mapping[tuple[str, str], str]) -> tuple[BaseTool, ...]:
        from deerflow.features.mcp.tools import tools_of

        server, interceptors = running.server, self._interceptors[1]
        if server.state == "failed":
            return ()
        offered = _offered(server.name, running.offer, self.pins, names)
        made_of = (
            server.name,
            server.config,
            id(interceptors),
            [(one.definition.digest, one.called, one.change) for one in offered],
        )
        if running.tools[0] != made_of:
            # People with the same tools share them, and so their agents.
            alike = (one.tools[1] for one in self._running.values() if one.tools[0] == made_of)
            made = next(alike, None)
            running.tools = made_of, made or tools_of(server.name, server.config, offered, self, interceptors)
        return running.tools[1]

    def _found(self, name: str, user_id: str) -> _Running | None:
        return self._running.get((name, user_id)) or self._running.get((name, ""))

    def _of(self, name: str, user_id: str) -> _Running:
        if (running := self._found(name, user_id)) is None:
            raise NotFoundError(f"There is no MCP server {name!r} that is on.")
        return running


async def _load() -> None:
    """What costs seconds the first time."""
    for module in ("deerflow.features.mcp.tools", "deerflow.features.mcp.transport", "jsonschema"):
        await asyncio.to_thread(import_module, module)


def _is_of_thread(key: Key) -> bool:
    return ":" in key[1]  # in no person's id, but in that of each sandbox


def _key(name: str, entry: McpServerConfig, user_id: str) -> Key:
    return name, user_id if entry.is_own else ""


def _opened_by(entry: McpServerConfig, sandbox: SandboxConfig) -> object:
    """What a session depends on: others of its settings change while it goes on."""
    is_sandboxed = entry.type == "stdio" and entry.isolation == "sandbox"
    fixed = entry.model_copy(update={"tools": {}, "description": "", "timeout": 0, "trusted": False})
    return fixed, sandbox if is_sandboxed else None


def _offered(name: str, offer: ServerOffer, pins: Pins, names: Mapping[tuple[str, str], str]) -> list[OfferedTool]:
    from deerflow.features.mcp.tools import OfferedTool

    return [OfferedTool(one, names[name, one.tool.name], pins.change_of(name, one)) for one in offer.definitions]
