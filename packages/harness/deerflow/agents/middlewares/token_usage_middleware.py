"""What each model call used and what it cost."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AIMessage

from deerflow.agents.middlewares.base import Middleware, ModelHandler, emit
from deerflow.agents.middlewares.results import ModelResult, messages_of
from deerflow.context import RunContext
from deerflow.models.context_window import model_id

logger = logging.getLogger(__name__)

PER_MILLION = 1_000_000


class TokenUsageMiddleware(Middleware):
    """A log line and a ``token_usage`` event per model call: tokens, and money where the model's price is configured."""

    async def awrap_model_call(self, request: ModelRequest[RunContext], handler: ModelHandler) -> ModelResult:
        result = await handler(request)
        for message in messages_of(result):
            if isinstance(message, AIMessage) and message.usage_metadata:
                _report(request, message)
        return result


def cost_of(usage: Mapping[str, Any], pricing: Any) -> dict[str, Any] | None:
    """Money for one call: ``{"amount", "currency"}``, or None without a price.

    Args:
        usage: LangChain's usage metadata; cached tokens are part of ``input_tokens``.
        pricing: ``models[].pricing``: ``input``, ``output``, ``cache_read`` per million tokens, ``currency``. Tokens
            read from a cache cost like other input where ``cache_read`` is not given.
    """
    input_price, output_price = _price(pricing, "input"), _price(pricing, "output")
    if input_price is None and output_price is None:
        return None
    cache_price = _price(pricing, "cache_read")
    cached = _cache_read(usage)
    fresh = max(0, int(usage.get("input_tokens") or 0) - cached)
    amount = fresh * (input_price or 0.0) + cached * (cache_price if cache_price is not None else input_price or 0.0)
    amount += int(usage.get("output_tokens") or 0) * (output_price or 0.0)
    return {"amount": round(amount / PER_MILLION, 9), "currency": _field(pricing, "currency") or "USD"}


def _report(request: ModelRequest[RunContext], message: AIMessage) -> None:
    usage: dict[str, Any] = dict(message.usage_metadata or {})
    model = model_id(request.model)  # the one that was asked, which a fallback may have changed
    logger.info(
        "Token usage of %s: input=%s output=%s total=%s cache_read=%s",
        model,
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        usage.get("total_tokens"),
        _cache_read(usage),
    )
    emit(
        request.runtime,
        {"type": "token_usage", "model": model, "usage": usage, "cost": cost_of(usage, _pricing(request, model))},
    )


def _pricing(request: ModelRequest[RunContext], model: str) -> Any:
    context = request.runtime.context if request.runtime is not None else None
    if context is None or context.config is None:
        return None
    same = [entry for entry in context.config.models if entry.model == model]
    chosen = next((entry for entry in same if entry.name == context.model_name), same[0] if same else None)
    return getattr(chosen, "pricing", None)


def _cache_read(usage: Mapping[str, Any]) -> int:
    return int((usage.get("input_token_details") or {}).get("cache_read") or 0)


def _price(pricing: Any, name: str) -> float | None:
    value = _field(pricing, name)
    return None if value is None else float(value)


def _field(pricing: Any, name: str) -> Any:
    return pricing.get(name) if isinstance(pricing, Mapping) else getattr(pricing, name, None)
