"""``ask_clarification`` ends the turn, whatever else the model called along with it."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage

from deerflow.agents.middlewares.base import (
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    error_result,
    messages_of,
    pending_calls,
    with_own_ids,
    with_update,
)
from deerflow.tools.clarification import NAME, clarification_message

NOT_EXECUTED = "Not executed: the question has to be answered by the user first. Call this tool again afterwards if it is still needed."


class ClarificationMiddleware(Middleware):
    """Answers the model's calls itself when one of them is a question: the question with its text, the others with a refusal.

    No tool runs, and the graph ends right behind the model node: its router follows ``jump_to`` before anything else.
    """

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        result = with_own_ids(await handler(request))
        pending = pending_calls(result)
        if not any(_is_question(call) for call in pending):
            return result
        said = {message.id for message in request.state["messages"]}
        results = [
            _question(call, said) if _is_question(call) else error_result(call, NOT_EXECUTED) for call in pending
        ]
        return with_update(result, [*messages_of(result), *results], {"jump_to": "end"})


def _question(call: Any, said: set[str | None]) -> ToolMessage:
    """Providers that count their calls anew in each turn would have a question replace that of an earlier turn."""
    message = clarification_message(call["args"], call["id"])
    return message.model_copy(update={"id": f"{message.id}:{len(said)}"}) if message.id in said else message


def _is_question(call: Any) -> bool:
    """One that can be read: otherwise the call gets an error as its result, and the model asks again."""
    return call["name"] == NAME and isinstance(call["args"], dict) and bool(call["args"].get("question"))
