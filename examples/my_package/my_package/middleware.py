"""A middleware of your own: any LangChain ``AgentMiddleware``. ``awrap_…`` hooks cost a function call; others add a graph node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage


class HouseRules(AgentMiddleware):
    """Puts rules of the house below the system prompt. They are the same in each request, so the provider's cache still hits."""

    def __init__(self, rules: str) -> None:
        super().__init__()
        self.rules = rules

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        prompt = request.system_message.text if request.system_message else ""
        return await handler(request.override(system_message=SystemMessage(f"{prompt}\n\n{self.rules}")))
