"""What each model call used and what it cost."""

from __future__ import annotations

import logging
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AIMessage

from deerflow.agents.middlewares.base import Middleware, ModelHandler, emit
from deerflow.agents.middlewares.results import ModelResult, messages_of
from deerflow.context import RunContext
from deerflow.models.context_window import model_id
from deerflow.models.pricing import cost_of, pricing_of

logger = logging.getLogger(__name__)


class TokenUsageMiddleware(Middleware):
    """A log line and a ``token_usage`` event per model call: tokens, and money where the model's price is known."""

    async def awrap_model_call(self, request: ModelRequest[RunContext], handler: ModelHandler) -> ModelResult:
        result = await handler(request)
        for message in messages_of(result):
            if isinstance(message, AIMessage) and message.usage_metadata:
                _report(request, message)
        return result


def _report(request: ModelRequest[RunContext], message: AIMessage) -> None:
    usage: dict[str, Any] = dict(message.usage_metadata or {})
    model = model_id(request.model)  # the one that was asked, which a fallback may have changed
    context = request.runtime.context if request.runtime is not None else None
    pricing = pricing_of(context.config, model, context.model_name) if context is not None else None
    logger.info(
        "Token usage of %s: input=%s output=%s total=%s cache_read=%s",
        model,
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        usage.get("total_tokens"),
        int((usage.get("input_token_details") or {}).get("cache_read") or 0),
    )
    emit(
        request.runtime,
        {"type": "token_usage", "model": model, "usage": usage, "cost": cost_of(usage, pricing)},
    )
