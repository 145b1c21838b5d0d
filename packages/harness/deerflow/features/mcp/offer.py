"""The part of MCP servers that agents get: tools, the servers that the person may connect, and prompts that a message calls."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deerflow.agents.turn import PROMPT
from deerflow.capability import AgentSpec, AskedAgent, Offer
from deerflow.config import switches
from deerflow.tools.origin import SERVER

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from deerflow.features.mcp.servers import McpServers

UNCONNECTED = """<unconnected_servers>
These have tools for you once the user connects them: in Settings, under MCP (/settings/mcp). If a task needs one, say so, and
how to connect it.
{servers}
</unconnected_servers>"""


@dataclass(frozen=True, slots=True)
class ServersForRun:
    """The servers of one person's agent: a :class:`deerflow.capability.Supply`.

    Args:
        tools: of the servers that are up.
        unconnected: name and description of those that the person has to connect first.
    """

    tools: tuple[BaseTool, ...]
    unconnected: tuple[tuple[str, str], ...]

    @property
    def id(self) -> Hashable:
        return tuple(map(id, self.tools)), self.unconnected

    @property
    def mounts(self) -> Mapping[str, Path]:
        return {}


class McpOffer(Offer):
    def __init__(self, servers: McpServers) -> None:
        self.servers = servers

    async def supply(self, asked: AskedAgent) -> ServersForRun | None:
        if not asked.acts:
            return None
        config, user_id = asked.config, asked.principal.user_id
        tools = await self.servers.tools(config, asked.sandbox_provider, user_id, wait=asked.waits)
        unconnected = await self.servers.unconnected(config, user_id)
        return ServersForRun(tools, unconnected) if tools or unconnected else None

    async def called(self, asked: AskedAgent, text: str) -> Mapping[str, Any]:
        found = await self.servers.prompt(asked.config, asked.sandbox_provider, asked.principal.user_id, text)
        return {PROMPT: found} if found is not None else {}

    def tools(self, agent: AgentSpec) -> Sequence[BaseTool]:
        given = agent.of(ServersForRun)
        tools = given.tools if given is not None else ()
        return [one for one in tools if _is_for(agent, (one.metadata or {})[SERVER])]

    def prompt(self, agent: AgentSpec, tools: Collection[str]) -> str:
        given = agent.of(ServersForRun)
        if given is None or agent.is_subagent:
            return ""
        waiting = [
            f"- {name}: {' '.join(description.split())[:200]}".rstrip(": ")
            for name, description in given.unconnected
            if _is_for(agent, name)
        ]
        return UNCONNECTED.format(servers="\n".join(waiting)) if waiting else ""

    async def aclose(self) -> None:
        await self.servers.aclose()


def _is_for(agent: AgentSpec, server: str) -> bool:
    """Return whether the agent gets what this server offers."""
    groups = agent.options.agent.tool_groups if agent.options.agent is not None else None
    is_on = f"{switches.SERVER}{server}" not in agent.switched_off
    return is_on and (groups is None or bool({"mcp", server} & {*groups}))
