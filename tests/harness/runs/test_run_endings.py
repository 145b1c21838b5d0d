"""Runs that end before their time: nothing that was said to them is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from bench.scripted_openai import Delay, HttpError, ScriptedOpenAI, Text, ToolCalls
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from sqlalchemy import delete, update
from tests.harness.runs.run_house import ME, bash, ended, messages, say, thread, until

from deerflow.agents.factory import Agent
from deerflow.runs import attempt
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime
from deerflow.storage.runs import Run, RunStatus
from deerflow.storage.tables import run_events, runs

ONE_DATABASE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
LATE = {"role": "user", "content": "and in French"}


async def asked(endpoint: ScriptedOpenAI) -> None:
    """The model has been asked, and has not answered."""
    async with asyncio.timeout(60):
        while not endpoint.requests:
            await asyncio.sleep(0.01)


async def waits(runtime: Runtime, run: Run) -> bool:
    return bool(await runtime.executor.parts.runs.waiting_messages(run.run_id))


# messages that were not taken up ----------------------------------------------------------------------------------------


async def test_a_stopped_run_leaves_what_was_said_to_it_in_the_thread(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")), Text("en français"))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "begun")
    await runtime.runs.steer(ME, run.thread_id, LATE)
    found = [event async for batch in _stopping(runtime, run) for event in batch]
    assert [event.method for event in found][-2:] == ["values", "end"]
    assert any(event.method == "updates" and b'"stopped:' in event.json for event in found)
    said = await messages(runtime, run)
    assert [kind for kind, _ in said] == ["human", "ai", "tool", "human"] and said[-1][1] == "and in French"
    assert [hit.snippet for hit in await runtime.threads.messages.search(ME, "French")] == ["and in French"]
    run = await ended(runtime, await runtime.runs.start(ME, say("go on"), thread_id=run.thread_id))
    assert run.last_ai_message == "en français" and not await waits(runtime, run)
    assert "and in French" in json.dumps(endpoint.requests[-1]["messages"])


async def _stopping(runtime: Runtime, run: Run) -> AsyncIterator[list[Any]]:
    await runtime.runs.cancel(ME, run.run_id)
    async for batch in runtime.runs.events(run):
        yield batch


@ONE_DATABASE
async def test_what_a_cut_off_answer_answers_stands_before_it(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo begun; sleep 1")), Delay(0, Text(chunks=["Oui, ", "oui "] * 500), between=0.1))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "begun")
    await runtime.runs.steer(ME, run.thread_id, LATE)
    await until(runtime, run, "messages", "oui")
    await runtime.runs.steer(ME, run.thread_id, {"role": "user", "content": "no, in English"})
    run = await runtime.runs.cancel(ME, run.run_id, wait=True)
    said = await messages(runtime, run)
    assert [kind for kind, _ in said] == ["human", "ai", "tool", "human", "ai", "human"]
    assert (said[3][1], said[4][1][:8], said[5][1]) == ("and in French", "Oui, oui", "no, in English")


@ONE_DATABASE
async def test_a_failed_run_leaves_what_was_said_to_it_in_the_thread(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Delay(2.0, HttpError(401, "bad key")), Text("ok"))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await asked(endpoint)
    await runtime.runs.steer(ME, run.thread_id, LATE)
    run = await ended(runtime, run)
    assert run.status is RunStatus.ERROR and run.stop_reason == "auth"
    said = await messages(runtime, run)
    assert [kind for kind, _ in said] == ["human", "ai", "human"] and said[-1][1] == "and in French"
    assert not await waits(runtime, run)


@ONE_DATABASE
async def test_a_run_that_broke_leaves_what_was_said_to_it_in_the_thread(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Delay(2.0, ToolCalls(bash("echo hi"))), Text("ok"))
    request = say("go", config={"recursion_limit": 1})
    run = await runtime.runs.start(ME, request, thread_id=await thread(runtime))
    await asked(endpoint)
    await runtime.runs.steer(ME, run.thread_id, LATE)
    run = await ended(runtime, run)
    assert run.status is RunStatus.ERROR and "recursion_limit" in (run.error or "")
    said = await messages(runtime, run)
    assert [kind for kind, _ in said] == ["human", "ai", "tool", "human"] and said[-1][1] == "and in French"
    run = await ended(runtime, await runtime.runs.start(ME, say("go on"), thread_id=run.thread_id))
    assert run.status is RunStatus.SUCCESS


@ONE_DATABASE
async def test_a_run_that_took_too_long_leaves_what_was_said_to_it_in_the_thread(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    runtime = await asyncio.to_thread(make, runs={"timeout_seconds": 3.0, "drain_seconds": 0})
    await runtime.start()
    endpoint.script(ToolCalls(bash("sleep 30")))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await asked(endpoint)
    await runtime.runs.steer(ME, run.thread_id, LATE)
    run = await ended(runtime, run)
    assert run.status is RunStatus.TIMEOUT and (await messages(runtime, run))[-1] == ("human", "and in French")
    await runtime.aclose()


@pytest.mark.parametrize("request_", [RunRequest(), say("no, stop")], ids=["resumed", "new input"])
async def test_what_was_said_to_a_run_that_waits_for_an_answer_is_taken_up_by_the_next(
    runtime: Runtime, endpoint: ScriptedOpenAI, request_: RunRequest
):
    endpoint.script(Delay(2.0, ToolCalls(bash("echo hi"))), Text("d'accord"))
    request = say("go", interrupt_before=["tools"])
    run = await runtime.runs.start(ME, request, thread_id=await thread(runtime))
    await asked(endpoint)
    await runtime.runs.steer(ME, run.thread_id, LATE)
    assert (await ended(runtime, run)).stop_reason == "interrupt"
    run = await ended(runtime, await runtime.runs.start(ME, request_, thread_id=run.thread_id))
    assert run.status is RunStatus.SUCCESS and not await waits(runtime, run)
    said = await messages(runtime, run)
    assert [text for kind, text in said if kind == "human"] == (
        ["go", "and in French"] if request_.input is None else ["go", "and in French", "no, stop"]
    )
    assert "and in French" in json.dumps(endpoint.requests[-1]["messages"]) and said[-1] == ("ai", "d'accord")


# the end of the process -------------------------------------------------------------------------------------------------


async def test_a_process_that_ends_waits_until_a_stopped_run_has_left_its_thread_in_order(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(*arguments: Any, **options: Any) -> Any:
        entered.set()
        await go_on.wait()
        return await settle(*arguments, **options)

    settle = attempt.settle
    monkeypatch.setattr(attempt, "settle", slowly)
    before = await asyncio.to_thread(make)
    await before.start()
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")))
    run = await before.runs.start(ME, say("go"), thread_id=await thread(before))
    await until(before, run, "custom", "begun")
    await before.runs.cancel(ME, run.run_id)
    await entered.wait()
    closing = asyncio.create_task(before.aclose())
    assert not (await asyncio.wait([closing], timeout=0.3))[0]
    go_on.set()
    await closing

    after = await asyncio.to_thread(make)
    run = await after.runs.get(ME, run.run_id)
    assert run.status is RunStatus.INTERRUPTED
    assert "the user stopped the run" in (await messages(after, run))[-1][1]
    await after.aclose()


async def test_a_process_that_ends_does_not_wait_for_ever(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    entered = asyncio.Event()

    async def never(*arguments: Any, **options: Any) -> None:
        entered.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(attempt, "settle", never)
    monkeypatch.setattr("deerflow.runs.finalize.PATIENCE", 0.1)
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "begun")
    await runtime.runs.cancel(ME, run.run_id)
    await entered.wait()
    async with asyncio.timeout(60):
        await runtime.aclose()


async def test_a_process_that_died_between_two_steps_of_settling_leaves_no_call_without_a_result(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    entered = asyncio.Event()

    async def half(agent: Agent, config: RunnableConfig, **_: Any) -> None:
        await agent.aupdate_state(config, None, as_node=END)
        entered.set()
        await asyncio.Event().wait()

    before = await asyncio.to_thread(make)
    await before.start()
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")))
    run = await before.runs.start(ME, say("go"), thread_id=await thread(before))
    await until(before, run, "custom", "begun")
    with monkeypatch.context() as patched:
        patched.setattr(attempt, "settle", half)
        patched.setattr("deerflow.runs.finalize.PATIENCE", 0.1)
        await before.runs.cancel(ME, run.run_id)
        await entered.wait()
        await before.aclose()

    after = await asyncio.to_thread(make)
    await after.start()
    async with asyncio.timeout(60):
        while not (found := await after.runs.get(ME, run.run_id)).ended:
            await asyncio.sleep(0.05)
    assert found.status is RunStatus.INTERRUPTED
    assert "the user stopped the run" in (await messages(after, run))[-1][1]
    await after.aclose()


# where a run was told to stop -------------------------------------------------------------------------------------------


@ONE_DATABASE
@pytest.mark.parametrize("hooks", [{"interrupt_after": ["model"]}, {"interrupt_after": "*"}, {"interrupt_before": "*"}])
async def test_a_run_whose_process_died_at_a_break_stands_there_when_it_is_taken_up(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, hooks: dict[str, Any]
):
    endpoint.script(ToolCalls(bash("echo hi")), Text("done"))
    before = await asyncio.to_thread(make)
    await before.start()
    start = say("go", **hooks)
    run = await before.runs.start(ME, start, thread_id=await thread(before))
    assert (await ended(before, run)).stop_reason == "interrupt"
    if hooks == {"interrupt_before": "*"}:  # before the model; once more, and before the tools
        request = RunRequest(interrupt_before="*")
        run = await before.runs.start(ME, request, thread_id=run.thread_id)
        assert (await ended(before, run)).stop_reason == "interrupt"
    died = update(runs).where(runs.c.run_id == run.run_id).values(status="running", stop_reason=None, ended_at=None)
    await before.database.write(lambda connection: connection.execute(died) and None)
    await before.aclose()

    after = await asyncio.to_thread(make)
    await after.start()
    async with asyncio.timeout(60):
        while not (found := await after.runs.get(ME, run.run_id)).ended:
            await asyncio.sleep(0.05)
    assert found.stop_reason == "interrupt" and found.attempt == 2
    assert (await after.threads.states.get(ME, run.thread_id))["next"] == ["tools"]
    run = await ended(after, await after.runs.start(ME, RunRequest(), thread_id=run.thread_id))
    assert run.last_ai_message == "done"
    await after.aclose()


# turns that repeat themselves -------------------------------------------------------------------------------------------


@ONE_DATABASE
async def test_a_forced_stop_is_the_run_s_reason_and_says_what_was_repeated(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
) -> None:
    """Of a subagent, whose call has failed, and of the lead agent, by the number that the configuration sets."""
    runtime = await asyncio.to_thread(make, loop_detection={"hard_limit": 3})
    await runtime.start()
    try:
        task = ("task", {"description": "look", "prompt": "key:a", "subagent_type": "general-purpose"})
        endpoint.script(*[ToolCalls(bash("echo 1"))] * 3, Text("half of it"), key="a")
        endpoint.script(ToolCalls(task), *[ToolCalls(bash("echo 2"))] * 3, ToolCalls(bash("echo 2")))
        request = say("go", context={"subagent_enabled": True})
        run = await ended(runtime, await runtime.runs.start(ME, request, thread_id=await thread(runtime)))
        assert (run.status, run.stop_reason) == (RunStatus.SUCCESS, "loop")
        assert "bash (echo 2) was called 3 times with the same result" in (run.last_ai_message or "")
        (part,) = await runtime.threads.transcript.tasks(ME, run.thread_id)
        repeated = "it repeated itself: bash (echo 1) was called 3 times with the same result"
        assert (part["status"], part["error"], part["text"]) == ("loop", repeated, "half of it")
        values = await runtime.runs.values(run)
        (result,) = [message for message in values["messages"] if message.get("name") == "task"]
        assert result["status"] == "error" and result["content"].startswith(f"Task stopped. Error: {repeated}.")
    finally:
        await runtime.aclose()


@ONE_DATABASE
async def test_loop_detection_can_be_off(make: Callable[..., Runtime], endpoint: ScriptedOpenAI) -> None:
    runtime = await asyncio.to_thread(make, loop_detection={"enabled": False})
    await runtime.start()
    try:
        endpoint.script(*[ToolCalls(bash("echo 2"))] * 8, Text("done"))
        run = await ended(runtime, await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime)))
        assert (run.stop_reason, run.last_ai_message) == ("end_turn", "done")
    finally:
        await runtime.aclose()


@ONE_DATABASE
async def test_a_stream_of_forgotten_events_says_so(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("Done."))
    run = await ended(runtime, await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime)))
    assert not (await runtime.timelines.of(ME, run.run_id))["forgotten"]
    last = max([event.seq async for batch in runtime.runs.events(run) for event in batch])
    assert [batch async for batch in runtime.runs.events(run, after=last)] == []
    await runtime.database.write(lambda connection: connection.execute(delete(run_events)) and None)
    found = [event async for batch in runtime.runs.events(run) for event in batch]
    assert [event.method for event in found] == ["metadata", "end"]
    assert found[-1].data == {"status": "success", "stop_reason": "forgotten"}
    assert (await runtime.timelines.of(ME, run.run_id))["forgotten"]
