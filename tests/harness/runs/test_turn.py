"""A turn: one message of the person and all that answers it, however many runs that takes. On both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text, ToolCalls
from tests.harness.runs.run_house import ME, ended, say, thread

from deerflow.agents.middlewares.base import CAUSE, ToolFailure
from deerflow.agents.transcript import current_turn
from deerflow.features.memory.service import EXTRACTION
from deerflow.runs.finalize import DECLINED
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime
from deerflow.storage import sql
from deerflow.storage.runs import Run, turn_of
from deerflow.storage.tables import utc_now

USED = {"prompt_tokens": 2000, "completion_tokens": 100, "total_tokens": 2100}
ON_SQLITE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
ASKS = {"provider": {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": {"ask_tools": ["write_file"]}}}
QUESTION = {"question": "Which one?", "clarification_type": "missing_info"}


def writing(number: int) -> ToolCalls:
    return ToolCalls(("write_file", {"path": f"/mnt/user-data/workspace/{number}", "content": "x"}), usage=USED)


@pytest.fixture
async def guarded(make: Callable[..., Runtime]) -> AsyncIterator[Callable[..., Any]]:
    made: list[Runtime] = []

    async def runtime(**sections: Any) -> Runtime:
        sections = {"guardrails": {"enabled": True, **ASKS}, "memory": {"enabled": False}, **sections}
        made.append(await asyncio.to_thread(lambda: make(**sections)))
        await made[-1].start()
        return made[-1]

    yield runtime
    for each in made:
        await each.aclose()


async def done(runtime: Runtime, where: str, request: RunRequest) -> Run:
    return await ended(runtime, await runtime.runs.start(ME, request, thread_id=where))


async def answered(runtime: Runtime, where: str, kind: str = "approve") -> Run:
    return await done(runtime, where, RunRequest(command={"resume": {"decisions": [{"type": kind}]}}))  # type: ignore[arg-type]


async def asked(runtime: Runtime, where: str) -> list[dict[str, Any]]:
    state = await runtime.threads.states.get(ME, where)
    return [request for one in state["interrupts"] for request in one["value"]["action_requests"]]


async def rows(runtime: Runtime, query: str, *values: Any) -> list[tuple[Any, ...]]:
    return await runtime.database.read(lambda connection: sql.execute(connection, query, *values).fetchall())


async def test_a_message_its_approvals_and_the_answer_to_a_question_are_one_turn(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    runtime = await guarded()
    where = await thread(runtime)
    endpoint.script(writing(1), ToolCalls(("ask_clarification", QUESTION)), Text("Done."), Text("Hello."))
    first = await done(runtime, where, say("work"))
    second = await answered(runtime, where)
    third = await done(runtime, where, say("the blue one"))
    fourth = await done(runtime, where, say("hello"))
    runs = [await runtime.runs.get(ME, run.run_id) for run in (first, second, third, fourth)]
    assert [run.turn for run in runs] == [first.run_id] * 3 + [fourth.run_id]
    assert [run.ends_turn for run in runs] == [False, False, True, True]
    found = await runtime.database.read(turn_of, second)
    assert [run.run_id for run in found] == [first.run_id, second.run_id, third.run_id]


@ON_SQLITE
async def test_a_message_in_place_of_a_decision_and_a_run_from_a_checkpoint_begin_a_turn(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    runtime = await guarded()
    where = await thread(runtime)
    endpoint.script(writing(1), Text("Well."), ToolCalls(("ask_clarification", QUESTION)), Text("Again."))
    first = await done(runtime, where, say("work"))
    instead = await done(runtime, where, say("rather not"))
    question = await done(runtime, where, say("what else"))
    before = (await runtime.runs.get(ME, question.run_id)).checkpoint_before
    again = await done(runtime, where, say("regenerated", checkpoint_id=before))
    runs = [await runtime.runs.get(ME, run.run_id) for run in (first, instead, question, again)]
    assert [run.turn for run in runs] == [run.run_id for run in runs]


@ON_SQLITE
async def test_calls_that_a_message_leaves_undecided_are_told_as_not_made(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    runtime = await guarded()
    where = await thread(runtime)
    endpoint.script(writing(1), Text("Well."))
    await done(runtime, where, say("work"))
    await done(runtime, where, say("rather not"))
    messages = (await runtime.threads.states.get(ME, where))["values"]["messages"]
    (result,) = [message for message in messages if message["type"] == "tool"]
    assert result["content"] == DECLINED
    assert result["additional_kwargs"][CAUSE]["code"] == ToolFailure.REJECTED
    assert not await asked(runtime, where)


async def test_six_approvals_do_not_restart_the_limit_and_each_answer_adds_one_allotment(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI, settings: dict[str, Any]
) -> None:
    (model,) = settings["models"]
    runtime = await guarded(models=[{**model, "max_tokens": 100}], spending={"per_run": {"tokens": 13_000}})
    where = await thread(runtime)
    endpoint.script(*map(writing, range(30)))
    await done(runtime, where, say("write"))
    limits: list[tuple[int, int]] = []
    for _ in range(24):
        (request,) = await asked(runtime, where)
        if request["name"] == "spend_more":
            limits.append((request["args"]["limit"], len(endpoint.requests)))
        if len(limits) == 3:
            break
        await answered(runtime, where)
    assert [limit for limit, _ in limits] == [13_000, 26_000, 39_000]
    requests = [number for _, number in limits]
    assert requests[0] <= 6 and 5 <= requests[1] - requests[0] <= 7 and 5 <= requests[2] - requests[1] <= 7
    endpoint.reset()
    endpoint.script(Text("enough", usage=USED), Text("hello", usage=USED))
    assert (await answered(runtime, where, "reject")).stop_reason == "spending_limit"
    assert await rows(runtime, "SELECT scope FROM budgets WHERE scope IN ('turn', 'run', 'answer')") == []
    assert (await done(runtime, where, say("next"))).stop_reason == "end_turn", "a turn of its own, a limit of its own"


@ON_SQLITE
async def test_a_limit_that_one_allotment_does_not_lift_is_asked_about_until_it_is_lifted(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI, settings: dict[str, Any]
) -> None:
    (model,) = settings["models"]
    runtime = await guarded(models=[{**model, "max_tokens": 30_000}], spending={"per_run": {"tokens": 15_000}})
    where = await thread(runtime)
    endpoint.script(Text("Done.", usage=USED))
    await done(runtime, where, say("work"))
    limits: list[int] = []
    while requests := await asked(runtime, where):
        limits.append(requests[0]["args"]["limit"])
        assert len(limits) < 9
        await answered(runtime, where)
    assert limits == [15_000 * (number + 1) for number in range(len(limits))] and len(limits) >= 2
    assert len(endpoint.requests) == 1


@ON_SQLITE
async def test_what_a_person_says_before_an_approval_is_remembered_after_it(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    runtime = await guarded(memory={"debounce_seconds": 30}, title={"enabled": True})
    where = await thread(runtime)
    endpoint.script(writing(1), Text("I will use metric units. The note is set."))
    await done(runtime, where, say("Remember that I always want metric units. Then set the note of customer 5"))
    due = "SELECT due_at FROM jobs WHERE kind = ? AND key = ?"
    ((later,),) = await rows(runtime, due, EXTRACTION, where)
    assert (sql.moment(later) - utc_now()).total_seconds() > 80_000, "the turn is open: after a day at the latest"
    assert await rows(runtime, due, "title", where) == []
    await answered(runtime, where)
    ((soon,),) = await rows(runtime, due, EXTRACTION, where)
    assert (sql.moment(soon) - utc_now()).total_seconds() <= 30
    ((title,),) = await rows(runtime, "SELECT payload FROM jobs WHERE kind = 'title' AND key = ?", where)
    texts = sql.loads(title)
    assert texts["user_text"].startswith("Remember that") and texts["assistant_text"].startswith("I will use metric")


@ON_SQLITE
async def test_a_turn_that_stays_open_is_read_when_the_next_one_begins(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    runtime = await guarded(memory={"debounce_seconds": 300})
    where = await thread(runtime)
    endpoint.script(writing(1), writing(2))
    await done(runtime, where, say("Remember that I live in Bremen, then write"))
    await done(runtime, where, say("Write another file instead of that one"))
    ((due,),) = await rows(runtime, "SELECT due_at FROM jobs WHERE kind = ?", EXTRACTION)
    assert (sql.moment(due) - utc_now()).total_seconds() <= 300


async def test_a_chat_whose_first_run_failed_gets_its_title_with_its_first_success(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    runtime = await guarded(title={"enabled": True})
    where = await thread(runtime)
    endpoint.script(HttpError(401), Text("Many birds."), Text("Birds in winter"), Text("More."), Text("More."))
    assert (await done(runtime, where, say("which birds winter here"))).status == "error"
    assert await rows(runtime, "SELECT 1 FROM jobs WHERE kind = 'title'") == []
    await done(runtime, where, say("try again please"))
    jobs = await rows(runtime, "SELECT payload FROM jobs WHERE kind = 'title'")
    assert [sql.loads(payload)["first_text"] for (payload,) in jobs] == ["which birds winter here"]
    runtime.jobs.wake()
    async with asyncio.timeout(30):
        while (await rows(runtime, "SELECT title FROM threads WHERE thread_id = ?", where)) != [("Birds in winter",)]:
            await asyncio.sleep(0.05)
    named = await thread(runtime)
    await runtime.threads.repository.set_title(ME, named, "Mine")
    for other in (where, named):
        await done(runtime, other, say("and in summer"))
    assert await rows(runtime, "SELECT 1 FROM jobs WHERE kind = 'title'") == []


@ON_SQLITE
async def test_loops_and_delegations_count_over_steering_and_the_answer_to_a_question(
    guarded: Callable[..., Any], endpoint: ScriptedOpenAI
) -> None:
    runtime = await guarded()
    where = await thread(runtime)
    listing = ToolCalls(("bash", {"description": "List", "command": "echo same"}))
    endpoint.script(listing, listing, ToolCalls(("ask_clarification", QUESTION)), listing, Text("Done."))
    await done(runtime, where, say("work"))
    await done(runtime, where, say("the blue one"))
    snapshot = await runtime.threads.states.snapshot(where)
    assert current_turn(snapshot.values["messages"])[0].text == "work"
    assert "called bash (echo same) 3 times" in str(endpoint.requests[-1]["messages"][-1])
    endpoint.script(Text("Hello."))
    await done(runtime, where, say("hello"))
    snapshot = await runtime.threads.states.snapshot(where)
    assert current_turn(snapshot.values["messages"])[0].text == "hello"
