from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from bench.scripted_openai import Text

from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.token_usage_middleware import TokenUsageMiddleware
from deerflow.config import AppConfig
from deerflow.context.run_options import RunOptions

USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 200,
    "total_tokens": 1200,
    "prompt_tokens_details": {"cached_tokens": 600},
}


def config(*models: dict) -> AppConfig:
    return AppConfig.model_validate({"models": [{"use": "langchain_openai:ChatOpenAI", **model} for model in models]})


async def test_each_call_reports_usage_and_cost(start, endpoint, context, caplog) -> None:
    caplog.set_level(logging.INFO)
    endpoint.script(Text("hi", usage=USAGE))
    pricing = {"input": 10, "output": 20, "cache_read": 1, "currency": "EUR"}
    priced = replace(
        context,
        options=RunOptions(model_name="mine"),
        config=config({"name": "mine", "model": "scripted-model", "pricing": pricing}),
    )
    talk = start(TokenUsageMiddleware(), context=priced)
    await talk.say("hi")
    (event,) = talk.events_of("token_usage")
    assert event["model"] == "scripted-model"
    assert (event["usage"]["input_tokens"], event["usage"]["output_tokens"], event["usage"]["total_tokens"]) == (
        1000,
        200,
        1200,
    )
    assert event["usage"]["input_token_details"]["cache_read"] == 600
    assert event["cost"] == {"amount": pytest.approx((400 * 10 + 600 * 1 + 200 * 20) / 1e6), "currency": "EUR"}
    assert (
        sum(
            "Token usage of scripted-model: input=1000 output=200 total=1200 cache_read=600" in r.getMessage()
            for r in caplog.records
        )
        == 1
    )


async def test_a_fallback_is_charged_at_its_own_price(start, endpoint, context, chat_model) -> None:
    from bench.scripted_openai import HttpError

    endpoint.script(HttpError(401), Text("hi", usage=USAGE))
    models = config(
        {"name": "mine", "model": "scripted-model", "pricing": {"input": 10}},
        {"name": "b", "model": "b-1", "pricing": {"output": 1}},
    )
    talk = start(
        LLMErrorHandlingMiddleware(fallbacks=[chat_model("b-1")]),
        TokenUsageMiddleware(),
        context=replace(context, options=RunOptions(model_name="mine"), config=models),
    )
    await talk.say("hi")
    (event,) = talk.events_of("token_usage")
    assert event["model"] == "b-1"
    assert event["cost"] == {"amount": pytest.approx(200 / 1e6), "currency": "USD"}


async def test_two_entries_with_the_same_model_are_told_apart_by_name(start, endpoint, context) -> None:
    endpoint.script(Text("hi", usage=USAGE))
    models = config(
        *({"name": n, "model": "scripted-model", "pricing": {"input": p}} for n, p in (("cheap", 1), ("dear", 100)))
    )
    talk = start(TokenUsageMiddleware(), context=replace(context, options=RunOptions(model_name="dear"), config=models))
    await talk.say("hi")
    assert talk.events_of("token_usage")[0]["cost"]["amount"] == pytest.approx(0.1)


async def test_without_configuration_usage_is_reported_without_cost(start, endpoint) -> None:
    endpoint.script(Text("hi", usage=USAGE))
    talk = start(TokenUsageMiddleware())
    await talk.say("hi")
    assert talk.events_of("token_usage")[0]["cost"] is None


async def test_what_a_model_does_not_report_is_estimated_and_marked(start, endpoint, chat_model) -> None:
    endpoint.script(Text("hi there"))
    talk = start(TokenUsageMiddleware(), model=chat_model(stream_usage=False))
    await talk.say("hi")
    (event,) = talk.events_of("token_usage")
    assert event["estimated"] is True and event["usage"]["input_tokens"] > 0 and event["usage"]["output_tokens"] == 2
