"""What each model call used and cost, and what happens when a run has spent what it may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from deerflow.agents.middlewares.base import (
    SPENDING_LIMIT,
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    emit,
    error_message,
    is_summary_request,
    last_ai,
    messages_of,
    reminder,
    with_messages,
)
from deerflow.agents.middlewares.loop_detection_middleware import stripped, without_tools
from deerflow.config.schema import SpendingConfig
from deerflow.context import RunContext
from deerflow.models.context_window import estimate, model_id
from deerflow.models.pricing import cost_of, pricing_of
from deerflow.storage.budgets import Amount, Budget, LimitReached

logger = logging.getLogger(__name__)

Size = Callable[[Request], int]
ANSWER_TOKENS = 8192
"""What a call of a model without ``max_tokens`` is taken to write at most."""
MARGIN = 1.25
"""Requests may be larger than they are estimated."""
SPEND_MORE = "spend_more"
"""The name of the action that a person is asked to allow."""
STOPPED = "[STOPPED] The spending limit is reached."


class TokenUsageMiddleware(Middleware):
    """Counts each model call, and keeps the run within its budget.

    Before a call its worst case is reserved. Where that would exceed a limit, the person is asked in the shape of LangChain's
    human-in-the-loop, as for guarded tool calls, whether to go on; or the model is asked for a last answer with what it has.

    Args:
        emits: a log line and a ``token_usage`` event per call: tokens, and money where the model's price is known.
        size: tokens of a request.
    """

    def __init__(self, *, emits: bool = True, size: Size | None = None) -> None:
        super().__init__()
        self.emits = emits
        self.size = size or (lambda request: sum(map(estimate, request.messages)))

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        context = request.runtime.context
        budget = context.budget if context is not None else None
        if context is None or budget is None:
            return await self._asked(request, handler)
        call, worst = object(), self._worst(request, context, budget.limits)
        try:
            await _reserve(budget, call, worst)
        except LimitReached as reached:
            return await self._last(request, handler, budget, worst, reached)
        try:
            return await self._asked(request, handler)
        finally:
            budget.settle(call)

    async def _asked(self, request: Request, handler: ModelHandler) -> ModelResult:
        """A call that is stopped has no figures, but it costs: what was sent is counted as it was estimated."""
        try:
            result = await handler(request)
        except asyncio.CancelledError:
            sent = self.size(request)
            usage = UsageMetadata(input_tokens=sent, output_tokens=0, total_tokens=sent)
            about = {"model_name": model_id(request.model)}
            self._count(request, AIMessage("", id=str(uuid4()), usage_metadata=usage, response_metadata=about))
            raise
        for message in messages_of(result):
            if isinstance(message, AIMessage) and message.usage_metadata:
                self._count(request, message)
        return result

    async def _last(
        self, request: Request, handler: ModelHandler, budget: Budget, worst: Amount, reached: LimitReached
    ) -> ModelResult:
        """The last answer; nothing is asked of the model if nothing at all is left. What is left is the lead agent's."""
        if is_summary_request(request):
            return AIMessage("")
        emit(request.runtime, {"type": SPENDING_LIMIT, **reached.facts})
        call = object()
        try:
            await budget.reserve(call, worst, last=not request.runtime.context.is_subagent)
        except LimitReached as empty:
            return error_message(SPENDING_LIMIT, f"Stopped: {empty}. {empty.remedy}")
        note = f"[SPENDING LIMIT] Tools are closed: {reached}. Tell the user what you found, and what is missing."
        try:
            asked = request.override(messages=[*request.messages, reminder(SPENDING_LIMIT, note)])
            result = await self._asked(asked, lambda given: without_tools(given, handler))
        finally:
            budget.settle(call)
        answer = last_ai(result)
        if answer is None:
            return result
        final = stripped(answer, STOPPED)
        final.additional_kwargs[SPENDING_LIMIT] = reached.facts
        return with_messages(result, [final if message is answer else message for message in messages_of(result)])

    def _worst(self, request: Request, context: RunContext, limits: SpendingConfig) -> Amount:
        sent, model = round(self.size(request) * MARGIN), model_id(request.model)
        received = getattr(request.model, "max_tokens", None) or ANSWER_TOKENS
        usage = {"input_tokens": sent, "output_tokens": received, "input_token_details": {"cache_creation": sent}}
        cost = cost_of(usage, pricing_of(context.config, model, context.model_name))
        return Amount(sent + received, cost["amount"] if cost and cost["currency"] == limits.currency else 0.0)

    def _count(self, request: Request, message: AIMessage) -> None:
        context = request.runtime.context
        caller = "middleware:summarization" if is_summary_request(request) else "lead_agent"
        if context is not None and context.count_usage is not None:
            if context.is_subagent:
                caller = f"subagent:{context.subagent_name}"
                message.response_metadata["run_id"] = context.run_id  # its thread is not the run's
            context.count_usage(message, caller)
        if not self.emits:
            return
        usage: dict[str, Any] = dict(message.usage_metadata or {})
        model = model_id(request.model)  # the one that was asked, which a fallback may have changed
        pricing = pricing_of(context.config, model, context.model_name) if context is not None else None
        logger.info(
            "Token usage of %s: input=%s output=%s total=%s cache_read=%s",
            model,
            usage.get("input_tokens"),
            usage.get("output_tokens"),
            usage.get("total_tokens"),
            int((usage.get("input_token_details") or {}).get("cache_read") or 0),
        )
        cost = cost_of(usage, pricing)
        emit(request.runtime, {"type": "token_usage", "model": model, "usage": usage, "cost": cost})


async def _reserve(budget: Budget, call: object, worst: Amount) -> None:
    """Raises LimitReached where the run has to stop, and LangGraph's GraphInterrupt where the person is asked first."""
    extend = False
    while True:
        try:
            await budget.reserve(call, worst, extend=extend)
            break
        except LimitReached as reached:
            if not reached.asks or not _allows(reached):
                raise
            extend = True
    if budget.resumed and not extend:  # the answer may be to this question, though there is room again
        try:
            answer = interrupt({"action_requests": []})
        except GraphInterrupt:
            return
        if _decision(answer) == "reject":
            budget.settle(call)
            raise LimitReached("the user allows no more spending")


def _allows(reached: LimitReached) -> bool:
    """Whether the person lets the run go on. A run whose answer cannot be read waits on."""
    value: dict[str, Any] = {
        "action_requests": [
            {
                "name": SPEND_MORE,
                "args": reached.facts,
                "description": f"Go on, although {reached}? If you approve, as much again may be spent.",
            }
        ],
        "review_configs": [{"action_name": SPEND_MORE, "allowed_decisions": ["approve", "reject"]}],
    }
    while (decision := _decision(interrupt(value))) is None:
        value = {**value, "error": 'Answer with {"decisions": [{"type": "approve"}]} or "reject".'}
    return decision == "approve"


def _decision(answer: Any) -> str | None:
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    first = decisions[0] if isinstance(decisions, list) and len(decisions) == 1 else None
    kind = first.get("type") if isinstance(first, Mapping) else None
    return kind if kind in ("approve", "reject") else None
