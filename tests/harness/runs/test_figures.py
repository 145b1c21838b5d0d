"""What a model took counts, and limits bind, whatever its provider says about it or leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.harness.runs.run_house import ME, ended, say, thread, until

from deerflow.errors import InvalidRequestError
from deerflow.runtime import Runtime
from deerflow.storage.runs import Run

pytestmark = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
PRICE = {"input": 10, "output": 10}
MONEY = {"per_thread": {"money": 0.3, "at_limit": "stop"}}


@pytest.fixture
async def made(make: Callable[..., Runtime], settings: dict[str, Any]) -> AsyncIterator[Callable[..., Any]]:
    runtimes: list[Runtime] = []

    async def runtime(**sections: Any) -> Runtime:
        (model,) = settings["models"]
        fields = {**model, "pricing": PRICE, "max_tokens": 100}
        other = {**fields, "name": "dear", "pricing": {"input": 1000, "output": 1000}}
        given = {"models": [fields, other], "memory": {"enabled": False}, **sections}
        runtimes.append(await asyncio.to_thread(lambda: make(**given)))
        await runtimes[-1].start()
        return runtimes[-1]

    yield runtime
    for each in runtimes:
        await each.aclose()


def listing(number: int) -> ToolCalls:
    return ToolCalls(("bash", {"description": "List", "command": f"echo {number}"}))


async def worked(runtime: Runtime, **context: Any) -> Run:
    request = say("work", context=context)
    return await ended(runtime, await runtime.runs.start(ME, request, thread_id=await thread(runtime)))


@pytest.mark.parametrize("fault", ["no figures", "another name"])
async def test_a_limit_of_money_binds_whatever_the_provider_says(
    made: Callable[..., Any], endpoint: ScriptedOpenAI, fault: str
) -> None:
    endpoint.counts, endpoint.answers_as = fault != "no figures", "vendor/gpt-x-instruct-fp8"
    endpoint.script(*map(listing, range(30)))
    runtime = await made(spending=MONEY)
    run = await worked(runtime)
    assert run.stop_reason == "spending_limit" and 2 < len(endpoint.requests) < 20
    assert run.usage is not None and list(run.usage) == ["gpt-x"]
    counted = run.usage["gpt-x"]["lead_agent"]
    assert counted.get("estimated_calls", 0) == (counted["calls"] if fault == "no figures" else 0)
    assert counted["cost"] == pytest.approx((run.input_tokens + run.output_tokens) * 10 / 1e6)
    assert 0.2 < counted["cost"] < 0.35, "one answer beyond it at most"
    total = (await runtime.usage.report(ME))["total"]
    assert (total["unpriced_calls"], total["estimated_calls"]) == (0, counted.get("estimated_calls", 0))


async def test_an_estimate_is_marked_in_the_message_and_near_what_was_sent(
    made: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    endpoint.counts = False
    endpoint.script(Text("word " * 400))
    runtime = await made()
    run = await worked(runtime)
    answer = (await runtime.runs.values(run))["messages"][-1]
    assert answer["response_metadata"]["usage_estimated"] is True
    assert answer["usage_metadata"]["output_tokens"] == 500
    sent = len(str(endpoint.requests[0])) / 4
    assert sent / 2 < run.input_tokens < sent * 2


async def test_the_entry_that_was_asked_sets_the_price_where_two_have_the_same_model(
    made: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(Text("Hi."), Text("Hi."))
    runtime = await made()
    cheap, dear = await worked(runtime), await worked(runtime, model_name="dear")
    assert cheap.cost is not None and dear.cost == pytest.approx(cheap.cost * 100, rel=0.05)


async def test_a_stopped_answer_counts_with_what_was_sent_and_what_it_had_streamed(
    made: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(Delay(0, Text(chunks=["word " * 400, "end", *["late "] * 400]), between=0.05))
    runtime = await made(spending=MONEY)
    where = await thread(runtime)
    run = await runtime.runs.start(ME, say("work"), thread_id=where)
    await until(runtime, run, "messages", "end")
    await runtime.runs.cancel(ME, run.run_id, wait=True)
    run = await runtime.runs.get(ME, run.run_id)
    assert run.status == "interrupted" and run.input_tokens > 500
    assert 500 <= run.output_tokens < 1000
    assert run.cost == pytest.approx((run.input_tokens + run.output_tokens) * 10 / 1e6)
    assert run.usage is not None
    assert (run.usage["gpt-x"]["lead_agent"]["calls"], run.usage["gpt-x"]["lead_agent"]["estimated_calls"]) == (1, 1)


async def test_a_model_that_is_not_configured_is_refused(made: Callable[..., Any], endpoint: ScriptedOpenAI) -> None:
    runtime = await made()
    where = await thread(runtime)
    for key in ("model_name", "model"):
        with pytest.raises(InvalidRequestError, match=r"'gone' is not configured\. Known models: m, dear"):
            await runtime.runs.start(ME, say("work", context={key: "gone"}), thread_id=where)
    with pytest.raises(InvalidRequestError, match="gone"):
        await runtime.agents.create(ME, {"name": "helper", "model": "gone"})
    assert await runtime.runs.list(ME, where) == [] and endpoint.requests == []
