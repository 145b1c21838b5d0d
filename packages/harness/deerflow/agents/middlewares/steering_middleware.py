"""What the person says while a run is on its way reaches the model at its next step."""

from __future__ import annotations

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AnyMessage

from deerflow.agents.middlewares.base import Middleware
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
        return [message for message in waiting if message.id not in said]
