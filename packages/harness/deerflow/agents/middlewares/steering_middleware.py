"""What the person says while a run is on its way reaches the model at its next step."""

from __future__ import annotations

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AnyMessage, HumanMessage

from deerflow.agents.middlewares.base import Middleware
from deerflow.agents.transcript import INJECTED_NAMES
from deerflow.agents.turn import DURING_WORK, FACTS
from deerflow.context import RunContext


class SteeringMiddleware(Middleware):
    """Takes the messages that wait for the run; one that the transcript has already (the run went on after a crash) is not said twice."""

    async def arrivals(self, request: ModelRequest[RunContext]) -> list[AnyMessage]:
        context = request.runtime.context if request.runtime is not None else None
        if context is None or context.arrivals is None:
            return []
        waiting = await context.arrivals()
        if not waiting:
            return []
        said = {message.id for message in request.messages}
        arrived = [message for message in waiting if message.id not in said]
        is_at_work = bool(request.messages) and not isinstance(request.messages[-1], HumanMessage)
        return [_during_work(message) if is_at_work else message for message in arrived]


def _during_work(message: AnyMessage) -> AnyMessage:
    if message.name in INJECTED_NAMES:
        return message
    facts = {**message.additional_kwargs.get(FACTS, {}), DURING_WORK: True}
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, FACTS: facts}})
