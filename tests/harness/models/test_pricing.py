from __future__ import annotations

from typing import Any

import pytest

from deerflow.config import AppConfig
from deerflow.config.discovery import providers
from deerflow.config.schema import PricingConfig
from deerflow.models.pricing import cost_of, pricing_of

MILLION = 1_000_000


def usage(sent: int, received: int = 0, **details: int) -> dict[str, Any]:
    return {"input_tokens": sent, "output_tokens": received, "input_token_details": details}


def config(*models: dict[str, Any]) -> AppConfig:
    return AppConfig.model_validate({"models": [{"use": "a:B", **model} for model in models]})


@pytest.mark.parametrize(
    ("counted", "pricing", "amount"),
    [
        (usage(MILLION), {"input": 3}, 3.0),
        (usage(0, 500_000), {"input": 3, "output": 15}, 7.5),
        (usage(1000, cache_read=1000), {"input": 3, "cache_read": 0.3}, 0.0003),
        (usage(1000, cache_read=1000), {"input": 3}, 0.003),
        (usage(10, cache_read=99), {"input": 3, "cache_read": 0}, 0.0),
        (usage(1000, cache_read=500, cache_creation=400), {"input": 1, "cache_read": 0.1, "cache_write": 2}, 0.00095),
        (usage(1000, cache_creation=400), {"input": 1}, 0.001),
        (usage(100, 1), {"input": 1, "long_prompt": {"above": 100, "input": 5}}, 0.0001),
        (usage(101, 1), {"input": 1, "output": 9, "long_prompt": {"above": 100, "input": 5, "output": 20}}, 0.000525),
        ({"input_tokens": None, "output_tokens": None, "input_token_details": None}, {"input": 3}, 0.0),
        ({}, {"input": 1}, 0.0),
    ],
)
def test_cost_follows_from_usage_and_price(counted: Any, pricing: Any, amount: float) -> None:
    cost = cost_of(counted, PricingConfig.model_validate(pricing))
    assert cost == {"amount": pytest.approx(amount), "currency": "USD"}


def test_without_a_price_the_cost_is_unknown_and_not_nothing() -> None:
    assert cost_of(usage(5, 5), None) is None
    assert pricing_of(config({"name": "own", "model": "llama-of-ours"}), "llama-of-ours") is None


def test_a_shipped_price_is_found_under_the_id_with_and_without_its_date() -> None:
    opus = PricingConfig(input=5, cache_read=0.5, cache_write=6.25, output=25)
    for model in ("claude-opus-4-5", "claude-opus-4-5-20251101", "claude-opus-4-5@20251101"):
        assert pricing_of(None, model) == opus
    assert pricing_of(None, "gpt-5-mini-2025-08-07") == pricing_of(None, "gpt-5-mini") != pricing_of(None, "gpt-5")
    assert pricing_of(config({"name": "big", "model": "claude-opus-4-5"}), "big") == opus


def test_a_configured_price_stands_over_the_shipped_one_also_for_answers_with_a_date() -> None:
    own = {"name": "mini", "model": "gpt-5-mini", "pricing": {"input": 1, "currency": "CNY"}}
    for model in ("gpt-5-mini", "gpt-5-mini-2025-08-07", "mini"):
        assert pricing_of(config(own), model) == PricingConfig(input=1, currency="CNY")
    dated = {**own, "model": "gpt-5-mini-2025-08-07"}
    assert pricing_of(config({**own, "name": "b", "pricing": {"input": 2}}, dated), dated["model"]) == PricingConfig(
        input=1, currency="CNY"
    )


def test_the_models_of_the_largest_providers_have_prices() -> None:
    offered = [preset.model for provider in providers()[:3] for preset in provider.presets]
    assert [model for model in offered if pricing_of(None, model) is None] == []
