"""The part of memory that agents get: tools, and a sentence of the prompt."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langchain_core.tools import BaseTool

from deerflow.capability import AgentSpec, Offer
from deerflow.config.switches import MEMORY
from deerflow.features.memory.tools import (
    memory_forget_tool,
    memory_save_tool,
    memory_search_tool,
    search_chats_tool,
)

REMEMBERS = (
    "Files stay in this conversation. What matters about the user may be remembered in others, as <memory>{save}."
)
SAVES = "; what they ask you to remember, save with memory_save"


class MemoryOffer(Offer):
    def tools(self, agent: AgentSpec) -> Sequence[BaseTool]:
        if MEMORY in agent.switched_off:
            return ()
        memory = agent.config.memory
        offered = (
            (memory_search_tool, memory.has_search),
            (memory_save_tool, memory.enabled),
            (memory_forget_tool, memory.enabled and not agent.is_small),
            (search_chats_tool, memory.search_chats),
        )
        return [tool for tool, is_offered in offered if is_offered]

    def kept(self, agent: AgentSpec, tools: Collection[str]) -> str:
        if agent.is_subagent or not agent.is_kept or not agent.config.memory.enabled or MEMORY in agent.switched_off:
            return ""
        return REMEMBERS.format(save=SAVES if memory_save_tool.name in tools else "")
