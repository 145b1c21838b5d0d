"""What each model call used and cost, and what happens when a turn has spent what it may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage
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
from deerflow.config.schema import PricingConfig, SpendingConfig
from deerflow.context import RunContext
from deerflow.counts import ModelCalls
from deerflow.models.context_window import ESTIMATED, estimate, estimate_usage, has_figures
from deerflow.models.endpoint import model_id
from deerflow.models.failures import classify
from deerflow.models.pricing import ENTRY, cost_of, entry_of, pricing_of
from deerflow.storage.budgets import Budget, LimitReached, Spent

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
    """Counts each model call, and keeps the turn within its budget.

    Before a call its worst case is reserved. Where that would exceed a limit, the person is asked in the shape of LangChain's
    human-in-the-loop, as for guarded tool calls, whether to go on; or the model is asked for a last answer with what it has.

    Args:
        emits: a log line and a ``token_usage`` event per call: tokens, and money where the model's price is known.
        size: tokens of a request.
        calls: counts the calls of all runs.
    """

    def __init__(self, *, emits: bool = True, size: Size | None = None, calls: ModelCalls | None = None) -> None:
        super().__init__()
        self.calls = calls or ModelCalls()
        self.emits = emits
        self.size = size or (lambda request: sum(map(estimate, request.messages)))

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        context = request.runtime.context
        budget = context.spending.budget if context is not None else None
        if context is None or budget is None:
            return await self._asked(request, handler)
        call, worst = object(), self._worst(request, context, budget.limits)
        try:
            await _reserve(budget, call, worst, _identity(request))
        except LimitReached as reached:
            return await self._last(request, handler, budget, worst, reached)
        try:
            return await self._asked(request, handler)
        finally:
            budget.settle(call)

    async def _asked(self, request: Request, handler: ModelHandler) -> ModelResult:
        """Count what a call took, estimated where there are no figures: of one that is stopped here what was sent, and what it had
        streamed with the stream."""
        try:
            result = await handler(request)
        except asyncio.CancelledError:
            self._count(request, AIMessage("", id=str(uuid4())))
            raise
        except Exception as error:
            self.calls.errors[model_id(request.model), classify(error).kind.value] += 1
            raise
        for message in messages_of(result):
            if isinstance(message, AIMessage) and message.id:  # one without is ours, not a model's
                self._count(request, message)
        return result

    async def _last(
        self, request: Request, handler: ModelHandler, budget: Budget, worst: Spent, reached: LimitReached
    ) -> ModelResult:
        """The last answer; nothing is asked of the model if nothing at all is left. What is left is the lead agent's."""
        if is_summary_request(request):
            return AIMessage("")
        emit(request.runtime, {"type": SPENDING_LIMIT, **reached.facts})
        call = object()
        try:
            await budget.reserve(call, worst, last=request.runtime.context.subagent is None)
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
        final = stripped(answer, STOPPED, {SPENDING_LIMIT: reached.facts})
        return with_messages(result, [final if message is answer else message for message in messages_of(result)])

    def _worst(self, request: Request, context: RunContext, limits: SpendingConfig) -> Spent:
        sent = round(self.size(request) * MARGIN)
        received = getattr(request.model, "max_tokens", None) or ANSWER_TOKENS
        usage = {"input_tokens": sent, "output_tokens": received, "input_token_details": {"cache_creation": sent}}
        cost = cost_of(usage, _pricing(request, context))
        return Spent(sent + received, cost["amount"] if cost and cost["currency"] == limits.currency else 0.0)

    def _count(self, request: Request, message: AIMessage) -> None:
        if not has_figures(message):
            estimate_usage(message, self.size(request))
        context = request.runtime.context
        caller = "middleware:summarization" if is_summary_request(request) else "lead_agent"
        entry = (request.model.metadata or {}).get(ENTRY)
        if context is not None and entry and entry != entry_of(context.config, message, context.options.model_name):
            message.response_metadata[ENTRY] = entry  # a fallback, a summarizer, or a subagent with a model of its own
        if context is not None and (count := context.spending.count) is not None:
            if context.subagent is not None:
                caller = f"subagent:{context.subagent.name}"
                message.response_metadata["run_id"] = context.run_id  # its thread is not the run's
            count(message, caller)
        usage: dict[str, Any] = dict(message.usage_metadata or {})
        model = model_id(request.model)  # the one that was asked, which a fallback may have changed
        self.calls.answered(model, usage)
        if not self.emits:
            return
        logger.info(
            "Token usage of %s: input=%s output=%s total=%s cache_read=%s",
            model,
            usage.get("input_tokens"),
            usage.get("output_tokens"),
            usage.get("total_tokens"),
            int((usage.get("input_token_details") or {}).get("cache_read") or 0),
        )
        cost = cost_of(usage, _pricing(request, context)) if context is not None else None
        mark = {"estimated": True} if message.response_metadata.get(ESTIMATED) else {}
        emit(request.runtime, {"type": "token_usage", "model": model, "usage": usage, "cost": cost, **mark})


def _identity(request: Request) -> str:
    """Identifies a call by what it goes on from."""
    last = request.state["messages"][-1].id if request.state["messages"] else ""
    return f"{request.runtime.context.namespace}:{last}:{is_summary_request(request)}"


def _pricing(request: Request, context: RunContext) -> PricingConfig | None:
    """The price of the entry that is asked, which may be a fallback of the run's."""
    entry = (request.model.metadata or {}).get(ENTRY)
    return pricing_of(context.config, entry or model_id(request.model), entry or context.options.model_name)


async def _reserve(budget: Budget, call: object, worst: Spent, question: str) -> None:
    """Reserve what a call may take. At a limit the person is asked as often as it takes; each answer adds one allotment.

    Args:
        question: identifies the call in the turn: its step is played again when an answer comes.

    Raises:
        LimitReached: the run has to stop.
        GraphInterrupt: the person is asked.
    """
    answers = 0
    while True:
        try:
            await budget.reserve(call, worst)
            break
        except LimitReached as reached:
            if reached.asks is None or not _allows(reached):
                raise
            await budget.extend(reached.asks, f"{question}:{answers}")
            answers += 1
    if budget.resumed and not answers:  # the answer may be to this question, though there is room again
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
