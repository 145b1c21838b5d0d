"""Limits hold for a crowd of runs, on both databases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from sqlalchemy import insert
from tests.harness.runs.run_house import ME, ended, say, thread
from tests.support.gateway_process import GUARD

from deerflow.runtime import Runtime
from deerflow.storage.budgets import stands, today
from deerflow.storage.tables import budgets

LIMIT, WRITTEN, ONE_ANSWER = 200_000, 8000, 20_000


def working(number: int) -> Callable[[dict[str, Any]], ToolCalls]:
    def reply(request: dict[str, Any]) -> ToolCalls:
        read = len(json.dumps(request)) // 4
        usage = {"prompt_tokens": read, "completion_tokens": WRITTEN, "total_tokens": read + WRITTEN}
        return ToolCalls(("bash", {"description": "Count", "command": f"echo {number}"}), usage=usage)

    return reply


async def test_a_crowd_of_runs_exceeds_a_limit_by_one_answer_at_most(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, settings: dict[str, Any]
) -> None:
    limits = {"per_person_day": {"tokens": LIMIT, "at_limit": "stop"}}
    runtime = await asyncio.to_thread(make, spending=limits)
    await runtime.start()
    try:
        endpoint.script(*map(working, range(200)))
        threads = [await thread(runtime) for _ in range(8)]
        runs = [await runtime.runs.start(ME, say("work"), thread_id=where) for where in threads]
        await asyncio.gather(*(ended(runtime, run) for run in runs))
        total = (await runtime.usage.report(ME))["total"]
        assert total["calls"] == len(endpoint.requests)
        assert LIMIT - ONE_ANSWER < total["total_tokens"] <= LIMIT + ONE_ANSWER
    finally:
        await runtime.aclose()


async def test_parallel_subagents_exceed_the_limit_of_their_run_by_one_answer_at_most(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
) -> None:
    """They reserve from one budget; each reports what it has, and the lead ends the turn."""
    runtime = await asyncio.to_thread(make, spending={"per_run": {"tokens": LIMIT, "at_limit": "stop"}})
    await runtime.start()
    try:
        calls = [
            ("task", {"description": key, "prompt": f"key:{key}", "subagent_type": "general-purpose"}) for key in "abc"
        ]
        endpoint.script(ToolCalls(*calls), Text("Done."))
        for key in "abc":
            endpoint.script(*map(working, range(50)), key=key)
        request = say("work", context={"subagent_enabled": True})
        where = await thread(runtime)
        run = await ended(runtime, await runtime.runs.start(ME, request, thread_id=where))
        assert (run.status, run.stop_reason) == ("success", "spending_limit")
        used = {caller: each for callers in (run.usage or {}).values() for caller, each in callers.items()}
        total = sum(each["input_tokens"] + each["output_tokens"] for each in used.values())
        assert LIMIT - 2 * ONE_ANSWER < total <= LIMIT + ONE_ANSWER
        assert used["subagent:general-purpose"]["calls"] == len(endpoint.requests) - used["lead_agent"]["calls"]
        tasks = await runtime.threads.transcript.tasks(ME, where)
        assert [task["status"] for task in tasks] == ["failed"] * 3
        assert all("spending limit of 200,000 tokens per turn" in task["error"] for task in tasks)
    finally:
        await runtime.aclose()


async def test_a_call_that_a_kill_cut_off_is_counted_once_from_its_reservation(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
) -> None:
    limits = {"per_person_day": {"tokens": LIMIT, "at_limit": "stop"}}
    dead = await asyncio.to_thread(make, spending=limits)
    run = await dead.runs.start(ME, say("work"), thread_id=await thread(dead))
    assert await dead.executor.parts.runs.claim(run.run_id, "a process that dies") is not None
    keys = {"person": ME.user_id, "run": run.run_id}
    reserved = {"tokens": 5000, "cost": 0.0, "currency": "", "extensions": 0}
    rows = [{"scope": scope, "key": key, "day": today() if scope == "person" else ""} for scope, key in keys.items()]
    await dead.database.write(
        lambda connection: connection.execute(insert(budgets), [row | reserved for row in rows]) and None
    )
    await dead.aclose()
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    endpoint.script(Text("Done.", usage=usage))
    runtime = await asyncio.to_thread(make, spending=limits)
    await runtime.start()
    try:
        run = await ended(runtime, run)
        assert (run.status, run.input_tokens, run.output_tokens, run.llm_calls) == ("success", 5010, 2, 2)
        amount, _ = await runtime.database.read(lambda connection: stands(connection, "person", ME.user_id))
        assert 5012 <= amount.tokens < 10_000, "with the title, and not twice"
    finally:
        await runtime.aclose()


async def test_runs_share_the_limits_of_a_provider(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, settings: dict[str, Any]
) -> None:
    (model,) = settings["models"]
    runtime = await asyncio.to_thread(make, models=[{**model, "max_concurrent_calls": 2}])
    await runtime.start()
    try:
        endpoint.script(*(Delay(GUARD, Text("late")) for _ in range(4)))
        for where in [await thread(runtime) for _ in range(4)]:
            await runtime.runs.start(ME, say("work"), thread_id=where)
        gates = runtime.agent_provider.harness.gates._gates
        async with asyncio.timeout(GUARD):
            while len(endpoint.requests) < 2 or not _in_line(gates[asyncio.get_running_loop()]):
                await asyncio.sleep(0.01)
        assert len(endpoint.requests) == 2
    finally:
        for run_id in runtime.executor.active:
            await runtime.runs.cancel(ME, run_id)
        await runtime.aclose()


def _in_line(gates: dict[Any, Any]) -> bool:
    """Whether one run is first in line and another behind it."""
    return bool(gates) and any(gate._first_in_line._waiters for gate in gates.values())
