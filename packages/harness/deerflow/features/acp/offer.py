"""The part of ACP agents that agents get: a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deerflow.capability import AgentSpec, Offer
from deerflow.features.acp.tools import acp_tools

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


class AcpOffer(Offer):
    def tools(self, agent: AgentSpec) -> Sequence[BaseTool]:
        return acp_tools(agent.config)
