"""How many subagents a reply and a turn may ask for, and how many turns a subagent has."""

from __future__ import annotations

from langchain_core.messages import AIMessage, ToolMessage

from deerflow.agents.middlewares.base import (
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    ends_turn,
    error_result,
    is_summary_request,
    messages_of,
    pending_calls,
    with_messages,
)
from deerflow.agents.middlewares.loop_detection_middleware import final_answer
from deerflow.agents.transcript import current_turn
from deerflow.subagents.task import TASK, TURN_LIMIT

DEFERRED = "deferred"
"""Key in a result's ``additional_kwargs``: the call was one too many."""
LEAST, MOST = 2, 4
"""Bounds of the limit of concurrent subagents."""


class SubagentLimitMiddleware(Middleware):
    """Answers each call of ``task`` beyond a limit at once; the others are made.

    Args:
        max_concurrent: calls of one reply, from 2 to 4.
        max_delegations: calls of one turn.
    """

    def __init__(self, max_concurrent: int = 3, *, max_delegations: int = 24) -> None:
        super().__init__()
        self.max_concurrent = min(max(max_concurrent, LEAST), MOST)
        self.max_delegations = max_delegations

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        result = await handler(request)
        calls = [call for call in pending_calls(result) if call["name"] == TASK]
        if not calls:
            return result
        turn = current_turn(request.state["messages"])
        made = [message for message in turn if isinstance(message, ToolMessage) and message.name == TASK]
        left = self.max_delegations - sum(DEFERRED not in message.additional_kwargs for message in made)
        context = request.runtime.context
        count = context.delegation.in_background if context is not None else None
        busy = count() if count is not None else 0
        allowed = max(0, min(self.max_concurrent - busy, left))
        if len(calls) <= allowed:
            return result
        why = (
            f"Error: deferred: limit {self.max_concurrent}, ask again when the others have their results."
            if left > allowed
            else f"Error: deferred: limit {self.max_delegations} tasks per turn. Do the rest yourself."
        )
        refused = [error_result(call, why, **{DEFERRED: True}) for call in calls[allowed:]]
        return with_messages(result, [*messages_of(result), *refused])


class TurnLimitMiddleware(Middleware):
    """A subagent whose turns are used up is asked for its final answer, so that its work is not lost."""

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        result = await handler(request)
        context = request.runtime.context
        limit = context.subagent.max_turns if context and context.subagent else None
        if limit is None or is_summary_request(request) or ends_turn(result):
            return result
        answers = sum(isinstance(message, AIMessage) for message in request.state["messages"]) + 1
        if answers < limit or not (pending := pending_calls(result)):
            return result
        why = f"the limit of {limit} turns is reached"
        notice = f"[FORCED STOP] The work was stopped: {why}."
        return await final_answer(request, handler, result, pending, why, notice, mark={TURN_LIMIT: True})
