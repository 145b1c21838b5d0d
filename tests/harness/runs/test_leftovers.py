"""When runs have ended, all that they held goes with them: not when the collector looks, and not when some timer is due."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest
import uvloop
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.harness.runs.run_house import ME, bash, ended, say, thread

from deerflow.runs.attempt import Attempt
from deerflow.runtime import Runtime

RUNS = 10
HELD = 4
"""Runs that something of the process keeps, in whose context it began: an open connection, the last job of the database."""


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_runs_leave_nothing(make: Callable[..., Runtime], endpoint: ScriptedOpenAI) -> None:
    async def play() -> int:
        runtime = await asyncio.to_thread(make)
        await runtime.start()
        for number in range(RUNS):
            asked = {"description": "part", "prompt": f"key:part-{number}", "subagent_type": "general-purpose"}
            endpoint.script(ToolCalls(bash("echo a"), ("task", asked)), Text("Done."))
            endpoint.script(ToolCalls(bash("echo b")), Text("ready"), key=f"part-{number}")
            where = await thread(runtime)
            begun = await runtime.runs.start(ME, say("go", context={"subagent_enabled": True}), thread_id=where)
            assert (await ended(runtime, begun)).status == "success"
        left = RUNS
        for _ in range(100):  # the last tasks of a run end behind it
            if (left := sum(type(one) is Attempt for one in gc.get_objects())) <= HELD:
                break
            await asyncio.sleep(0.05)
        await runtime.aclose()
        return left

    gc.collect()
    gc.disable()
    try:
        assert uvloop.run(play()) <= HELD  # the loop of servers: asyncio's own keeps what cancelled timers held
    finally:
        gc.enable()
