"""The part of guardrails that agents get: the middleware that judges calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deerflow.capability import AgentSpec, Offer
from deerflow.tools.origin import POLICY

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.tools import BaseTool


class GuardrailsOffer(Offer):
    def slots(
        self, agent: AgentSpec, tools: Sequence[BaseTool], filled: Mapping[str, AgentMiddleware[Any, Any, Any]]
    ) -> Mapping[str, AgentMiddleware[Any, Any, Any]]:
        general, chosen = agent.config.guardrails, agent.options.agent
        config = chosen.guardrails(general) if chosen is not None else general
        if not config.enabled and not any(POLICY in (tool.metadata or {}) for tool in tools):
            return {}
        from deerflow.agents.middlewares.tool_calls_middleware import ToolOrderMiddleware
        from deerflow.features.guardrails.middleware import guardrail_of

        order = filled.get("tool_order")
        return {"guardrail": guardrail_of(config, order if isinstance(order, ToolOrderMiddleware) else None)}
