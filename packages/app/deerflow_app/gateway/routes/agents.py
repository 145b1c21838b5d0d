"""Custom agents of a person, and what the person tells all agents about themselves."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deerflow.config.agents import AgentConfig, ModelSettings
from deerflow.config.schema import SpendingLimit
from deerflow.errors import ForbiddenError
from deerflow.features.assistants.agents import AgentChoices, AgentVersion
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime


async def agents_enabled(runtime: CurrentRuntime) -> None:
    """Raises ForbiddenError."""
    config = await runtime.agent_provider.config_source.acurrent()
    if not config.agents_api.enabled:
        text = "Custom agents are switched off: agents_api.enabled is false in config.yaml."
        raise ForbiddenError(text, reason="agents_off")


router = Router(tags=["agents"], dependencies=[Depends(agents_enabled)])


class AgentSettings(BaseModel):
    """null leaves a setting to the caller or to the configuration."""

    display_name: str = Field(default="", max_length=64, description="In any script, for people; empty: the name.")
    description: str = ""
    model: str | None = None
    thinking_enabled: bool | None = None
    reasoning_effort: str | None = None
    model_settings: ModelSettings | None = Field(
        default=None, description="How its model writes. A provider may refuse a temperature for a model that thinks."
    )
    tool_groups: list[str] | None = None
    skills: list[str] | None = Field(default=None, description="null: all that are on; empty: none.")
    subagents: list[str] | None = Field(default=None, description="Those that it may call; empty: none.")
    policy: Literal["off", "auto", "strict"] | None = Field(
        default=None, description="Counts where it is stricter than guardrails.policy."
    )
    budget: SpendingLimit | None = Field(default=None, description="Per day, below spending.per_agent_day.")


class Agent(AgentSettings):
    """``soul`` is SOUL.md: purpose, manner and limits."""

    name: str
    soul: str = ""


class NewAgent(Agent):
    model_config = ConfigDict(extra="forbid")


class AgentChanges(AgentSettings):
    """What is left out stays; also a soul of null."""

    model_config = ConfigDict(extra="forbid")

    soul: str | None = None


class Agents(TypedDict):
    agents: list[Agent]


class Availability(TypedDict):
    available: bool
    name: str


class Versions(TypedDict):
    versions: list[AgentVersion]


class Rollback(BaseModel):
    version: int = Field(ge=1)


class Profile(BaseModel):
    content: str | None = None


def _shown(agent: AgentConfig) -> Agent:
    return Agent.model_validate(agent.model_dump())


@router.get("/api/agents", summary="Custom agents, by name")
async def list_agents(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Agents:
    return {"agents": [_shown(agent) for agent in await runtime.agents.list(principal)]}


@router.get("/api/agents/check", summary="Whether an agent can be called so")
async def check_agent(
    name: Annotated[str, Query()], principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Availability:
    return {"available": await runtime.agents.is_free(principal, name), "name": name.lower()}


@router.get("/api/agent-choices", summary="Which groups of tools and which subagents agents can be given")
async def list_agent_choices(principal: CurrentPrincipal, runtime: CurrentRuntime) -> AgentChoices:
    return await runtime.agents.choices()


@router.get("/api/agents/{agent_name}", summary="One agent")
async def get_agent(agent_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Agent:
    return _shown(await runtime.agents.get(principal, agent_name))


@router.post("/api/agents", status_code=201, summary="Make an agent")
async def create_agent(given: NewAgent, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Agent:
    return _shown(await runtime.agents.create(principal, given.model_dump()))


@router.put("/api/agents/{agent_name}", summary="Change an agent; its former version stays")
async def update_agent(
    agent_name: str, changes: AgentChanges, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Agent:
    """An agent that files of the installation define becomes your own with that."""
    return _shown(await runtime.agents.change(principal, agent_name, changes.model_dump(exclude_unset=True)))


@router.delete("/api/agents/{agent_name}", status_code=204, summary="Delete an agent, its versions and its memory")
async def delete_agent(agent_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    await runtime.agents.delete(principal, agent_name)


@router.get("/api/agents/{agent_name}/versions", summary="How an agent came to be what it is, newest first")
async def list_agent_versions(agent_name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Versions:
    return {"versions": await runtime.agents.versions(principal, agent_name)}


@router.post("/api/agents/{agent_name}/rollback", summary="Make a former version the current one")
async def rollback_agent(
    agent_name: str, asked: Rollback, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Agent:
    return _shown(await runtime.agents.rollback(principal, agent_name, asked.version))


@router.get("/api/user-profile", summary="USER.md: what all agents know about you")
async def get_user_profile(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Profile:
    return Profile(content=await runtime.agents.profile(principal))


@router.put("/api/user-profile", summary="Change USER.md")
async def update_user_profile(given: Profile, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Profile:
    await runtime.agents.write_profile(principal, given.content or "")
    return Profile(content=given.content or "")
