"""What calls of models cost: as configured, else as in ``prices.yaml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import yaml
from langchain_core.messages import AIMessage

from deerflow.config import AppConfig
from deerflow.config.schema import PricingConfig

PER_MILLION = 1_000_000
ENTRY = "model_entry"
"""Key in a chat model's ``metadata``: the name of its entry in the configuration. Also in the ``response_metadata`` of an answer that
another entry gave than that of its run."""
_DATE = re.compile(r"[-@]\d{4}-?\d\d-?\d\d$")


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the other takes 30 ms
_SHIPPED: dict[str, PricingConfig] = {
    model: PricingConfig.model_validate(prices)
    for model, prices in yaml.load(Path(__file__).with_name("prices.yaml").read_bytes(), _LOADER).items()
}
"""Read with the module: later the event loop would wait for it."""


class Cost(TypedDict):
    amount: float
    currency: str


def pricing_of(config: AppConfig | None, model: str, name: str | None = None) -> PricingConfig | None:
    """The price of a model; None: not known.

    Args:
        model: the name of an entry, or the provider's id as it was asked for, with or without its date. Answers may name it otherwise.
        name: prefer the entry of this name where several have the same model.
    """
    ids = (model, _DATE.sub("", model))
    models = config.models if config else []
    entries = [entry for entry in models if ids[0] in (entry.model, entry.name)]
    entries = entries or [entry for entry in models if entry.model == ids[1]]
    chosen = next((entry for entry in entries if entry.name == name), entries[0] if entries else None)
    if chosen is not None and chosen.pricing is not None:
        return chosen.pricing
    if chosen is not None and chosen.model not in ids:
        return _SHIPPED.get(_DATE.sub("", chosen.model))
    return _SHIPPED.get(ids[0]) or _SHIPPED.get(ids[1])


def entry_of(config: AppConfig | None, answer: AIMessage, name: str | None) -> str:
    """The name of the entry that gave an answer, whatever the answer says. ``name``: that of its run, None if that has none."""
    models = config.models if config else ()
    return str(answer.response_metadata.get(ENTRY) or name or next((entry.name for entry in models), ""))


def price_of(config: AppConfig | None, answer: AIMessage, name: str | None) -> Cost | None:
    """Money for an answer; arguments as for :func:`entry_of`."""
    entry = entry_of(config, answer, name)
    return cost_of(answer.usage_metadata or {}, pricing_of(config, entry, entry))


def cost_of(usage: Mapping[str, Any], pricing: PricingConfig | None) -> Cost | None:
    """Money for one call; None without a price.

    Args:
        usage: LangChain's usage metadata; what was read from a cache or written to it is part of ``input_tokens``.
    """
    if pricing is None:
        return None
    price, details = pricing, usage.get("input_token_details") or {}
    sent, read, written = (
        int(count or 0)
        for count in (usage.get("input_tokens"), details.get("cache_read"), details.get("cache_creation"))
    )
    if pricing.long_prompt is not None and sent > pricing.long_prompt.above:
        price = pricing.long_prompt
    amount = max(0, sent - read - written) * price.input + int(usage.get("output_tokens") or 0) * price.output
    amount += read * (price.input if price.cache_read is None else price.cache_read)
    amount += written * (price.input if price.cache_write is None else price.cache_write)
    return Cost(amount=round(amount / PER_MILLION, 9), currency=pricing.currency)
