"""Subagents in runs, on both databases: what they do, what stays of it, and what it cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from bench.scripted_openai import Delay, HttpError, ScriptedOpenAI, Text, ToolCalls
from sqlalchemy import Connection, delete
from tests.harness.runs.run_house import ME, bash, ended, messages, say, thread, until

from deerflow.errors import ConflictError, NotFoundError
from deerflow.events.store import RunEvent, decode_row, read_page
from deerflow.identity import Principal
from deerflow.runs.attempt import MOST_ATTEMPTS
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime
from deerflow.storage.tables import run_events

ULTRA = {"subagent_enabled": True}


def task(key: str, prompt: str = "", **more: Any) -> tuple[str, dict[str, Any]]:
    asked = {"description": f"part {key}", "prompt": f"{prompt} key:{key}", "subagent_type": "general-purpose"}
    return "task", asked | more


async def events(runtime: Runtime, run: Any, kind: str) -> list[dict[str, Any]]:
    found = await runtime.threads.transcript.events(ME, run.run_id, event_types=["custom"])
    return [event["content"] for event in found if event["content"].get("type") == kind]


async def test_subagents_work_side_by_side_and_the_lead_gets_all_results(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(ToolCalls(task("a"), task("b"), task("c")), Text("All three are done."))
    for key in "abc":
        endpoint.script(ToolCalls(bash(f"echo {key} >> marks")), Text(f"{key} ready"), key=key)
    where = await thread(runtime)
    run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
    assert run.status == "success"
    assert [text for kind, text in await messages(runtime, run) if kind == "tool"] == [
        f"Task Succeeded. Result: {key} ready\n[receipts: commands: 1]" for key in "abc"
    ]
    assert [event["status"] for event in await events(runtime, run, "task_completed")] == ["completed"] * 3
    assert len(await events(runtime, run, "task_running")) == 6
    usage = run.usage["gpt-x"] if "gpt-x" in run.usage else next(iter(run.usage.values()))
    assert usage["subagent:general-purpose"]["calls"] == 6
    assert usage["lead_agent"]["calls"] == 2
    assert run.llm_calls == len(endpoint.requests) == 8
    tasks = await runtime.threads.transcript.tasks(ME, where)
    assert [(each["description"], each["status"], each["text"]) for each in tasks] == [
        (f"part {key}", "completed", f"{key} ready") for key in "abc"
    ]
    await runtime.database.write(lambda connection: connection.execute(delete(run_events)) and None)
    copied = (await runtime.threads.copy(ME, where))["thread_id"]
    for kept in (where, copied):
        said = await runtime.threads.transcript.task_messages(ME, kept, tasks[0]["task_id"])
        assert [message["type"] for message in said] == ["human", "ai", "tool", "ai"]


@pytest.mark.parametrize("background", [False, True])
async def test_a_subagent_knows_the_date_and_the_mark_of_its_fences(
    runtime: Runtime, endpoint: ScriptedOpenAI, background: bool
) -> None:
    endpoint.script(ToolCalls(task("a", background=background)), Text("Done."), Text("Done."))
    endpoint.script(Text("ready"), key="a")
    await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=await thread(runtime)))
    lead = endpoint.requests[0]["messages"][-1]["content"]
    first, *_ = (request["messages"] for request in endpoint.requests if "key:a" in str(request["messages"][1]))
    date = re.search(r"<current_date>.*</current_date>", lead)
    told = re.fullmatch(r"<system-([0-9a-f]{8})>\n(.*)\n</system-\1>\n\n key:a", first[1]["content"])
    assert date is not None and told is not None and told[2] == date[0]
    assert f"<system-{told[1]}>" not in lead, "each transcript has a mark of its own"


async def test_a_call_beyond_the_limit_is_deferred_and_the_others_are_made(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(ToolCalls(task("a"), task("b"), task("c")), Text("Done."))
    for key in "ab":
        endpoint.script(Text(f"{key} ready"), key=key)
    where = await thread(runtime)
    given = {**ULTRA, "max_concurrent_subagents": 2}
    run = await ended(runtime, await runtime.runs.start(ME, say("go", context=given), thread_id=where))
    results = sorted(text for kind, text in await messages(runtime, run) if kind == "tool")
    assert results[0].startswith("Error: deferred: limit 2")
    assert results[1:] == ["Task Succeeded. Result: a ready", "Task Succeeded. Result: b ready"]


async def test_subagents_of_the_configuration_have_their_own_prompt_model_and_tools(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, settings: dict[str, Any]
) -> None:
    reviewer = {
        "description": "reviews texts",
        "system_prompt": "You review.",
        "tools": ["ls", "bash", "present_files", "ask_clarification"],
        "model": "small",
    }
    section = {
        "custom_agents": {"reviewer": {**reviewer, "disallowed_tools": ["bash"]}},
        "agents": {"general-purpose": {"max_turns": 1}},
        "max_delegations": 2,
    }
    small = {**settings["models"][0], "name": "small", "model": "gpt-small"}
    runtime = await asyncio.to_thread(lambda: make(subagents=section, models=[*settings["models"], small]))
    await runtime.start()
    try:
        endpoint.script(ToolCalls(task("a", subagent_type="reviewer")), ToolCalls(task("b")), ToolCalls(task("c")))
        endpoint.script(ToolCalls(task("d", subagent_type="nobody")), Text("Done."))
        endpoint.script(Text("Fine."), key="a")
        endpoint.script(ToolCalls(bash("echo 1")), Text("at once"), key="b")
        run = await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=await thread(runtime))
        run = await ended(runtime, run)
        assert run.status == "success"
        results = [text for kind, text in await messages(runtime, run) if kind == "tool"]
        assert results[0] == "Task Succeeded. Result: Fine." and results[1].endswith("at once")
        assert "limit 2 tasks per turn" in results[2] and "reviewer" in str(endpoint.requests[0]["tools"])
        offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in endpoint.requests[0]["tools"]}
        assert offered["task"]["properties"]["subagent_type"]["enum"] == ["general-purpose", "bash", "reviewer"]
        (asked,) = [request for request in endpoint.requests if request["model"] == "gpt-small"]
        assert "You review." in str(asked["messages"][0])
        assert [tool["function"]["name"] for tool in asked["tools"]] == ["ls"]
        assert run.usage is not None and run.usage["gpt-small"]["subagent:reviewer"]["calls"] == 1
    finally:
        await runtime.aclose()


async def test_a_subagent_without_turns_gives_what_it_has(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(ToolCalls(task("a", max_turns=2)), Text("Done."))
    endpoint.script(ToolCalls(bash("echo 1")), ToolCalls(bash("echo 2")), Text("half of it"), key="a")
    where = await thread(runtime)
    run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
    assert run.status == "success"
    assert [event["status"] for event in await events(runtime, run, "task_completed")] == ["turn_limit"]
    (result,) = [text for kind, text in await messages(runtime, run) if kind == "tool"]
    assert result.splitlines()[-2:] == ["half of it", "[receipts: commands: 1]"]


async def test_a_subagent_that_fails_says_why_once_and_its_call_has_failed(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(ToolCalls(task("a"), task("b", subagent_type="nobody")), Text("Done."))
    endpoint.script(ToolCalls(bash("echo 1"), text="I look."), HttpError(401, "no such key"), key="a")
    where = await thread(runtime)
    run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
    found = (await runtime.runs.values(await runtime.runs.get(ME, run.run_id)))["messages"]
    failed, unknown = [message for message in found if message["type"] == "tool"]
    assert failed["status"] == unknown["status"] == "error" and "Unknown subagent type" in unknown["content"]
    first, *rest = failed["content"].splitlines()
    assert first.startswith("Task failed. Error: ") and not first.endswith("..")
    assert rest == ["What it had so far: I look.", "[receipts: commands: 1]"]


async def test_a_subagent_that_takes_too_long_gives_what_it_has(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
) -> None:
    runtime = await asyncio.to_thread(make, subagents={"timeout_seconds": 5})
    await runtime.start()
    try:
        endpoint.script(ToolCalls(task("a")), Text("Done."))
        write = ("write_file", {"path": "found.txt", "content": "so far"})
        endpoint.script(ToolCalls(write, text="I look."), Delay(30, Text("never")), key="a")
        where = await thread(runtime)
        run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
        assert run.status == "success"
        (result,) = [text for kind, text in await messages(runtime, run) if kind == "tool"]
        assert result.splitlines() == [
            "Task timed out. Error: it took longer than 5 seconds.",
            "What it had so far: I look.",
            "[receipts: files written: /mnt/user-data/workspace/found.txt]",
        ]
        assert len(await events(runtime, run, "task_timed_out")) == 1
    finally:
        await runtime.aclose()


async def test_a_run_that_is_stopped_stops_its_subagents(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(ToolCalls(task("a"), task("b", background=True)))
    for key in "ab":
        endpoint.script(ToolCalls(bash("sleep 60; echo late >> marks")), key=key)
    where = await thread(runtime)
    run = await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where)
    await until(runtime, run, "updates", "part a")
    while len(endpoint.requests) < 3:
        await asyncio.sleep(0.02)
    await runtime.runs.cancel(ME, run.run_id)
    run = await ended(runtime, run)
    assert run.status == "interrupted"
    assert len(await events(runtime, run, "task_cancelled")) == 2
    assert await messages(runtime, run) and len(endpoint.requests) == 3


async def test_results_from_the_background_come_as_messages_and_the_run_waits_for_them(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(ToolCalls(task("a", background=True)), Text("I wait."), Text("All is there."))
    endpoint.script(ToolCalls(bash("sleep 0.5; echo a >> marks")), Text("a ready"), key="a")
    where = await thread(runtime)
    run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
    assert run.status == "success"
    said = await messages(runtime, run)
    assert [text for kind, text in said if kind == "ai"] == ["", "I wait.", "All is there."]
    (result,) = [text for kind, text in said if kind == "human"][1:]
    assert result.endswith("Task Succeeded. Result: a ready\n[receipts: commands: 1]")
    shown = await runtime.threads.transcript.events(ME, run.run_id, event_types=["updates"])
    assert sum("The background task" in str(event["content"]) for event in shown) == 1, "told in every stream"
    (done,) = await runtime.threads.transcript.tasks(ME, where)
    assert (done["status"], done["background"], done["text"]) == ("completed", True, "a ready")
    child = await runtime.threads.transcript.task_messages(ME, where, done["task_id"])
    assert [message["type"] for message in child] == ["human", "ai", "tool", "ai"]
    assert run.usage is not None and run.usage["gpt-x"]["subagent:general-purpose"]["calls"] == 2
    assert run.llm_calls == len(endpoint.requests) == 5


async def test_an_answer_for_one_subagent_does_not_wait_for_another_in_the_background(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
) -> None:
    """The one in the background goes on, from where it stood, in the run that the answer begins."""
    tool = {"name": "fetch", "group": "web", "use": "tests.harness.runs.run_house:fetch_tool"}
    shell = {"name": "bash", "group": "bash", "use": "deerflow.sandbox.tools:bash_tool"}
    runtime = await asyncio.to_thread(make, tools=[tool, shell], guardrails={"enabled": True, "policy": "auto"})
    await runtime.start()
    try:
        endpoint.script(ToolCalls(task("a", background=True)), ToolCalls(task("b")), Text("I wait."), Text("All done."))
        endpoint.script(ToolCalls(bash("echo once >> marks")), key="a")
        endpoint.script(ToolCalls(bash("while [ ! -e go ]; do sleep 0.05; done")), Text("a ready"), key="a")
        endpoint.script(ToolCalls(("fetch", {"url": "one"})), ToolCalls(("fetch", {"url": "two"})), key="b")
        endpoint.script(Text("b ready"), key="b")
        where = await thread(runtime)
        asks = await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where)
        await until(runtime, asks, "custom", "-e go")
        await until(runtime, asks, "updates", "__interrupt__")
        live = await runtime.event_log.live_values(where)
        assert live is not None and live["__interrupt__"][0]["value"]["action_requests"]
        approve: Any = {"resume": {"decisions": [{"type": "approve"}]}}
        answer = await runtime.runs.start(ME, RunRequest(command=approve), thread_id=where)
        assert (await ended(runtime, asks)).stop_reason == "interrupt"
        await until(runtime, answer, "updates", "I wait.")
        workspace = runtime.agent_provider.harness.paths.workspace(where, ME.user_id)
        (workspace / "go").touch()
        answer = await ended(runtime, answer)
        assert answer.status == "success"
        said = [text for _, text in await messages(runtime, answer)]
        assert said[-1] == "All done." and "Result: a ready" in said[-2]
        assert (workspace / "marks").read_text() == "once\n"
    finally:
        await runtime.aclose()


async def test_a_background_task_that_is_not_needed_any_more_keeps_nobody_waiting(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    def cancel(request: dict[str, Any]) -> ToolCalls:
        (call,) = [call for message in request["messages"] for call in message.get("tool_calls") or ()]
        return ToolCalls(("cancel_task", {"task_id": call["id"]}))

    endpoint.script(ToolCalls(task("a", background=True)), cancel, Text("Done without it."))
    endpoint.script(ToolCalls(bash("sleep 60")), key="a")
    where = await thread(runtime)
    run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
    assert run.status == "success"
    (result,) = [text for kind, text in await messages(runtime, run) if kind == "human"][1:]
    assert result.endswith("Task cancelled by user.")
    assert [event["status"] for event in await events(runtime, run, "task_cancelled")] == ["cancelled"]


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_what_a_subagent_did_is_durable_before_its_result_counts(
    runtime: Runtime, endpoint: ScriptedOpenAI, background: bool
) -> None:
    """Else a process that dies then takes its last words with it: the next attempt has no reason to repeat them."""
    endpoint.script(ToolCalls(task("a", background=background)), *([Text("I wait.")] if background else []))
    endpoint.script(Delay(30, Text("never")))
    endpoint.script(Delay(0.2, Text("a ready")), key="a")
    where = await thread(runtime)
    run = await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where)
    while "a ready" not in str(endpoint.requests[-1]["messages"] if endpoint.requests else ""):
        await asyncio.sleep(0.005)

    def stored(connection: Connection) -> list[RunEvent]:
        found: list[RunEvent] = []
        while rows := read_page(connection, where, run.run_id, found[-1].seq if found else 0, None):
            found += [event for row in rows for event in decode_row(row)]
        return found

    kept = [(event.method, str(event.data)) for event in await runtime.database.read(stored)]
    assert any(method == "updates" and "a ready" in data for method, data in kept)
    assert any(method == "custom" and "task_completed" in data for method, data in kept)
    await runtime.runs.cancel(ME, run.run_id)
    await ended(runtime, run)


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_a_run_whose_subagents_get_on_may_be_attempted_as_often_as_it_takes(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, background: bool
) -> None:
    steps = 3
    endpoint.script(ToolCalls(task("a", background=background)), *[Text("I wait.")] * background, Text("Done."))
    endpoint.script(*[ToolCalls(bash(f"echo step {number}; sleep 1")) for number in range(steps)], key="a")
    endpoint.script(Text("a ready"), key="a")
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    run = await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=await thread(runtime))
    for number in range(steps):
        await until(runtime, run, "custom", f"step {number}")
        await runtime.aclose()
        runtime = await asyncio.to_thread(make)
        for _ in range(2):
            assert await runtime.executor.parts.runs.claim(run.run_id, "a process that dies") is not None
        await runtime.start()
    run = await ended(runtime, run)
    assert run.status == "success" and run.attempt > MOST_ATTEMPTS, run.error
    await runtime.aclose()


async def test_what_a_subagent_does_in_its_shell_moves_no_other(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(ToolCalls(task("a")), ToolCalls(bash("pwd; echo [$MARK]")), Text("Done."))
    endpoint.script(ToolCalls(bash("mkdir deep && cd deep && export MARK=x")), Text("a ready"), key="a")
    where = await thread(runtime)
    run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
    assert [text for kind, text in await messages(runtime, run) if kind == "tool"][1] == "/mnt/user-data/workspace\n[]"


async def test_text_from_outside_taints_a_subagent_and_its_reader(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
) -> None:
    tool = {"name": "fetch", "group": "web", "use": "tests.harness.runs.run_house:fetch_tool"}
    runtime = await asyncio.to_thread(make, tools=[tool], guardrails={"enabled": True, "policy": "auto"})
    await runtime.start()
    try:
        endpoint.script(ToolCalls(task("a")), ToolCalls(("fetch", {"url": "two"})), Text("Done."))
        endpoint.script(ToolCalls(("fetch", {"url": "one"})), Text("a ready"), key="a")
        where = await thread(runtime)
        run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
        assert (run.status, run.stop_reason) == ("interrupted", "interrupt")
        (done,) = await runtime.threads.transcript.tasks(ME, where)
        assert done["status"] == "completed"
    finally:
        await runtime.aclose()


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_a_subagent_that_the_person_stops_gives_what_it_has_and_the_others_go_on(
    runtime: Runtime, endpoint: ScriptedOpenAI, background: bool
) -> None:
    waits = [Text("I wait.")] * 3 if background else []
    endpoint.script(ToolCalls(task("a", background=background), task("b", background=background)), *waits)
    endpoint.script(Text("Done.")) if not background else None
    write = ("write_file", {"path": "found.txt", "content": "so far"})
    endpoint.script(ToolCalls(write, text="I look."), ToolCalls(bash("sleep 60; echo late >> marks")), key="a")
    endpoint.script(ToolCalls(bash("while [ ! -e go ]; do sleep 0.05; done")), Text("b ready"), key="b")
    where = await thread(runtime)
    run = await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where)
    await until(runtime, run, "messages", "sleep 60")
    (a, b) = await runtime.threads.transcript.tasks(ME, where)
    await runtime.runs.stop_task(ME, where, a["task_id"])
    await until(runtime, run, "custom", "task_cancelled")
    with pytest.raises(NotFoundError):
        await runtime.runs.stop_task(Principal("someone", "user", "session"), where, b["task_id"])
    with pytest.raises(NotFoundError, match="no task other"):
        await runtime.runs.stop_task(ME, where, "other")
    (runtime.agent_provider.harness.paths.workspace(where, ME.user_id) / "go").touch()
    run = await ended(runtime, run)
    assert run.status == "success", run.error
    a, b = await runtime.threads.transcript.tasks(ME, where)
    assert (a["status"], a["text"], b["status"]) == ("cancelled", "I look.", "completed")
    assert [file["path"] for file in a["files"]] == ["/mnt/user-data/workspace/found.txt"] and a["tokens"] > 0
    (result,) = [text for kind, text in await messages(runtime, run) if "I look." in text]
    assert result.endswith(
        "Task cancelled by user.\nWhat it had so far: I look.\n"
        "[receipts: files written: /mnt/user-data/workspace/found.txt]"
    )
    (event,) = await events(runtime, run, "task_cancelled")
    assert (event["result"], event["tokens"]) == ("I look.", a["tokens"])
    with pytest.raises(ConflictError, match="has ended"):
        await runtime.runs.stop_task(ME, where, a["task_id"])


async def test_a_subagent_that_was_to_stop_when_its_process_died_stops_in_the_next_one(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(ToolCalls(task("a")), Text("Done."))
    endpoint.script(ToolCalls(bash("echo a >> marks"), text="I look."), Delay(60, Text("never")), key="a")
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    where = await thread(runtime)
    run = await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where)
    while len(endpoint.requests) < 3:
        await asyncio.sleep(0.02)
    (a,) = await runtime.threads.transcript.tasks(ME, where)
    await runtime.aclose()
    runtime = await asyncio.to_thread(make)
    try:
        await runtime.runs.stop_task(ME, where, a["task_id"])
        await runtime.start()
        run = await ended(runtime, run)
        assert run.status == "success", run.error
        (a,) = await runtime.threads.transcript.tasks(ME, where)
        assert (a["status"], a["text"]) == ("cancelled", "I look.")
        assert len(endpoint.requests) == 4, "the subagent asked its model no more"
    finally:
        await runtime.aclose()


async def test_what_a_subagent_cost_is_known_while_it_works_and_after(
    make: Callable[..., Runtime], endpoint: ScriptedOpenAI, settings: dict[str, Any]
) -> None:
    priced = {**settings["models"][0], "pricing": {"input": 1_000_000, "output": 0}}
    runtime = await asyncio.to_thread(lambda: make(models=[priced]))
    await runtime.start()
    try:
        endpoint.script(ToolCalls(task("a")), Text("Done."))
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        endpoint.script(ToolCalls(bash("echo a"), usage=usage), Text("a ready", usage=usage), key="a")
        where = await thread(runtime)
        run = await ended(runtime, await runtime.runs.start(ME, say("go", context=ULTRA), thread_id=where))
        spent = [(event["tokens"], event["cost"]) for event in await events(runtime, run, "task_running")]
        assert spent == [(7, 3.0), (14, 6.0)]
        (a,) = await runtime.threads.transcript.tasks(ME, where)
        assert (a["tokens"], a["cost"]) == (14, 6.0)
    finally:
        await runtime.aclose()
