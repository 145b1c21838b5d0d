"""Things that deer-flow keeps in files: memory, agents, skills, what people wrote about themselves, MCP servers, conversations of channels."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deerflow.config.agents import AGENT_FILE, SOUL_FILE
from deerflow.config.document import ConfigError, parse_yaml, read_text
from deerflow.errors import ConflictError, RequestError
from deerflow.features.skills.installer import pack
from deerflow.identity import ID_PATTERN, LOCAL_PRINCIPAL, Principal
from deerflow.runtime import Runtime
from deerflow_app.moving_in.deer_flow_home import DEFAULT_USER, ORIGIN, DeerFlowHome, json_object, text_of
from deerflow_app.moving_in.deer_flow_memory import NO_AGENT, FormerMemory, memories
from deerflow_app.moving_in.report import MoveReport

FACTS, AGENTS, SKILLS, SERVERS = "facts", "agents", "skills", "MCP servers"
CONVERSATIONS = "channel conversations"
_OF_AGENTS = ("description", "model", "tool_groups", "skills", "thinking_enabled", "reasoning_effort")
_OF_SERVERS = ("type", "command", "args", "env", "url", "headers", "oauth", "description")
"""Keys of an MCP server's entry that come: neither trust nor policies of its tools."""


class FileImport:
    def __init__(self, home: DeerFlowHome, runtime: Runtime, report: MoveReport, *, dry_run: bool) -> None:
        self._home = home
        self._runtime = runtime
        self._report = report
        self._dry_run = dry_run

    async def all(self, people: Mapping[str, Principal], agents: list[dict[str, Any]]) -> None:
        """Args: agents: rows of the table of agents, which later versions may keep them in."""
        for user in sorted({*await asyncio.to_thread(self._home.users), *filter(ID_PATTERN.fullmatch, people)}):
            if (owner := people.get(user)) is None:
                self._report.add("directories of users", "not", user, "no account of that id comes.")
                continue
            own = [row for row in agents if str(row.get("user_id") or DEFAULT_USER) == user]
            await self._agents(
                owner, await asyncio.to_thread(lambda user=user, own=own: [*self._found_agents(user, own)])
            )
            for memory in await asyncio.to_thread(lambda user=user: [*memories(self._home, user)]):
                await self._memory(owner, memory)
            await self._skills(owner, user)
            await self._persona(owner, user)
        await self._servers()
        await self._conversations({owner.user_id for owner in people.values()})

    async def _attempt(self, kind: str, name: str, work: Callable[[], Awaitable[str]]) -> None:
        """Do ``work``, which returns what to know of the thing, and count what came of it."""
        try:
            self._report.add(kind, "came", name, await work())
        except ConflictError:
            self._report.add(kind, "there")
        except (RequestError, ConfigError, OSError, ValueError) as error:
            self._report.add(kind, "not", name, str(error))

    # memory ---------------------------------------------------------------------------------------------------------

    async def _memory(self, owner: Principal, memory: FormerMemory) -> None:
        name = memory.agent or ""
        for broken in memory.broken:
            self._report.add(FACTS, "not", broken, "it cannot be read.")
        if memory.ended:
            self._report.add(FACTS, "not", name, "they had ended.", count=memory.ended)
        service, given = self._runtime.memory, memory.document["facts"]
        try:
            if self._dry_run:
                known = {fact["id"] for fact in (await service.document(owner, memory.agent))["facts"]}
                waiting, came = [], sum(fact.get("id") not in known for fact in given)
            else:
                added = await service.take_in(owner, memory.document, ORIGIN, memory.agent)
                waiting, came = [fact for fact in added if fact.untrusted is not None], len(added)
        except (RequestError, ValueError) as error:
            return self._report.add(FACTS, "not", name, str(error), count=len(given))
        why = f"{len(waiting)} wait until they are confirmed in Settings, Memory." if waiting else ""
        self._report.add(FACTS, "came", name, why, count=came)
        self._report.add(FACTS, "there", count=len(given) - came)

    # agents ---------------------------------------------------------------------------------------------------------

    def _found_agents(self, user: str, own: list[dict[str, Any]]) -> Iterator[tuple[str, Any, str]]:
        """Yield name, configuration (or why there is none) and SOUL.md. Blocks."""
        for row in own:
            config = row.get("config")
            yield (
                str(row.get("name")),
                json_object(config) if isinstance(config, str) else {},
                str(row.get("soul") or ""),
            )
        for place in self._home.user_dirs(user):
            for file in sorted((place / "agents").glob(f"*/{AGENT_FILE}")):
                if file.parent.name == NO_AGENT:
                    continue
                try:
                    config: Any = parse_yaml(read_text(file), file).data
                except (ConfigError, OSError) as error:
                    config = str(error)
                yield file.parent.name, config, text_of(file.with_name(SOUL_FILE)) or ""

    async def _agents(self, owner: Principal, found: list[tuple[str, Any, str]]) -> None:
        by_name = {name: (config, soul) for name, config, soul in reversed(found)}  # rows count more than files
        for name, (config, soul) in by_name.items():
            await self._attempt(
                AGENTS, name, lambda name=name, config=config, soul=soul: self._agent(owner, name, config, soul)
            )

    async def _agent(self, owner: Principal, name: str, config: Any, soul: str) -> str:
        if not isinstance(config, dict):
            raise ValueError(config)
        agents = self._runtime.agents
        if await agents.find(owner, name) is not None:
            raise ConflictError("It is there.")
        given = {key: value for key, value in config.items() if key in _OF_AGENTS and value is not None}
        notes: list[str] = []
        models = [model.name for model in (await self._runtime.config_source.acurrent()).models]
        if given.get("model") and given["model"] not in models:
            notes.append(f"without its model {given.pop('model')!r}, which is not configured here.")
        groups = (await agents.choices())["tool_groups"]
        if isinstance(wanted := given.get("tool_groups"), list):
            named = [str(group) for group in wanted]
            given["tool_groups"] = [group for group in named if group in groups]
            if lost := [group for group in named if group not in groups]:
                notes.append(f"without the groups of tools {', '.join(lost)}, which are not here.")
        if not self._dry_run:
            try:
                await agents.create(owner, {**given, "name": name, "soul": soul})
            except ConflictError as error:  # a name that is taken by the product
                raise ValueError(str(error)) from error
        return " ".join(notes)

    # skills ---------------------------------------------------------------------------------------------------------

    async def _skills(self, owner: Principal, user: str) -> None:
        places = [self._home.directory / "users" / user / "skills" / "custom"]
        if user == DEFAULT_USER:
            places += [self._home.root / "skills" / "custom", self._home.directory / "skills" / "custom"]
        folders = await asyncio.to_thread(
            lambda: {
                path.name: path for place in reversed(places) for path in sorted(place.glob("*/")) if path.is_dir()
            }
        )
        for name, folder in folders.items():
            await self._attempt(SKILLS, name, lambda name=name, folder=folder: self._skill(owner, name, folder))

    async def _skill(self, owner: Principal, name: str, folder: Path) -> str:
        if await asyncio.to_thread((self._runtime.paths.user_skills_dir(owner.user_id) / "custom" / name).exists):
            raise ConflictError("It is there.")
        packed = await asyncio.to_thread(pack, folder)
        if self._dry_run:
            return ""
        state = (self._home.extensions.get("skills") or {}).get(name) or {}
        was_on = state.get("enabled", True) is not False
        done = await self._runtime.skills.install(owner, packed, enable=was_on)
        installed = await self._runtime.skills.get(owner, done["skill_name"])
        return "" if installed["enabled"] else "it is off until you have looked at it."

    # what people wrote for agents -----------------------------------------------------------------------------------

    async def _persona(self, owner: Principal, user: str) -> None:
        agents, paths = self._runtime.agents, self._runtime.paths

        async def soul(text: str) -> None:
            await agents.save(owner, None, {"soul": text}, None)

        async def profile(text: str) -> None:
            await agents.write_profile(owner, text)

        for name, file, write in (
            ("USER.md", paths.user_profile_file(owner.user_id), profile),
            ("SOUL.md", paths.user_soul_file(owner.user_id), soul),
        ):
            texts = await asyncio.to_thread(
                lambda name=name: [text_of(place / name) for place in self._home.user_dirs(user)]
            )
            if (text := next(filter(None, texts), None)) is not None:
                await self._attempt(
                    name, user, lambda text=text, file=file, write=write: self._write(file, text, write)
                )

    async def _write(self, file: Path, text: str, write: Callable[[str], Awaitable[None]]) -> str:
        if await asyncio.to_thread(file.exists):
            raise ConflictError("It is there.")
        if not self._dry_run:
            await write(text)
        return ""

    # of the installation --------------------------------------------------------------------------------------------

    async def _servers(self) -> None:
        extensions = self._home.extensions
        found = next((extensions[key] for key in ("mcpServers", "mcp_servers") if extensions.get(key)), {})
        for name, entry in found.items() if isinstance(found, dict) else ():
            await self._attempt(SERVERS, str(name), lambda name=name, entry=entry: self._server(str(name), entry))

    async def _server(self, name: str, entry: Any) -> str:
        if not isinstance(entry, dict):
            raise ValueError("its entry cannot be read.")
        service = self._runtime.mcp
        servers = (await service.config(LOCAL_PRINCIPAL))["mcp_servers"]
        if name in servers:
            raise ConflictError("It is there.")
        kept = {key: value for key, value in entry.items() if key in _OF_SERVERS and value not in (None, "", [], {})}
        if not self._dry_run:
            await service.update(LOCAL_PRINCIPAL, {**servers, name: {**kept, "enabled": False}})
        return "it is off until you switch it on."

    async def _conversations(self, owners: set[str]) -> None:
        store = json_object(await asyncio.to_thread(text_of, self._home.directory / "channels" / "store.json"))
        if not store:
            return
        came = 0
        if not self._dry_run:
            service = self._runtime.channels.service
            await service.sync()
            for owner in sorted(owners):
                came += await service.adopt_store(store, owner)
        self._report.add(CONVERSATIONS, "came", count=came)
        if rest := len(store) - came:
            why = "they are here already, or their channel is not set up here: set it up and import again."
            self._report.add(CONVERSATIONS, "not", why=why, count=rest)
