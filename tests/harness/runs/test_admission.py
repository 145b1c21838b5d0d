"""Slots for runs that work."""

from __future__ import annotations

import asyncio
from functools import partial

from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.harness.runs.run_house import ME, bash, ended, say, thread

from deerflow.runs.attempt import Slot
from deerflow.runtime import Runtime
from deerflow.storage.runs import RunStatus


async def test_only_so_many_have_a_slot_and_the_others_follow_in_order():
    free = asyncio.Semaphore(2)
    slots = [Slot(free) for _ in range(5)]
    had: list[int] = []

    async def work(number: int) -> None:
        await slots[number].take()
        had.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(5)]
    await asyncio.gather(*tasks[:2])
    for number in range(3):
        assert had == [*range(number + 2)]
        slots[number].leave()
        await tasks[number + 2]


async def test_taking_twice_takes_one_slot_and_leaving_twice_gives_back_one():
    free = asyncio.Semaphore(1)
    first, second, third = Slot(free), Slot(free), Slot(free)
    await first.take()
    await first.take()
    first.leave()
    first.leave()
    await second.take()
    waiting = asyncio.create_task(third.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    second.leave()
    await waiting


async def test_a_slot_is_lost_by_who_keeps_it_too_long():
    free = asyncio.Semaphore(1)
    stuck, other = Slot(free, 0.01), Slot(free, 0.01)
    await stuck.take()
    async with asyncio.timeout(60):
        await other.take()
    stuck.leave()
    other.leave()


async def test_who_gives_up_waiting_takes_no_slot():
    free = asyncio.Semaphore(1)
    first, given_up, third = Slot(free), Slot(free), Slot(free)
    await first.take()
    waiting = asyncio.create_task(given_up.take())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    given_up.leave()
    first.leave()
    async with asyncio.timeout(60):
        await third.take()


async def test_runs_that_wait_for_a_model_or_a_tool_keep_no_other_from_working(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    runtime.executor.slot = partial(Slot, asyncio.Semaphore(1), 3600)
    endpoint.script(Delay(3600, Text("late")), key="model")
    endpoint.script(ToolCalls(bash("sleep 3600")), key="tool")
    patient = [
        await runtime.runs.start(ME, say(f"key:{key} begin"), thread_id=await thread(runtime))
        for key in ("model", "tool")
    ]
    async with asyncio.timeout(60):
        while len(endpoint.requests) < len(patient):
            await asyncio.sleep(0.01)
    endpoint.script(Text("quick"), key="quick")
    async with asyncio.timeout(60):
        started = await runtime.runs.start(ME, say("key:quick hi"), thread_id=await thread(runtime))
        assert (await ended(runtime, started)).status is RunStatus.SUCCESS
    for run in patient:
        assert (await runtime.runs.get(ME, run.run_id)).status is RunStatus.RUNNING
        await runtime.runs.cancel(ME, run.run_id, wait=True)
