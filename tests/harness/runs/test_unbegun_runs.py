"""A run that ends before its first step: what the person said to it stands in the thread all the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.harness.runs.run_house import ME, bash, ended, messages, say, thread, until

from deerflow.errors import NotFoundError
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime
from deerflow.storage.runs import RunStatus


@pytest.fixture
async def idle(make: Callable[..., Runtime]) -> AsyncIterator[Runtime]:
    """A runtime that executes nothing until the test starts it."""
    runtime = await asyncio.to_thread(make)
    await runtime.database.migrate()
    yield runtime
    await runtime.aclose()


async def said(runtime: Runtime, thread_id: str) -> list[tuple[str, str]]:
    """The thread as its state has it."""
    state = await runtime.threads.states.get(ME, thread_id)
    return [(message["type"], message["content"]) for message in state["values"].get("messages", [])]


async def closed(runtime: Runtime, thread_id: str) -> None:
    """Nothing is left to do in the thread."""
    async with asyncio.timeout(60):
        while await runtime.executor.parts.runs.active(thread_id):
            await asyncio.sleep(0.02)


async def test_the_model_has_no_key(settings: dict[str, Any], make: Callable[..., Runtime], endpoint: ScriptedOpenAI):
    del settings["models"][0]["api_key"]
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    where = await thread(runtime)
    for text in ("hello", "are you there?"):
        run = await runtime.runs.start(ME, say(text), thread_id=where)
        events = [event async for batch in runtime.runs.events(run) for event in batch]
        run = await ended(runtime, run)
        assert run.status is RunStatus.ERROR and "Model 'm' has no API key." in (run.error or "")
        shown = [message for event in events if event.method == "input" for message in event.data["values"]["messages"]]
        assert [message["content"] for message in shown] == [text]
    assert await said(runtime, where) == [("human", "hello"), ("human", "are you there?")]
    assert (await runtime.threads.states.get(ME, where))["next"] == []
    assert (await runtime.threads.get(ME, where))["values"]["title"] == "hello"
    assert [hit.snippet for hit in await runtime.threads.messages.search(ME, "there")] == ["are you there?"]
    assert len(await runtime.threads.transcript.turns(ME, where)) == 2
    await runtime.aclose()

    settings["models"][0]["api_key"] = "k"
    endpoint.script(Text("now I am"))
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    run = await ended(runtime, await runtime.runs.start(ME, say("and now?"), thread_id=where))
    assert run.status is RunStatus.SUCCESS and "are you there?" in json.dumps(endpoint.requests[-1]["messages"])
    await runtime.aclose()


async def test_a_key_that_is_missing_when_an_answer_comes_leaves_the_question(
    settings: dict[str, Any], make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(bash("echo hi")), Text("done"))
    before = await asyncio.to_thread(make)
    await before.start()
    run = await before.runs.start(ME, say("go", interrupt_before=["tools"]), thread_id=await thread(before))
    assert (await ended(before, run)).stop_reason == "interrupt"
    await before.aclose()
    key = settings["models"][0].pop("api_key")
    broken = await asyncio.to_thread(make)
    await broken.start()
    wrong = await ended(broken, await broken.runs.start(ME, RunRequest(), thread_id=run.thread_id))
    assert wrong.status is RunStatus.ERROR
    assert (await broken.threads.states.get(ME, run.thread_id))["next"] == ["tools"]
    await broken.aclose()
    settings["models"][0]["api_key"] = key
    after = await asyncio.to_thread(make)
    await after.start()
    run = await ended(after, await after.runs.start(ME, RunRequest(), thread_id=run.thread_id))
    assert run.status is RunStatus.SUCCESS and (await said(after, run.thread_id))[-1] == ("ai", "done")
    await after.aclose()


async def test_a_guardrail_that_is_not_installed_keeps_no_one_from_reading(
    settings: dict[str, Any], make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    settings["guardrails"] = {"enabled": True, "provider": {"use": "not_installed_here:Guardrail"}}
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    run = await ended(runtime, await runtime.runs.start(ME, say("hello"), thread_id=await thread(runtime)))
    assert run.status is RunStatus.ERROR and "ImportError" in (run.error or "") and not endpoint.requests
    assert await said(runtime, run.thread_id) == [("human", "hello")]
    await runtime.aclose()


@pytest.mark.parametrize("how", ["pending", "claimed"])
async def test_it_is_cancelled_before_it_begins(idle: Runtime, endpoint: ScriptedOpenAI, how: str):
    endpoint.script(Text("fine"))
    run = await idle.runs.start(ME, say("hello"), thread_id=await thread(idle))
    if how == "claimed":
        assert await idle.executor.parts.runs.claim(run.run_id, "a process that dies") is not None
    asked = await idle.runs.cancel(ME, run.run_id)
    assert asked.status is (RunStatus.INTERRUPTED if how == "pending" else RunStatus.RUNNING)
    await idle.start()
    run = await ended(idle, run)
    await closed(idle, run.thread_id)
    assert (await idle.runs.get(ME, run.run_id)).status is RunStatus.INTERRUPTED and not endpoint.requests
    assert await said(idle, run.thread_id) == [("human", "hello")]
    run = await ended(idle, await idle.runs.start(ME, say("and now"), thread_id=run.thread_id))
    assert await messages(idle, run) == [("human", "hello"), ("human", "and now"), ("ai", "fine")]


async def test_it_is_cancelled_while_it_waits_behind_another(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Delay(3, Text("first answer")), key="first")
    endpoint.script(Text("third answer"), key="third")
    first = await runtime.runs.start(ME, say("key:first"), thread_id=await thread(runtime))
    second = await runtime.runs.start(ME, say("second"), thread_id=first.thread_id)
    third = await runtime.runs.start(ME, say("key:third"), thread_id=first.thread_id)
    assert (await runtime.runs.cancel(ME, second.run_id, wait=True)).status is RunStatus.INTERRUPTED
    assert [run.run_id for run in await runtime.runs.list(ME, first.thread_id, status="interrupted")] == [second.run_id]
    with pytest.raises(NotFoundError):
        await runtime.runs.cancel(ME, second.run_id)
    assert (await runtime.runs.get(ME, first.run_id)).status is RunStatus.RUNNING
    third = await ended(runtime, third)
    texts = [text for _, text in await messages(runtime, third)]
    assert texts == ["key:first", "first answer", "second", "key:third", "third answer"]
    assert (await runtime.threads.get(ME, first.thread_id))["status"] == "idle"


async def test_it_is_cancelled_behind_another_and_none_follows(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Delay(2, Text("first answer")))
    first = await runtime.runs.start(ME, say("first"), thread_id=await thread(runtime))
    second = await runtime.runs.start(ME, say("second"), thread_id=first.thread_id)
    await runtime.runs.cancel(ME, second.run_id)
    assert (await ended(runtime, first)).status is RunStatus.SUCCESS
    await closed(runtime, first.thread_id)
    assert await said(runtime, first.thread_id) == [("human", "first"), ("ai", "first answer"), ("human", "second")]


@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
async def test_a_newer_run_takes_its_place_before_it_begins(idle: Runtime, endpoint: ScriptedOpenAI, strategy: str):
    endpoint.script(Text("answer"))
    first = await idle.runs.start(ME, say("first"), thread_id=await thread(idle))
    second = await idle.runs.start(ME, say("second", multitask_strategy=strategy), thread_id=first.thread_id)
    await idle.start()
    second = await ended(idle, second)
    kept = [("human", "first")] if strategy == "interrupt" else []
    assert await messages(idle, second) == [*kept, ("human", "second"), ("ai", "answer")]


async def test_it_is_rolled_back_before_it_begins(idle: Runtime, endpoint: ScriptedOpenAI):
    run = await idle.runs.start(ME, say("hello"), thread_id=await thread(idle))
    await idle.runs.cancel(ME, run.run_id, action="rollback")
    await idle.start()
    await closed(idle, run.thread_id)
    assert await said(idle, run.thread_id) == []
    assert (await idle.threads.states.get(ME, run.thread_id))["next"] == []


async def test_a_changed_message_is_cancelled_before_it_begins_and_stands_in_its_own_branch(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    endpoint.script(Text("one"), Delay(2, Text("two")))
    where = await thread(runtime)
    first = await ended(runtime, await runtime.runs.start(ME, say("first"), thread_id=where))
    second = await runtime.runs.start(ME, say("second"), thread_id=where)
    instead = say("second, otherwise", checkpoint_id=first.checkpoint_after)
    other = await runtime.runs.start(ME, instead, thread_id=where)
    await runtime.runs.cancel(ME, other.run_id)
    await ended(runtime, second)
    await closed(runtime, where)
    assert [text for _, text in await said(runtime, where)] == ["first", "one", "second, otherwise"]


async def test_a_thread_whose_run_was_cancelled_before_it_began_can_be_deleted(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")))
    first = await runtime.runs.start(ME, say("first"), thread_id=await thread(runtime))
    await until(runtime, first, "custom", "begun")
    second = await runtime.runs.start(ME, say("second"), thread_id=first.thread_id)
    await runtime.runs.cancel(ME, second.run_id)
    await runtime.threads.delete(ME, first.thread_id)
    with pytest.raises(NotFoundError):
        await runtime.threads.get(ME, first.thread_id)
