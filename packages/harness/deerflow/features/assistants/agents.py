"""Custom agents of a person, in versions.

A person's own are assistants in the database, so that every process and every SDK sees them. Those that files define belong to
the installation; what a person changes of one becomes the person's own.
"""

from __future__ import annotations

import asyncio
import builtins
import difflib
import shutil
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import yaml
from pydantic import ValidationError
from typing_extensions import TypedDict

from deerflow.capability import Capability
from deerflow.config import AppConfig, Paths
from deerflow.config.agents import AGENT_FILE, MAX_SOUL_CHARS, SOUL_FILE, AgentConfig, agents_of_files
from deerflow.config.document import write_text
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from deerflow.features.assistants.custom_agents import CustomAgents
from deerflow.features.assistants.rows import Assistant, AssistantQuery, AssistantRepository
from deerflow.identity import Principal, check_agent_name
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import LEAD_AGENT
from deerflow.subagents import subagents_of

NAMESPACE = UUID("9a4f7d3e-3a52-5c0f-8a35-6d0f1c6f9b11")
"""Of the ids of assistants that have a name: the lead agent and custom agents."""


CREATED_BY = {"created_by": "agents"}
"""Metadata of assistants that are custom agents."""
MOST_AGENTS = 1000
RESERVED = frozenset({"agent", "check", "default", "lead-agent"})


class AgentVersion(TypedDict):
    """``author``: ``human`` or ``agent``; ``thread_id``: the conversation in which the agent made it. ``diff``: to the one before."""

    version: int
    is_current: bool
    created_at: datetime
    author: str
    thread_id: str | None
    diff: str


class AgentChoices(TypedDict):
    """Names of the configuration's groups of tools, and of its subagents."""

    tool_groups: list[str]
    subagents: list[str]


class AgentService(Capability):
    """Args:
    config: the snapshot now in force.
    forget: deletes what an agent remembers of a person.
    """

    name = "agents"

    def __init__(
        self,
        database: Database,
        paths: Paths,
        config: Callable[[], Awaitable[AppConfig]],
        forget: Callable[[Principal, Mapping[str, Any], str], Awaitable[Any]],
    ) -> None:
        self._rows = AssistantRepository(database)
        self._paths = paths
        self._config = config
        self._forget = forget

    def for_run(self, principal: Principal, thread_id: str, agent: str) -> CustomAgents:
        async def save(name: str | None, changes: Mapping[str, Any]) -> str:
            return await self.save(principal, name, changes, thread_id)

        return CustomAgents(save)

    async def list(self, principal: Principal) -> list[AgentConfig]:
        """By name."""
        found = await self.of_files(principal) | {agent.name: agent for agent in await self.own(principal)}
        return [agent for _, agent in sorted(found.items())]

    async def own(self, principal: Principal) -> builtins.list[AgentConfig]:
        """Those in the database."""
        query = AssistantQuery(metadata=CREATED_BY)
        rows, _ = await self._rows.search(principal, query, ListPage(MOST_AGENTS))
        return [agent_of(row) for row in rows]

    async def of_files(self, principal: Principal) -> dict[str, AgentConfig]:
        """Those that files define, by name."""
        return await asyncio.to_thread(agents_of_files, self._paths, principal.user_id)

    async def find(self, principal: Principal, name: str) -> AgentConfig | None:
        """Raises InvalidRequestError: the name cannot be one."""
        return (await self._found(principal, name))[1]

    async def _found(self, principal: Principal, name: str) -> tuple[Assistant | None, AgentConfig | None]:
        """Its row, if the database has one, and the agent."""
        if (row := await self._row(principal, name)) is not None:
            return row, agent_of(row)
        return None, (await self.of_files(principal)).get(_name(name))

    async def _known(self, principal: Principal, name: str) -> tuple[Assistant | None, AgentConfig]:
        """Raises NotFoundError."""
        row, agent = await self._found(principal, name)
        if agent is None:
            raise NotFoundError(f"Agent {_name(name)!r} not found")
        return row, agent

    async def choices(self) -> AgentChoices:
        """What agents can be given, by name."""
        config = await self._config()
        return {"tool_groups": sorted(_groups(config)), "subagents": sorted(subagents_of(config))}

    async def get(self, principal: Principal, name: str) -> AgentConfig:
        """Raises NotFoundError, InvalidRequestError: the name cannot be one."""
        return (await self._known(principal, name))[1]

    async def is_free(self, principal: Principal, name: str) -> bool:
        """Whether an agent can be called so. Raises InvalidRequestError: nobody's can."""
        return _name(name) not in RESERVED and await self.find(principal, name) is None

    async def create(self, principal: Principal, given: Mapping[str, Any], **made: Any) -> AgentConfig:
        """Args: made: ``author`` and ``thread_id`` of the version.

        Raises:
            ConflictError: there is one of that name.
            InvalidRequestError: something of it cannot be; says what.
        """
        agent = await self._valid(given)
        if not await self.is_free(principal, agent.name):
            raise ConflictError(f"Agent {agent.name!r} already exists", code="agent_exists", name=agent.name)
        await self._rows.create(principal, _assistant(principal, agent, **made))
        return agent

    async def change(self, principal: Principal, name: str, changes: Mapping[str, Any], **made: Any) -> AgentConfig:
        """What is left out stays, and a ``soul`` of None. Raises NotFoundError, InvalidRequestError."""
        row, before = await self._known(principal, name)
        given = {key: value for key, value in changes.items() if key != "soul" or value is not None}
        agent = await self._valid({**before.model_dump(), **given, "name": before.name})
        if agent == before:
            return agent
        if row is None:
            await self._rows.create(principal, _assistant(principal, before))
        new = _assistant(principal, agent, **made)
        fields = {"description": new.description, "metadata": new.metadata}
        await self._rows.update(principal, new.assistant_id, fields)
        return agent

    async def save(
        self, principal: Principal, name: str | None, changes: Mapping[str, Any], thread_id: str | None
    ) -> str:
        """What an agent says of a custom agent, or of the default one (None). Returns what became of it. Raises like :meth:`change`."""
        made = {"author": "agent", "thread_id": thread_id}
        if name is None:
            await asyncio.to_thread(self._write_soul, principal, str(changes.get("soul") or ""))
            return "Saved. It counts from the next turn on, in all conversations with the default agent."
        if await self.find(principal, name) is None:
            agent = await self.create(principal, {**changes, "name": name}, **made)
        else:
            agent = await self.change(principal, name, changes, **made)
        return f"Saved the agent {agent.name!r}. It counts from the next turn on."

    async def delete(self, principal: Principal, name: str) -> None:
        """With its versions and what it remembers. Raises NotFoundError; ForbiddenError: it belongs to the installation."""
        name = _name(name)
        own, row = self._paths.user_agents_dir(principal.user_id) / name, await self._row(principal, name)
        is_file = await asyncio.to_thread((own / AGENT_FILE).is_file)
        if row is None and not is_file:
            await self.get(principal, name)
            place = self._paths.agent_dir(name)
            raise ForbiddenError(f"Agent {name!r} belongs to the installation: its administrator can remove {place}.")
        if row is not None:
            await self._rows.delete(principal, row.assistant_id)
        if is_file:
            await asyncio.to_thread(self._paths.remove, own)
        await self._forget(principal, {}, name)

    async def versions(self, principal: Principal, name: str) -> builtins.list[AgentVersion]:
        """Newest first; none for an agent that is as its files say. Raises NotFoundError."""
        row, _ = await self._known(principal, name)
        if row is None:
            return []
        rows = await self._rows.versions(principal, row.assistant_id, page=ListPage(MOST_AGENTS))
        texts = [*map(text_of, map(agent_of, rows)), ""]
        return [
            AgentVersion(
                version=each.version,
                is_current=each.version == row.version,
                created_at=each.updated_at,
                author=each.metadata.get("author") or "human",
                thread_id=each.metadata.get("thread_id"),
                diff="\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")),
            )
            for each, after, before in zip(rows, texts, texts[1:], strict=False)
        ]

    async def rollback(self, principal: Principal, name: str, version: int) -> AgentConfig:
        """Make a former version the current one; the later ones stay. Raises NotFoundError."""
        if (row := await self._row(principal, name)) is None:
            raise NotFoundError(f"Agent {_name(name)!r} has no versions")
        return agent_of(await self._rows.set_latest(principal, row.assistant_id, version))

    async def profile(self, principal: Principal) -> str | None:
        """USER.md; None: there is none."""
        file = self._paths.user_profile_file(principal.user_id)
        return await asyncio.to_thread(lambda: file.read_text("utf-8") if file.is_file() else None)

    async def write_profile(self, principal: Principal, text: str) -> None:
        """Raises InvalidRequestError: it is too long."""
        _check_length("USER.md", text)
        await asyncio.to_thread(self._write, principal, self._paths.user_profile_file(principal.user_id), text)

    async def _row(self, principal: Principal, name: str) -> Assistant | None:
        try:
            return await self._rows.get(principal, agent_id(principal, _name(name)))
        except NotFoundError:
            return None

    async def _valid(self, given: Mapping[str, Any]) -> AgentConfig:
        """Raises InvalidRequestError: it names what is not there."""
        try:
            agent = AgentConfig.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            what = first["msg"].removeprefix("Value error, ")
            raise InvalidRequestError(f"{'.'.join(map(str, first['loc']))}: {what}") from error
        config = await self._config()
        for key, named, known in (
            ("model", [agent.model] if agent.model else [], [model.name for model in config.models]),
            ("tool_groups", agent.tool_groups or [], _groups(config)),
            ("subagents", agent.subagents or [], subagents_of(config)),
        ):
            if unknown := sorted(set(named) - set(known)):
                there = ", ".join(sorted(known)) or "none"
                raise InvalidRequestError(f"{key}: there is no {unknown[0]!r}. There is: {there}.")
        return agent

    def _write_soul(self, principal: Principal, soul: str) -> None:
        """The former text is kept beside it."""
        _check_length(SOUL_FILE, soul)
        file = self._paths.user_soul_file(principal.user_id)
        if file.is_file():
            shutil.copyfile(file, file.with_name(f"{SOUL_FILE}.bak"))
        self._write(principal, file, soul)

    def _write(self, principal: Principal, file: Any, text: str) -> None:
        self._paths.ensure_skills_dir(principal.user_id)
        write_text(file, text, 0o600)


def _groups(config: AppConfig) -> set[str]:
    """Of tools."""
    return {group.name for group in config.tool_groups} | {tool.group for tool in config.tools}


def agent_id(principal: Principal, name: str) -> str:
    """Of the assistant that a person's custom agent is."""
    return str(uuid5(NAMESPACE, f"agent/{principal.user_id}/{name}"))


def agent_of(row: Assistant) -> AgentConfig:
    """The agent that an assistant is."""
    return AgentConfig.model_validate({"description": row.description, **row.metadata["agent"], "name": row.name})


def text_of(agent: AgentConfig) -> str:
    """It as the two files say it."""
    given = agent.model_dump(mode="json", exclude={"soul"}, exclude_defaults=True)
    return (
        f"# {AGENT_FILE}\n{yaml.safe_dump(given, sort_keys=False, allow_unicode=True)}\n# {SOUL_FILE}\n{agent.soul}\n"
    )


def _assistant(
    principal: Principal, agent: AgentConfig, *, author: str = "human", thread_id: str | None = None
) -> Assistant:
    now, definition = utc_now(), agent.model_dump(mode="json", exclude_defaults=True, exclude={"name", "description"})
    return Assistant(
        assistant_id=agent_id(principal, agent.name),
        graph_id=LEAD_AGENT,
        version=1,
        name=agent.name,
        description=agent.description,
        config={},
        context={"agent_name": agent.name},
        metadata={**CREATED_BY, "agent": definition, "author": author, "thread_id": thread_id},
        created_at=now,
        updated_at=now,
    )


def _name(name: str) -> str:
    try:
        return check_agent_name(name.replace("_", "-")).lower()
    except ValueError as error:
        raise InvalidRequestError(str(error), reason="agent_id_invalid") from error


def _check_length(what: str, text: str) -> None:
    if len(text) > MAX_SOUL_CHARS:
        message = f"{what} may have {MAX_SOUL_CHARS:,} characters; this has {len(text):,}."
        raise InvalidRequestError(message, reason="text_too_long", limit=MAX_SOUL_CHARS, count=len(text))
