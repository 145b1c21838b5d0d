"""Runs from start to end, over a real graph, real sandbox and both databases; the model alone is scripted."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from bench.scripted_openai import Cut, Delay, HttpError, ScriptedOpenAI, Text, ToolCalls
from sqlalchemy import delete, update
from tests.harness.runs.run_house import ME, bash, ended, messages, say, thread, until

from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.events.streams.client_events import messages_in
from deerflow.events.streams.langgraph_sse import Frames
from deerflow.identity import Principal
from deerflow.runs import attempt
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime
from deerflow.sandbox.tool_image import MANIFEST
from deerflow.storage.runs import Run, RunStatus
from deerflow.storage.search import message_search
from deerflow.storage.tables import run_events, runs
from deerflow.storage.thread_lock import LockLostError
from deerflow.threads.checkpoint import config_of

SOMEONE_ELSE = Principal("someone")


# the life of a run ------------------------------------------------------------------------------------------------------


async def test_a_run_goes_from_pending_to_success_and_tells_what_it_used(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo hi")), Text("All done."))
    run = await runtime.runs.start(ME, say("do it", metadata={"k": "v"}), thread_id=await thread(runtime))
    assert run.status is RunStatus.PENDING
    methods = [event.method async for batch in runtime.runs.events(run) for event in batch]
    run = await runtime.runs.get(ME, run.run_id)
    assert (methods[0], methods[-1]) == ("metadata", "end") and "updates" in methods
    assert run.status is RunStatus.SUCCESS and run.stop_reason == "end_turn" and run.attempt == 1
    assert (
        run.llm_calls == 2
        and run.input_tokens > 0
        and run.last_ai_message == "All done."
        and run.metadata == {"k": "v"}
    )
    assert [kind for kind, _ in await messages(runtime, run)] == ["human", "ai", "tool", "ai"]
    assert (await runtime.threads.get(ME, run.thread_id))["status"] == "idle"


async def test_a_thread_is_called_as_it_begins_from_the_first_moment_on(runtime: Runtime, endpoint: ScriptedOpenAI):
    async def title() -> str | None:
        found, _ = await runtime.threads.search(ME)
        return found[0]["values"].get("title")

    endpoint.script(Delay(30, Text("never heard")))
    run = await runtime.runs.start(ME, say("What is\nthe time?"), thread_id=await thread(runtime))
    assert await title() == "What is the time?"
    await runtime.runs.cancel(ME, run.run_id, action="rollback", wait=True)
    assert await title() is None


async def test_the_first_word_goes_out_before_the_rest_is_taken_in(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Delay(2, Text(chunks=["word "] * 300)))  # until then somebody listens
    run = await runtime.runs.start(ME, say("hi"), thread_id=await thread(runtime))
    told = [sum(event.method == "messages" for event in batch) async for batch in runtime.runs.events(run)]
    assert next(pieces for pieces in told if pieces) < 10 and sum(told) > 290


async def test_a_model_that_cannot_answer_makes_the_run_an_error_that_says_why(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    endpoint.script(HttpError(401, "bad key"))
    run = await ended(runtime, await runtime.runs.start(ME, say("hi"), thread_id=await thread(runtime)))
    assert run.status is RunStatus.ERROR and run.stop_reason == "auth" and run.error
    endpoint.script(Text("better"))
    run = await ended(runtime, await runtime.runs.start(ME, say("again"), thread_id=run.thread_id))
    assert run.status is RunStatus.SUCCESS


async def test_half_an_answer_stays_in_front_of_the_new_one(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Cut(3, "half an answer that never ends"), Text("the whole answer"))
    run = await runtime.runs.start(ME, say("hi"), thread_id=await thread(runtime))
    said = [event async for batch in runtime.runs.events(run) for event in batch]
    retry = next(number for number, event in enumerate(said) if event.method == "custom")
    assert "half" in str([event.data for event in said[:retry] if event.method == "messages"])
    assert said[retry + 1].method == "values" and said[retry + 2].method == "messages"
    halves = [("ai", "half an answer "), ("ai", "the whole answer")]
    assert await messages(runtime, run) == [("human", "hi"), *halves]


async def test_a_request_that_cannot_be_leaves_the_thread_free(runtime: Runtime, endpoint: ScriptedOpenAI):
    where = await thread(runtime)
    for wrong in (
        say("x", assistant_id="nobody"),
        RunRequest(input={"messages": [{"role": "nonsense", "content": "x"}]}),
        say("x", context={"mode": "slow"}),
        say("x", context={"thread_id": "another"}),
        say("x", config={"configurable": ["no", "mapping"]}),
        say("x", webhook="ftp://example.org"),
    ):
        with pytest.raises(InvalidRequestError):
            await runtime.runs.start(ME, wrong, thread_id=where)
    assert await runtime.runs.list(ME, where) == []
    endpoint.script(Text("fine"))
    run = await runtime.runs.start(ME, say("x", multitask_strategy="reject"), thread_id=where)
    assert (await ended(runtime, run)).status is RunStatus.SUCCESS


async def test_foreign_threads_and_runs_are_not_there(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("mine"))
    run = await ended(runtime, await runtime.runs.start(ME, say("hi"), thread_id=await thread(runtime)))
    with pytest.raises(NotFoundError):
        await runtime.runs.start(SOMEONE_ELSE, say("hi"), thread_id=run.thread_id)
    for call in (
        runtime.runs.get(SOMEONE_ELSE, run.run_id),
        runtime.runs.cancel(SOMEONE_ELSE, run.run_id),
        runtime.runs.delete(SOMEONE_ELSE, run.run_id),
        runtime.runs.list(SOMEONE_ELSE, run.thread_id),
        runtime.runs.steer(SOMEONE_ELSE, run.thread_id, {"role": "user", "content": "x"}),
    ):
        with pytest.raises(NotFoundError):
            await call
    assert await runtime.runs.cancel_many(SOMEONE_ELSE, run_ids=[run.run_id]) == 0


async def test_ids_and_fields_of_given_messages_are_kept_but_not_what_only_we_may_say(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    endpoint.script(Text("ok"))
    given = {
        "type": "human",
        "id": "my-id",
        "content": [{"type": "text", "text": "hello"}],
        "additional_kwargs": {"hide_from_ui": True, "facts": {"date": "1970"}, "error": {"kind": "x"}},
    }
    run = await runtime.runs.start(ME, RunRequest(input={"messages": [given]}), thread_id=await thread(runtime))
    first = (await runtime.runs.values(await ended(runtime, run)))["messages"][0]
    assert first["id"] == "my-id" and first["content"] == given["content"]
    kwargs = first["additional_kwargs"]
    assert kwargs["hide_from_ui"] and kwargs["facts"]["date"] != "1970" and "error" not in kwargs


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Mars/Base", "../../etc/passwd", "Europe", None]
)
async def test_the_date_is_the_person_s(runtime: Runtime, endpoint: ScriptedOpenAI, zone: str | None):
    """In two zones that never have the same date; a name that no machine knows counts as none. Steering has the run's."""
    endpoint.script(ToolCalls(bash("echo begun; sleep 1")), Text("ok"))
    run = await runtime.runs.start(ME, say("go", context={"time_zone": zone}), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "begun")
    await runtime.runs.steer(ME, run.thread_id, {"role": "user", "content": "and now"})
    run = await ended(runtime, run)
    there = run.created_at.astimezone(ZoneInfo(zone) if zone and zone.startswith("Pacific/") else None)
    values = await runtime.runs.values(run)
    people = [message for message in values["messages"] if message["type"] == "human"]
    assert f"<current_date>{there:%Y-%m-%d, %A}</current_date>" in endpoint.requests[0]["messages"][-1]["content"]
    assert [message["additional_kwargs"]["timestamp"][-6:] for message in people] == [there.isoformat()[-6:]] * 2


# several runs of a thread -----------------------------------------------------------------------------------------------


async def test_a_second_run_is_refused_where_that_is_asked_for(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")), key="first")
    run = await runtime.runs.start(ME, say("key:first"), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "begun")
    with pytest.raises(ConflictError) as refused:
        await runtime.runs.start(ME, say("x", multitask_strategy="reject"), thread_id=run.thread_id)
    assert refused.value.code == "thread_busy"
    await runtime.runs.cancel(ME, run.run_id, wait=True)


async def test_queued_runs_come_one_after_the_other_in_order(runtime: Runtime, endpoint: ScriptedOpenAI):
    where = await thread(runtime)
    for number in range(4):
        endpoint.script(ToolCalls(bash(f"echo {number}")), Text(f"answer {number}"), key=f"n{number}")
    started = [await runtime.runs.start(ME, say(f"key:n{number}"), thread_id=where) for number in range(4)]
    for run in started:
        assert (await ended(runtime, run)).status is RunStatus.SUCCESS
    said = [text for kind, text in await messages(runtime, started[-1]) if kind in ("human", "ai") and text]
    assert said == [part for number in range(4) for part in (f"key:n{number}", f"answer {number}")]


@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
async def test_a_new_run_takes_the_place_of_the_old_one_when_that_has_unwound(
    runtime: Runtime, endpoint: ScriptedOpenAI, strategy: str
):
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")), key="first")
    endpoint.script(Text("second answer"), key="second")
    where = await thread(runtime)
    first = await runtime.runs.start(ME, say("key:first"), thread_id=where)
    await until(runtime, first, "custom", "begun")
    second = await runtime.runs.start(ME, say("key:second", multitask_strategy=strategy), thread_id=where)
    assert (await ended(runtime, second)).status is RunStatus.SUCCESS
    said = [text for _, text in await messages(runtime, second)]
    if strategy == "interrupt":
        assert (await runtime.runs.get(ME, first.run_id)).status is RunStatus.INTERRUPTED
        assert (
            said[0] == "key:first" and any("stopped the run" in text for text in said) and said[-1] == "second answer"
        )
    else:
        with pytest.raises(NotFoundError):
            await runtime.runs.get(ME, first.run_id)
        assert said == ["key:second", "second answer"]


async def test_a_run_that_waits_for_its_turn_can_be_cancelled(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")), key="first")
    first = await runtime.runs.start(ME, say("key:first"), thread_id=await thread(runtime))
    await until(runtime, first, "custom", "begun")
    second = await runtime.runs.start(ME, say("unsaid words"), thread_id=first.thread_id)
    waiting = asyncio.create_task(runtime.runs.wait(ME, second.run_id))
    assert (await runtime.runs.cancel(ME, second.run_id)).status is RunStatus.INTERRUPTED
    assert (await waiting).status is RunStatus.INTERRUPTED
    assert (await runtime.runs.get(ME, first.run_id)).status is RunStatus.RUNNING
    await runtime.runs.cancel(ME, first.run_id, wait=True)
    assert "unsaid words" not in json.dumps(endpoint.requests)


# stopping and steering --------------------------------------------------------------------------------------------------


async def test_a_stopped_run_keeps_its_partial_answer(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Delay(0, Text(chunks=["Half an ", "answer "] + ["and "] * 500), between=0.1))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "messages", "answer")
    run = await runtime.runs.cancel(ME, run.run_id, wait=True)
    assert run.status is RunStatus.INTERRUPTED and run.last_ai_message.startswith("Half an answer")
    values = await runtime.runs.values(run)
    assert values["messages"][-1]["content"].startswith("Half an answer")
    assert values["messages"][-1]["additional_kwargs"]["stopped"]
    assert (await runtime.threads.get(ME, run.thread_id))["status"] == "interrupted"
    with pytest.raises(NotFoundError):
        await runtime.runs.cancel(ME, run.run_id)


async def test_a_run_that_is_stopped_before_the_next_attempt_keeps_the_half_answer(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    endpoint.script(Cut(3, "Half an answer that never ends"), HttpError(429, headers={"Retry-After": "50"}))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "Trying again")
    run = await runtime.runs.cancel(ME, run.run_id, wait=True)
    message = (await runtime.runs.values(run))["messages"][-1]
    assert (message["content"], message["additional_kwargs"]["stopped"]) == ("Half an answer", True)


async def test_results_of_parallel_calls_are_kept_when_one_of_them_is_stopped(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(bash("echo fast"), bash("sleep 30")), Text("went on"))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "messages", '"fast"')
    await runtime.runs.cancel(ME, run.run_id, wait=True)
    results = [text for kind, text in await messages(runtime, run) if kind == "tool"]
    assert results[0] == "fast" and "the user stopped the run" in results[1]
    run = await ended(runtime, await runtime.runs.start(ME, say("and now"), thread_id=run.thread_id))
    assert run.last_ai_message == "went on" and "fast" in json.dumps(endpoint.requests[-1]["messages"])


async def test_rolling_back_undoes_what_the_run_said_and_forgets_it(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("first answer"))
    where = await thread(runtime)
    first = await ended(runtime, await runtime.runs.start(ME, say("first"), thread_id=where))
    endpoint.script(ToolCalls(bash("echo begun; sleep 30")))
    second = await runtime.runs.start(ME, say("second"), thread_id=where)
    await until(runtime, second, "custom", "begun")
    await runtime.runs.cancel(ME, second.run_id, action="rollback", wait=True)
    with pytest.raises(NotFoundError):
        await runtime.runs.get(ME, second.run_id)
    state = await runtime.threads.states.get(ME, where)
    assert [message["content"] for message in state["values"]["messages"]] == ["first", "first answer"]
    assert state["next"] == [] and [run.run_id for run in await runtime.runs.list(ME, where)] == [first.run_id]


async def test_a_message_sent_while_a_run_works_reaches_its_next_step(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo begun; sleep 1")), Text("in French"))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "begun")
    assert (await runtime.runs.steer(ME, run.thread_id, {"role": "user", "content": "in French, please"})) is not None
    run = await ended(runtime, run)
    assert [kind for kind, _ in await messages(runtime, run)] == ["human", "ai", "tool", "human", "ai"]
    assert "in French, please" in json.dumps(endpoint.requests[-1]["messages"][-1])
    assert "sent this message while you were working" in json.dumps(endpoint.requests[-1]["messages"][-1])
    assert "while you were working" not in json.dumps(endpoint.requests[0])
    assert len(await runtime.threads.transcript.turns(ME, run.thread_id)) == 2


async def test_a_message_that_comes_during_the_last_step_is_answered_by_the_same_run(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    endpoint.script(Delay(0, Text(chunks=["first ", "answer"]), between=1.0), Text("second answer"))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "messages", "first")
    await runtime.runs.steer(ME, run.thread_id, {"role": "user", "content": "wait, one more thing"})
    run = await ended(runtime, run)
    assert [text for _, text in await messages(runtime, run)] == [
        "go",
        "first answer",
        "wait, one more thing",
        "second answer",
    ]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_an_accepted_run_a_message_to_it_and_the_beginning_of_a_call_are_on_the_disk(
    runtime: Runtime, endpoint: ScriptedOpenAI
):
    statements: list[str] = []
    await asyncio.wrap_future(runtime.database.sqlite.submit(lambda db: db.set_trace_callback(statements.append)))
    endpoint.script(ToolCalls(bash("echo begun; sleep 1")), Text("done"))
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    await until(runtime, run, "custom", "begun")
    await runtime.runs.steer(ME, run.thread_id, {"role": "user", "content": "faster"})
    await ended(runtime, run)
    synced, levels = False, {"runs": set[bool](), "steering": set[bool](), "tool_executions": set[bool]()}
    for statement in statements:
        if "PRAGMA synchronous" in statement:
            synced = "FULL" in statement
        if (inserted := re.match(r"INSERT INTO (\w+)", statement)) and inserted[1] in levels:
            levels[inserted[1]].add(synced)
    assert levels == {"runs": {True}, "steering": {True}, "tool_executions": {True}}


async def test_nothing_can_be_steered_that_does_not_run(runtime: Runtime):
    with pytest.raises(ConflictError):
        await runtime.runs.steer(ME, await thread(runtime), {"role": "user", "content": "x"})


async def test_a_run_that_takes_too_long_is_ended_as_timeout(make: Callable[..., Runtime], endpoint: ScriptedOpenAI):
    runtime = await asyncio.to_thread(make, runs={"timeout_seconds": 1.0, "drain_seconds": 0})
    await runtime.start()
    endpoint.script(ToolCalls(bash("sleep 30")))
    run = await ended(runtime, await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime)))
    assert run.status is RunStatus.TIMEOUT and "longer than 1 seconds" in (run.error or "")
    await runtime.aclose()


# going on afterwards ----------------------------------------------------------------------------------------------------


async def test_a_run_that_a_stopping_process_leaves_goes_on_in_the_next_and_repeats_nothing(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    endpoint.script(
        ToolCalls(bash("echo one >> log")), ToolCalls(bash("echo two >> log; echo begun; sleep 30")), Text("finished")
    )
    before = await asyncio.to_thread(make)
    await before.start()
    run = await before.runs.start(ME, say("go"), thread_id=await thread(before))
    await until(before, run, "custom", "begun")
    seen = [event.seq async for batch in _live(before, run) for event in batch]
    await before.aclose()
    after = await asyncio.to_thread(make)
    await after.start()
    later = [event async for batch in after.runs.events(run, after=seen[-1]) for event in batch]
    run = await after.runs.get(ME, run.run_id)
    assert run.status is RunStatus.SUCCESS and run.attempt == 2
    assert later[0].method == "metadata" and all(event.seq > seen[-1] for event in later)
    results = [text for kind, text in await messages(after, run) if kind == "tool"]
    assert "may or may not have taken effect" in results[1]
    endpoint.script(ToolCalls(bash("cat log")), Text("counted"))
    counted = await ended(after, await after.runs.start(ME, say("count"), thread_id=run.thread_id))
    assert [text for kind, text in await messages(after, counted) if kind == "tool"][-1] == "one\ntwo"
    await after.aclose()


async def _live(runtime: Runtime, run: Run) -> AsyncIterator[list[Any]]:
    """What the run has said until now."""
    async for batch in runtime.runs.events(run, heartbeat=0.1):
        if not batch:
            return
        yield batch


async def test_a_run_that_died_before_its_input_was_saved_gets_its_input_again(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    runtime = await asyncio.to_thread(make)
    await runtime.database.migrate()
    run = await runtime.runs.start(ME, say("hello"), thread_id=await thread(runtime))
    assert await runtime.executor.parts.runs.claim(run.run_id, "a process that dies") is not None
    endpoint.script(Text("hello to you"))
    await runtime.start()
    run = await ended(runtime, run)
    assert run.status is RunStatus.SUCCESS and run.attempt == 2
    assert await messages(runtime, run) == [("human", "hello"), ("ai", "hello to you")]
    await runtime.aclose()


async def test_a_run_that_died_before_its_input_was_read_goes_on_with_it(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    before = await asyncio.to_thread(make)
    await before.start()
    endpoint.script(Text("Good morning."))
    first = await ended(before, await before.runs.start(ME, say("Hello."), thread_id=await thread(before)))
    endpoint.script(Text("never told"))
    run = await ended(before, await before.runs.start(ME, say("And about whales?"), thread_id=first.thread_id))
    history = await before.threads.states.history(ME, run.thread_id)
    saved = next(state for state in history if state["next"] == ["__start__"])
    await before.checkpointer.adelete_after(run.thread_id, saved["checkpoint"]["checkpoint_id"])
    died = (
        update(runs).where(runs.c.run_id == run.run_id).values(status="running", ended_at=None, checkpoint_after=None)
    )
    await before.database.write(lambda connection: connection.execute(died) and None)
    for table in (run_events, message_search):
        forget = delete(table).where(table.c.thread_id == run.thread_id)
        await before.database.write(lambda connection, forget=forget: connection.execute(forget) and None)
    await before.aclose()

    endpoint.script(Text("They sing."))
    after = await asyncio.to_thread(make)
    await after.start()
    frames = Frames(["values"], False, lambda: after.runs.values(run))
    told = b"".join([await frames.render(batch) async for batch in after.runs.events(run)]).decode()
    first_state = json.loads(told.split("event: values\r\ndata: ")[1].split("\r\n")[0])
    run = await after.runs.get(ME, run.run_id)
    assert run.status is RunStatus.SUCCESS and run.attempt == 2
    assert [text for _, text in await messages(after, run)] == [
        "Hello.",
        "Good morning.",
        "And about whales?",
        "They sing.",
    ]
    assert [message["content"] for message in first_state["messages"]][2:3] == ["And about whales?"]
    assert len(await after.threads.messages.search(ME, "whales")) == 1
    await after.aclose()


@pytest.mark.parametrize("settings", ["postgres"], indirect=True)
async def test_a_process_that_lost_its_run_cannot_save_steps_of_it(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("hi"))
    run = await ended(runtime, await runtime.runs.start(ME, say("hello"), thread_id=await thread(runtime)))
    reader = await runtime.agent_provider.reader()
    update = {"messages": [{"role": "user", "content": "late"}]}
    for token in (run.epoch - 1, run.epoch):
        graph = reader.copy(update={"checkpointer": runtime.checkpointer.per_run((run.run_id, token))})
        saving = graph.aupdate_state(config_of(run.thread_id), update, as_node="model")
        if token < run.epoch:
            with pytest.raises(LockLostError):
                await saving
            assert len(await messages(runtime, run)) == 2
        else:
            await saving
    assert len((await runtime.threads.states.get(ME, run.thread_id))["values"]["messages"]) == 3


# where runs begin -------------------------------------------------------------------------------------------------------


async def test_asking_again_from_an_earlier_point_makes_a_branch(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("one"), Text("two"), Text("another two"))
    where = await thread(runtime)
    for text in ("first", "second"):
        await ended(runtime, await runtime.runs.start(ME, say(text), thread_id=where))
    turn = (await runtime.threads.transcript.turns(ME, where))[-1]
    branch = say("second, otherwise", checkpoint_id=turn["checkpoint_id"])
    run = await ended(runtime, await runtime.runs.start(ME, branch, thread_id=where))
    assert [text for _, text in await messages(runtime, run)] == ["first", "one", "second, otherwise", "another two"]


async def test_a_run_without_a_thread_has_one_of_its_own(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("alone"))
    run = await ended(runtime, await runtime.runs.start(ME, say("hi")))
    assert run.status is RunStatus.SUCCESS and run.kwargs["delete_thread"]


async def test_a_run_that_is_to_begin_later_leaves_its_thread_to_others(runtime: Runtime, endpoint: ScriptedOpenAI):
    def answer(request: dict[str, Any]) -> Text:
        return Text("later" if "later" in str(request["messages"][-1]) else "now")

    endpoint.script(answer, answer)
    where = await thread(runtime)
    later = await runtime.runs.start(ME, say("later", after_seconds=1.5), thread_id=where)
    now = await runtime.runs.start(ME, say("now", multitask_strategy="reject"), thread_id=where)
    assert (await ended(runtime, now)).status is RunStatus.SUCCESS
    assert (await ended(runtime, later)).last_ai_message == "later"


async def test_a_graph_stops_where_it_is_asked_to_and_goes_on(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo hi")), Text("done"))
    where = await thread(runtime)
    run = await ended(runtime, await runtime.runs.start(ME, say("go", interrupt_before=["tools"]), thread_id=where))
    assert run.status is RunStatus.INTERRUPTED and run.stop_reason == "interrupt"
    assert (await runtime.threads.states.get(ME, where))["next"] == ["tools"]
    run = await ended(runtime, await runtime.runs.start(ME, RunRequest(), thread_id=where))
    assert run.status is RunStatus.SUCCESS and run.last_ai_message == "done"


async def test_a_command_may_come_with_an_empty_input(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(bash("echo hi")))
    where = await thread(runtime)
    await ended(runtime, await runtime.runs.start(ME, say("go", interrupt_before=["tools"]), thread_id=where))
    resolved = RunRequest.model_validate({"input": {}, "command": {"goto": "__end__"}})
    run = await ended(runtime, await runtime.runs.start(ME, resolved, thread_id=where))
    assert run.status is RunStatus.SUCCESS
    assert (await runtime.threads.states.get(ME, where))["next"] == []
    with pytest.raises(ValueError, match="not both"):
        RunRequest.model_validate({"input": {"messages": []}, "command": {"goto": "__end__"}})


async def test_going_on_with_nothing_is_an_error_that_says_so(runtime: Runtime):
    run = await ended(runtime, await runtime.runs.start(ME, RunRequest(), thread_id=await thread(runtime)))
    assert run.status is RunStatus.ERROR and "send a message" in (run.error or "")


@pytest.mark.parametrize("mode", ["tasks", "checkpoints", "debug", "events"])
async def test_costly_modes_are_recorded_for_those_who_ask(runtime: Runtime, endpoint: ScriptedOpenAI, mode: str):
    endpoint.script(Text("hi"))
    run = await runtime.runs.start(ME, say("go", stream_mode=[mode]), thread_id=await thread(runtime))
    methods = {event.method async for batch in runtime.runs.events(run) for event in batch}
    assert mode in methods and (await ended(runtime, run)).status is RunStatus.SUCCESS


async def test_the_first_message_of_a_thread_can_be_asked_anew(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("one"), Text("another one"))
    where = await thread(runtime)
    await ended(runtime, await runtime.runs.start(ME, say("first"), thread_id=where))
    [turn] = await runtime.threads.transcript.turns(ME, where)
    branch = say("first, otherwise", checkpoint_id=turn["checkpoint_id"])
    run = await ended(runtime, await runtime.runs.start(ME, branch, thread_id=where))
    assert await messages(runtime, run) == [("human", "first, otherwise"), ("ai", "another one")]
    assert (await runtime.runs.values(run))["title"] == "first, otherwise"


async def test_a_checkpoint_that_is_not_there_is_no_place_to_begin(runtime: Runtime, endpoint: ScriptedOpenAI):
    with pytest.raises(NotFoundError):
        await runtime.runs.start(ME, say("x", checkpoint_id="nowhere"), thread_id=await thread(runtime))


async def test_what_cannot_begin_leaves_no_thread_behind(runtime: Runtime, endpoint: ScriptedOpenAI):
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"deeper": deep}
    somewhere = "5bd4a1f0-6c0e-4b57-9f0e-2f6c1f8b8f0a"
    for thread_id in (None, somewhere):
        for wrong in ({"checkpoint_id": "nowhere"}, {"metadata": deep}):
            request = say("x", if_not_exists="create", **wrong)
            with pytest.raises((NotFoundError, InvalidRequestError)):
                await runtime.runs.start(ME, request, thread_id=thread_id)
    assert await runtime.threads.count(ME) == 0


async def test_a_message_for_a_run_that_has_yet_to_begin_is_there_at_its_first_step(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    runtime = await asyncio.to_thread(make)
    await runtime.database.migrate()
    run = await runtime.runs.start(ME, say("hello"), thread_id=await thread(runtime))
    await runtime.runs.steer(ME, run.thread_id, {"role": "user", "content": "and this"})
    endpoint.script(Text("both read"))
    await runtime.start()
    run = await ended(runtime, run)
    assert await messages(runtime, run) == [("human", "hello"), ("human", "and this"), ("ai", "both read")]
    await runtime.aclose()


async def test_what_a_dying_process_did_not_write_into_the_log_is_told_by_the_next(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(bash("echo one")), ToolCalls(bash("echo begun; sleep 30")), Text("finished"))
    before = await asyncio.to_thread(make)
    await before.start()
    run = await before.runs.start(ME, say("go"), thread_id=await thread(before))
    await until(before, run, "custom", "begun")
    await before.aclose()
    after = await asyncio.to_thread(make)
    lost = delete(run_events).where(run_events.c.run_id == run.run_id)
    await after.database.write(lambda connection: connection.execute(lost) and None)
    await after.start()
    said = [event async for batch in after.runs.events(run) for event in batch]
    updates = [node for event in said if event.method == "updates" for node in event.data]
    assert updates == ["model", "tools", "model", "tools", "model"]
    run = await ended(after, run)
    assert run.llm_calls == 3 and run.message_count == 6 and run.status is RunStatus.SUCCESS
    await after.aclose()


async def test_a_message_that_steered_a_run_is_told_again_when_the_log_lost_it(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    endpoint.script(
        ToolCalls(bash("echo begun; sleep 1")), ToolCalls(bash("echo steered; sleep 30")), Text("en français")
    )
    before = await asyncio.to_thread(make)
    await before.start()
    run = await before.runs.start(ME, say("go"), thread_id=await thread(before))
    await until(before, run, "custom", "begun")
    await before.runs.steer(ME, run.thread_id, {"role": "user", "content": "in French"})
    await until(before, run, "custom", "steered")
    live = [event async for batch in _live(before, run) for event in batch]
    await before.aclose()
    after = await asyncio.to_thread(make)
    lost = delete(run_events).where(run_events.c.run_id == run.run_id)
    await after.database.write(lambda connection: connection.execute(lost) and None)
    await after.start()
    again = [event async for batch in after.runs.events(run) for event in batch]
    assert _shown(live)[-2:] == ["in French", ""] and _shown(again)[:4] == ["", "begun", "in French", ""]
    assert [text for kind, text in await messages(after, run) if kind == "human"] == ["go", "in French"]
    await after.aclose()


def _shown(events: list[Any]) -> list[str]:
    updates = [event.data for event in events if event.method == "updates"]
    return [message["content"] for update in updates for message in messages_in(update)]


async def test_a_run_whose_process_dies_again_and_again_at_one_step_is_given_up(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(bash("echo one")), ToolCalls(bash("echo begun; sleep 30")), Text("went on"))
    first = await asyncio.to_thread(make)
    await first.start()
    run = await first.runs.start(ME, say("go"), thread_id=await thread(first))
    await until(first, run, "custom", "begun")
    await first.aclose()
    dead = await asyncio.to_thread(make)
    for number in range(attempt.MOST_ATTEMPTS - 1):  # each dies as soon as it has the run
        assert await dead.executor.parts.runs.claim(run.run_id, f"process {number}, which dies") is not None
    for _ in range(attempt.MOST_ATTEMPTS):  # one that lives and tries again, for want of room perhaps
        assert await dead.executor.parts.runs.claim(run.run_id, "process 3, which dies") is not None
    await dead.aclose()

    after = await asyncio.to_thread(make)
    await after.start()
    events = [event async for batch in after.runs.events(run) for event in batch]
    run = await after.runs.get(ME, run.run_id)
    assert run.status is RunStatus.ERROR and run.stop_reason == "stalled" and run.error == attempt.STALLED
    assert [event.data["message"] for event in events if event.method == "error"] == [attempt.STALLED]
    said = await messages(after, run)
    assert [kind for kind, _ in said] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert said[2][1] == "one" and said[-1] == ("ai", attempt.STALLED) and len(endpoint.requests) == 2
    run = await ended(after, await after.runs.start(ME, say("leave it"), thread_id=run.thread_id))
    assert run.status is RunStatus.SUCCESS and run.last_ai_message == "went on"
    await after.aclose()


async def test_a_run_that_gets_on_may_be_attempted_as_often_as_it_takes(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    steps = 3
    endpoint.script(*[ToolCalls(bash(f"echo step {number}; sleep 1")) for number in range(steps)], Text("finished"))
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    run = await runtime.runs.start(ME, say("go"), thread_id=await thread(runtime))
    for number in range(steps):
        await until(runtime, run, "custom", f"step {number}")
        await runtime.aclose()
        runtime = await asyncio.to_thread(make)
        for _ in range(2):
            assert await runtime.executor.parts.runs.claim(run.run_id, "a process that dies") is not None
        await runtime.start()
    run = await ended(runtime, run)
    assert run.status is RunStatus.SUCCESS and run.attempt > attempt.MOST_ATTEMPTS
    await runtime.aclose()


async def test_updates_and_what_runs_begin_with_add_up_to_the_thread(runtime: Runtime, endpoint: ScriptedOpenAI):
    """Clients that follow a thread need no snapshot of it."""
    endpoint.script(ToolCalls(bash("echo hi")), Text("done"), Text("two"), Text("again"))
    where = await thread(runtime)
    events: list[Any] = []
    checkpoint: dict[str, Any] = {}
    for text in ("one", "two", "instead of two"):
        run = await runtime.runs.start(ME, say(text, **checkpoint), thread_id=where)
        events += [event async for batch in runtime.runs.events(run) for event in batch]
        checkpoint = {"checkpoint_id": (await ended(runtime, run)).checkpoint_before} if text == "two" else {}

    shown: list[str] = []
    for event in events:
        if event.method == "input":
            after = event.data["after"]
            shown = shown[: shown.index(after) + 1] if after else []
        if event.method in ("input", "updates"):
            update = {"begin": event.data["values"]} if event.method == "input" else event.data
            shown += [message["id"] for message in messages_in(update) if message["id"] not in shown]

    held = (await runtime.threads.states.get(ME, where))["values"]["messages"]
    assert shown == [message["id"] for message in held] and len(held) == 6


async def test_the_prompt_knows_of_packages_that_came_while_the_server_runs(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
):
    runtime = await asyncio.to_thread(lambda: make(sandbox={"tool_image": {"enabled": True}}))
    await runtime.start()
    endpoint.script(Text("One."), Text("Two."))

    async def prompt() -> str:
        await ended(runtime, await runtime.runs.start(ME, say("hello"), thread_id=await thread(runtime)))
        return str(next(each for each in reversed(endpoint.requests) if each.get("tools"))["messages"][0]["content"])

    assert "pandas" not in await prompt()
    image = await asyncio.to_thread(runtime.agent_provider.harness.tool_image.path)
    await asyncio.to_thread(image.mkdir, parents=True)
    await asyncio.to_thread((image / MANIFEST).write_text, "{}")
    assert "pandas" in await prompt()
    await runtime.aclose()
