"""``setup_agent``: a custom agent out of a conversation about it. ``update_agent``: the agent changes itself, when asked to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from deerflow.errors import RequestError
from deerflow.features.assistants.custom_agents import CustomAgents
from deerflow.tools.decorator import OUTLIVES_THREAD, Runtime, async_tool

Soul = Annotated[str, Field(description="The whole SOUL.md: purpose, manner, limits")]
Skills = Annotated[list[str] | None, Field(description="Names of the only skills that it uses; leave out for all")]


@async_tool("setup_agent", metadata=OUTLIVES_THREAD)
async def setup_agent_tool(
    soul: Soul,
    description: Annotated[str, Field(description="One line")],
    runtime: Runtime,
    skills: Skills = None,
    name: Annotated[str | None, Field(description="Letters, digits and hyphens; leave out if it has one")] = None,
    display_name: Annotated[str | None, Field(description="As the user writes it, if the name cannot say it")] = None,
) -> str:
    """Save the agent that this conversation was about, once, after the user has agreed to the text."""
    changes: dict[str, Any] = {"soul": soul, "description": description}
    chosen = {"skills": skills, "display_name": display_name}
    changes |= {key: value for key, value in chosen.items() if value}
    return await _save(runtime, runtime.context.agent or name, changes)


@async_tool("update_agent", metadata=OUTLIVES_THREAD)
async def update_agent_tool(
    runtime: Runtime,
    soul: Soul | None = None,
    description: str | None = None,
    skills: Skills = None,
    display_name: str | None = None,
) -> str:
    """Change who you are in later conversations, only when the user asks for it. What is left out stays."""
    given = {"soul": soul, "description": description, "skills": skills, "display_name": display_name}
    return await _save(
        runtime, runtime.context.options.agent_name, {key: value for key, value in given.items() if value}
    )


async def _save(runtime: Runtime, name: str | None, changes: Mapping[str, Any]) -> str:
    if (agents := runtime.context.of(CustomAgents)) is None:
        raise ToolException("Error: agents cannot be changed here.")
    try:
        return await agents.save(name, changes)
    except RequestError as error:
        raise ToolException(f"Error: {error}") from error


def agent_tools(*, is_bootstrap: bool, is_custom: bool) -> list[BaseTool]:
    """Those of a run that sets up an agent, or of a custom agent."""
    return [setup_agent_tool] if is_bootstrap else [update_agent_tool] if is_custom else []
