"""The part of custom agents that agents get: tools that change the agent itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deerflow.capability import AgentSpec, Offer
from deerflow.features.assistants.tools import agent_tools

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


class AssistantsOffer(Offer):
    def tools(self, agent: AgentSpec) -> Sequence[BaseTool]:
        if agent.is_subagent:
            return ()
        return agent_tools(is_bootstrap=agent.options.is_bootstrap, is_custom=agent.options.agent is not None)
