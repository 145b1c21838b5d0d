"""Assistants: the lead agent, the custom agents, and what users made of them with settings of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4, uuid5

from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, ConfigDict, Field

from deerflow.config.agents import AgentConfig
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from deerflow.events.jsonable import HIDDEN_KEYS, plain
from deerflow.features.assistants.agents import CREATED_BY, NAMESPACE, AgentService, agent_id, agent_of
from deerflow.features.assistants.rows import Assistant, AssistantQuery, AssistantRepository
from deerflow.identity import Principal, check_id
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.sql import storable
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import LEAD_AGENT

if TYPE_CHECKING:
    from deerflow.agents.factory import Agent
    from deerflow.runs.request import RunRequest

GRAPHS = {LEAD_AGENT: LEAD_AGENT, "agent": LEAD_AGENT}
"""Names of the graph that clients use. ``agent`` is what many LangGraph clients ask for."""
LEAD_AGENT_ID = str(uuid5(NAMESPACE, LEAD_AGENT))


def assistants_meant(principal: Principal, metadata: Mapping[str, Any]) -> dict[str, str | None]:
    """Which threads clients mean that look for a ``graph_id`` or ``assistant_id``: those of this assistant (None: of any)."""
    meant: dict[str, str | None] = {}
    if isinstance(graph_id := metadata.get("graph_id"), str):
        meant["graph_id"] = None if graph_id in GRAPHS else agent_id(principal, graph_id)
    if isinstance(assistant_id := metadata.get("assistant_id"), str):
        meant["assistant_id"] = LEAD_AGENT_ID if assistant_id in GRAPHS else assistant_id
    return meant


class AssistantRequest(BaseModel):
    """An assistant to be."""

    model_config = ConfigDict(extra="forbid")

    graph_id: str = Field(examples=[LEAD_AGENT])
    assistant_id: str | None = Field(default=None, description="Default: a new UUID.")
    name: str | None = Field(default=None, max_length=256)
    description: str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    if_exists: Literal["raise", "do_nothing"] = "raise"


class AssistantChanges(BaseModel):
    """What is given is changed, the rest stays; metadata is merged."""

    model_config = ConfigDict(extra="forbid")

    graph_id: str | None = None
    name: str | None = Field(default=None, max_length=256)
    description: str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class AssistantService:
    """Built-in assistants are the same for everyone and cannot be changed; others are their maker's alone.

    Args:
        agent: the compiled graph, for drawings and schemas.
        delete_thread: how a thread is deleted, with all that belongs to it.
        agents: the custom agents; each is an assistant, too.
    """

    def __init__(
        self,
        database: Database,
        agent: Callable[[], Awaitable[Agent]],
        delete_thread: Callable[[Principal, str], Awaitable[Any]],
        agents: AgentService,
    ) -> None:
        self._assistants = AssistantRepository(database)
        self._agent = agent
        self._delete_thread = delete_thread
        self._agents = agents
        self._started = utc_now()

    async def resolve(self, principal: Principal, assistant_id: str) -> tuple[Assistant, AgentConfig | None]:
        """What ``assistant_id`` stands for, an id, ``lead_agent``, ``agent`` or the name of a custom agent, and the custom
        agent that it is.

        Raises:
            InvalidRequestError: nothing of the principal's.
        """
        try:
            found = await self.get(principal, assistant_id)
        except NotFoundError as error:
            raise InvalidRequestError(
                f"There is no assistant {assistant_id!r}. Use {LEAD_AGENT}, or an id of POST /api/assistants/search."
            ) from error
        return found, await self._agent_of(principal, found)

    async def merged(self, principal: Principal, request: RunRequest) -> tuple[RunRequest, AgentConfig | None]:
        """Return the request with all that its assistant is configured with, under what it says itself, and the custom agent that it means.

        Raises:
            InvalidRequestError: there is no such assistant or agent.
        """
        assistant, own = await self.resolve(principal, request.assistant_id)
        config = {**(assistant.config or {}), **(request.config or {})}
        configurable = {
            **((assistant.config or {}).get("configurable") or {}),
            **((request.config or {}).get("configurable") or {}),
        }
        context = {**(assistant.context or {}), **(request.context or {})}
        merged = request.model_copy(
            update={
                "assistant_id": assistant.assistant_id,
                "config": {**config, "configurable": configurable},
                "context": context,
            }
        )
        given = merged.configurable()
        if not (name := given.get("agent_name")) or (own is not None and own.name == name):
            return merged, own
        try:
            assistant_id, agent = await self.agent(principal, str(name))
        except InvalidRequestError:
            if given.get("is_bootstrap") is True:
                return merged, None  # it is to be
            raise
        if assistant.assistant_id == LEAD_AGENT_ID:
            merged = merged.model_copy(update={"assistant_id": assistant_id})
        return merged, agent

    async def agent(self, principal: Principal, name: str) -> tuple[str, AgentConfig]:
        """A custom agent, and the assistant's id that it has. Raises InvalidRequestError: there is none of that name."""
        if (found := await self._agents.find(principal, name)) is None:
            raise InvalidRequestError(
                f"There is no agent {name!r}. Make it with POST /api/agents or `deerflow agents`."
            )
        return agent_id(principal, found.name), found

    async def get(self, principal: Principal, assistant_id: str) -> Assistant:
        """By id; the lead agent and custom agents also by name. Raises NotFoundError."""
        if assistant_id in (LEAD_AGENT_ID, *GRAPHS):
            return self._lead_agent()
        name = assistant_id.lower().replace("_", "-")
        for possible in (agent_id(principal, name), assistant_id):
            with suppress(NotFoundError):
                return await self._assistants.get(principal, possible)
        for agent in (await self._agents.of_files(principal)).values():
            if assistant_id == agent_id(principal, agent.name) or name == agent.name:
                return self._of_file(principal, agent)
        raise NotFoundError(f"Assistant {assistant_id} not found.")

    async def create(self, principal: Principal, request: AssistantRequest) -> Assistant:
        """Raises InvalidRequestError for an unknown graph or an id that is none; ConflictError if the id is taken."""
        assistant_id = request.assistant_id or str(uuid4())
        try:
            check_id(assistant_id, "assistant_id")
        except ValueError as error:
            raise InvalidRequestError(str(error)) from error
        now = utc_now()
        new = Assistant(
            assistant_id=assistant_id,
            graph_id=_graph(request.graph_id),
            version=1,
            name=request.name or "Untitled",
            description=request.description,
            config=_settings(request.config),
            context=_settings(request.context),
            metadata=storable(request.metadata or {}),
            created_at=now,
            updated_at=now,
        )
        try:
            with suppress(NotFoundError):
                there = await self.get(principal, assistant_id)
                raise ConflictError(f"Assistant {there.name!r} already exists.")
            return await self._assistants.create(principal, new)
        except ConflictError:
            if request.if_exists == "do_nothing":
                with suppress(NotFoundError):
                    return await self.get(principal, assistant_id)
            raise

    async def update(self, principal: Principal, assistant_id: str, changes: AssistantChanges) -> Assistant:
        """Make a new version, which becomes the latest. Raises NotFoundError, ForbiddenError if it is built in."""
        own = await self._own(principal, assistant_id)
        if CREATED_BY.items() <= own.metadata.items():
            raise ForbiddenError(f"{own.name!r} is a custom agent: change it with PUT /api/agents/{own.name}.")
        if changes.graph_id is not None:
            _graph(changes.graph_id)
        given = changes.model_dump(exclude_unset=True, exclude={"graph_id"})
        # Null only means something for a description.
        new = {name: storable(value) for name, value in given.items() if value is not None or name == "description"}
        for name in new.keys() & {"config", "context"}:
            new[name] = _settings(new[name])
        return await self._assistants.update(principal, own.assistant_id, new)

    async def delete(self, principal: Principal, assistant_id: str, *, delete_threads: bool = False) -> None:
        """Args: delete_threads: those that it last ran on, too.

        Raises:
            NotFoundError; ForbiddenError if it is built in; what deleting a thread raises, and then the assistant stays.
        """
        assistant_id = (await self._own(principal, assistant_id)).assistant_id
        for thread_id in await self._assistants.thread_ids(principal, assistant_id) if delete_threads else ():
            await self._delete_thread(principal, thread_id)
        await self._assistants.delete(principal, assistant_id)

    async def search(
        self,
        principal: Principal,
        query: AssistantQuery,
        page: ListPage = ListPage(),
    ) -> tuple[list[Assistant], int]:
        """A page, and how many there are in all. The built-in ones come first, then the user's in the order asked for.

        Raises:
            InvalidRequestError: an unknown order, or metadata that cannot be searched for.
        """
        query = replace(query, graph_id=GRAPHS.get(query.graph_id or "", query.graph_id))
        built_in = [one for one in await self._all_built_in(principal) if _fits(one, query)]
        first = built_in[page.offset : page.offset + page.limit]
        rest = replace(page, limit=page.limit - len(first), offset=max(0, page.offset - len(built_in)))
        own, total = await self._assistants.search(principal, query, rest)
        return first + own, len(built_in) + total

    async def versions(
        self,
        principal: Principal,
        assistant_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        page: ListPage = ListPage(),
    ) -> list[Assistant]:
        """Newest first. Raises NotFoundError, InvalidRequestError for metadata that cannot be searched for."""
        found = await self.get(principal, assistant_id)
        if self._is_built_in(found):
            return [found][page.offset : page.offset + page.limit]
        return await self._assistants.versions(principal, found.assistant_id, metadata=metadata, page=page)

    async def set_latest(self, principal: Principal, assistant_id: str, version: int) -> Assistant:
        """Raises NotFoundError if there is no such version; ForbiddenError if the assistant is built in."""
        own = await self._own(principal, assistant_id)
        return await self._assistants.set_latest(principal, own.assistant_id, version)

    async def graph(self, principal: Principal, assistant_id: str, *, xray: int | bool = False) -> dict[str, Any]:
        """``{nodes, edges}``; ``xray`` opens subgraphs, as deep as it says."""
        await self.get(principal, assistant_id)
        agent = await self._agent()
        return await asyncio.to_thread(lambda: plain(agent.get_graph(xray=xray).to_json()))

    async def schemas(self, principal: Principal, assistant_id: str) -> dict[str, Any]:
        found = await self.get(principal, assistant_id)
        return {"graph_id": found.graph_id, **await asyncio.to_thread(agent_schemas, await self._agent())}

    async def subgraphs(
        self, principal: Principal, assistant_id: str, *, namespace: str | None = None, recurse: bool = False
    ) -> dict[str, Any]:
        """By namespace. The lead agent has none: its subagents are tools, not nodes."""
        await self.get(principal, assistant_id)
        agent = await self._agent()

        def schemas() -> dict[str, Any]:
            found = agent.get_subgraphs(namespace=namespace, recurse=recurse)
            return {name: agent_schemas(graph) for name, graph in found if isinstance(graph, CompiledStateGraph)}

        return await asyncio.to_thread(schemas)

    async def _own(self, principal: Principal, assistant_id: str) -> Assistant:
        """Raises NotFoundError, ForbiddenError: it is built in."""
        found = await self.get(principal, assistant_id)
        if self._is_built_in(found):
            raise ForbiddenError(
                f"Assistant {assistant_id} is built in. Make one of your own with POST /api/assistants."
            )
        return found

    async def _agent_of(self, principal: Principal, found: Assistant) -> AgentConfig | None:
        settings = {**(found.config.get("configurable") or {}), **found.context}
        if not (name := settings.get("agent_name")):
            return None
        if found.assistant_id == agent_id(principal, name) and "agent" in found.metadata:
            return agent_of(found)
        return (await self.agent(principal, name))[1]

    def _is_built_in(self, found: Assistant) -> bool:
        return found.created_at is self._started

    async def _all_built_in(self, principal: Principal) -> list[Assistant]:
        """The lead agent, and what files define and the person has not made their own."""
        files = await self._agents.of_files(principal)
        own = {agent.name for agent in await self._agents.own(principal)} if files else set[str]()
        return [
            self._lead_agent(),
            *(self._of_file(principal, agent) for name, agent in files.items() if name not in own),
        ]

    def _lead_agent(self) -> Assistant:
        return self._system(LEAD_AGENT_ID, LEAD_AGENT, "The agent that plans, works and delegates.", {})

    def _of_file(self, principal: Principal, agent: AgentConfig) -> Assistant:
        context = {"agent_name": agent.name}
        return self._system(agent_id(principal, agent.name), agent.name, agent.description, context)

    def _system(self, assistant_id: str, name: str, description: str, context: dict[str, Any]) -> Assistant:
        return Assistant(
            assistant_id=assistant_id,
            graph_id=LEAD_AGENT,
            version=1,
            name=name,
            description=description,
            config={},
            context=context,
            metadata={"created_by": "system"},
            created_at=self._started,
            updated_at=self._started,
        )


def _graph(graph_id: str) -> str:
    if graph_id not in GRAPHS:
        raise InvalidRequestError(f"There is no graph {graph_id!r}. There is {LEAD_AGENT}.")
    return GRAPHS[graph_id]


def _settings(given: dict[str, Any] | None) -> dict[str, Any]:
    """Raises InvalidRequestError for a ``configurable`` that is no object."""
    kept = storable(given or {})
    if not isinstance(kept.get("configurable") or {}, Mapping):
        raise InvalidRequestError("config.configurable must be an object.")
    return kept


def _fits(assistant: Assistant, query: AssistantQuery) -> bool:
    named = query.name is None or query.name.lower() in assistant.name.lower()
    noted = all(assistant.metadata.get(key) == value for key, value in (query.metadata or {}).items())
    return named and noted and query.graph_id in (None, assistant.graph_id)


# schemas -------------------------------------------------------------------------------------------------------------


class RunSettings(BaseModel):
    """What may be chosen per run, in ``context`` or in ``config.configurable``."""

    model_name: str | None = Field(
        default=None, description="Name of a model of GET /api/models; the first by default."
    )
    mode: Literal["flash", "thinking", "pro", "ultra"] | None = Field(
        default=None, description="Short for the switches below; those count more."
    )
    thinking_enabled: bool = True
    reasoning_effort: str | None = None
    is_plan_mode: bool = False
    subagent_enabled: bool = False
    max_concurrent_subagents: int = 3
    agent_name: str | None = Field(default=None, description="A custom agent to be instead of the lead agent.")


class RunConfig(BaseModel):
    tags: list[str] = []
    recursion_limit: int | None = None
    configurable: RunSettings = RunSettings()


def agent_schemas(agent: Agent) -> dict[str, Any]:
    """JSON schemas of input, output, state, config and context. Takes a moment: call it off the event loop."""
    settings = RunSettings.model_json_schema()
    output = _public(agent.get_output_jsonschema())
    return {
        "input_schema": _public(agent.get_input_jsonschema()),
        "output_schema": output,
        "state_schema": output,
        "config_schema": RunConfig.model_json_schema(),
        "context_schema": settings,
    }


def _public(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the parts of the state that clients never see."""
    properties = {name: part for name, part in schema.get("properties", {}).items() if name not in HIDDEN_KEYS}
    required = [name for name in schema.get("required", ()) if name in properties]
    return {**schema, "properties": properties, "required": required}
