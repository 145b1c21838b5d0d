"""When a run did what, over HTTP: from the event log of real runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import Delay, HttpError, ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway, Population
from tests.app.gateway.test_approvals import Site, _asked, _bash, _guarded, _resumed, _said, _thread
from tests.support.collector import spans_of_json

from deerflow.features.tracing import timeline as timelines

ULTRA = {"subagent_enabled": True}
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 20,
    "total_tokens": 1020,
    "prompt_tokens_details": {"cached_tokens": 800},
}


@pytest.fixture
def site(tmp_path: Path, population: Population, scripted: ScriptedOpenAI) -> Site:
    return Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))


@pytest.fixture
async def gateway(tmp_path: Path, population: Population, scripted: ScriptedOpenAI) -> AsyncIterator[Gateway]:
    async with Site(tmp_path, population, scripted, {"enabled": False}).open() as gateway:
        yield gateway


def _task(key: str) -> tuple[str, dict[str, Any]]:
    return "task", {"description": f"part {key}", "prompt": f"key:{key}", "subagent_type": "general-purpose"}


async def _timeline(gateway: Gateway, path: str, **query: str) -> dict[str, Any]:
    """Of the first run of the thread."""
    run = (await gateway.admin.get(f"{path}/runs")).json()[-1]
    answer = await gateway.admin.get(f"{path}/runs/{run['run_id']}/timeline", params=query)
    answer.raise_for_status()
    return answer.json()


def _shown(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(span["kind"], span["name"], span["status"]) for span in found["spans"]]


def _lasted(span: dict[str, Any]) -> int:
    return span["end_ms"] - span["start_ms"]


async def test_what_took_how_long(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    wrong = ("read_file", {"path": "nowhere"})
    scripted.script(ToolCalls(("bash", {"command": "sleep 0.4"}), wrong), Text("Slept."))
    path = await _thread(gateway.admin)
    await _said(gateway.admin, path)
    found = await _timeline(gateway, path)
    assert _shown(found) == [
        ("queue", "waiting to begin", "success"),
        ("model", "m", "success"),
        ("tool", "bash", "success"),
        ("command", "bash", "success"),
        ("tool", "read_file", "error"),
        ("model", "m", "success"),
    ]
    _, first, bash, command, _, last = found["spans"]
    assert command["parent"] == bash["id"] and bash["parent"] is None
    assert 400 <= _lasted(command) <= _lasted(bash) and command["exit_code"] == 0
    assert bash["start_ms"] <= command["start_ms"] and command["end_ms"] <= bash["end_ms"]
    assert bash["detail"] == command["detail"] == "sleep 0.4"
    assert first["end_ms"] <= bash["start_ms"] and bash["end_ms"] <= last["start_ms"] <= last["end_ms"]
    assert last["detail"] == "Slept." and last["input_tokens"] > 0 and last["output_tokens"] > 0
    assert last["end_ms"] <= found["duration_ms"] == found["elapsed_ms"] and not found["truncated"]
    messages = (await gateway.admin.get(f"{path}/state")).json()["values"]["messages"]
    assert [first["message_id"], last["message_id"]] == [messages[1]["id"], messages[-1]["id"]]
    assert first["call_id"] == bash["call_id"] == messages[1]["tool_calls"][0]["id"]
    run_id, thread_id = found["run_id"], found["thread_id"]
    assert (await gateway.admin.get(f"/api/runs/{run_id}/timeline")).json() == found
    assert (await gateway.admin.get(f"/api/runs/{thread_id}/timeline")).json() == found


async def test_waiting_for_the_first_token_and_what_the_cache_had(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(Delay(0.3, Text("one two three four", usage=USAGE), between=0.1))
    path = await _thread(gateway.admin)
    await _said(gateway.admin, path)
    [_, model] = (await _timeline(gateway, path))["spans"]
    assert 300 <= model["first_token_ms"] - model["start_ms"] <= _lasted(model) - 200
    assert (model["input_tokens"], model["cached_tokens"], model["output_tokens"]) == (1000, 800, 20)
    assert (model["provider"], model["finish_reason"]) == ("openai", "stop")


async def test_each_attempt_at_a_model_is_a_span_and_so_is_the_pause(
    gateway: Gateway, scripted: ScriptedOpenAI
) -> None:
    scripted.script(HttpError(503, "busy", {"retry-after": "0.2"}), Text("Here."))
    path = await _thread(gateway.admin)
    await _said(gateway.admin, path)
    found = await _timeline(gateway, path)
    assert [(span["kind"], span["status"]) for span in found["spans"]] == [
        ("queue", "success"),
        ("model", "error"),
        ("retry", "success"),
        ("model", "success"),
    ]
    _, failed, pause, model = found["spans"]
    assert failed["end_ms"] == pause["start_ms"] and pause["end_ms"] == model["start_ms"]
    assert _lasted(pause) == 200 and "Trying again" in pause["detail"]
    assert "message_id" not in failed and model["message_id"]


async def test_subagents_have_lanes_of_their_own(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(ToolCalls(_task("a"), _task("b")), Text("Both are done."))
    for key in "ab":
        scripted.script(ToolCalls(_bash(f"echo {key}")), Text(f"{key} ready"), key=key)
    path = await _thread(gateway.admin)
    await _said(gateway.admin, path, context=ULTRA)
    found = await _timeline(gateway, path)
    by_id = {span["id"]: span for span in found["spans"]}
    assert _shown(found)[2:9] == [
        ("tool", "task", "success"),
        ("agent", "general-purpose", "success"),
        ("model", "m", "success"),
        ("tool", "bash", "success"),
        ("command", "bash", "success"),
        ("model", "m", "success"),
        ("tool", "task", "success"),
    ]
    agents = [span for span in found["spans"] if span["kind"] == "agent"]
    assert [agent["detail"] for agent in agents] == ["part a", "part b"]
    for agent, key in zip(agents, "ab", strict=True):
        call = by_id[agent["parent"]]
        within = [span for span in found["spans"] if span["parent"] == agent["id"]]
        assert call["kind"] == "tool" and call["call_id"] == agent["call_id"]
        assert [span["detail"] for span in within if span["kind"] == "model"] == ["", f"{key} ready"]
        assert all(call["start_ms"] <= span["start_ms"] and span["end_ms"] <= call["end_ms"] for span in within)
    assert agents[1]["start_ms"] < agents[0]["end_ms"], "they worked side by side"
    assert sum(span["kind"] == "model" for span in found["spans"]) == len(scripted.requests) == 6


async def test_what_waited_for_a_person_is_a_decision_and_the_answer_goes_on(
    site: Site, scripted: ScriptedOpenAI
) -> None:
    scripted.script(ToolCalls(_bash("echo 1"), _bash("echo 2")), Text("Decided."))
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        await _said(gateway.admin, path)
        waiting = await _timeline(gateway, path)
        assert _shown(waiting)[2:] == [("decision", "bash", "waiting")] * 2
        assert [span["end_ms"] for span in waiting["spans"][2:]] == [None, None]
        asked = await _asked(gateway.admin, path)
        await asyncio.sleep(0.5)
        await _resumed(gateway, path, **{asked["echo 1"]: {"type": "approve"}, asked["echo 2"]: {"type": "reject"}})
        found = await _timeline(gateway, path)
        assert sorted(_shown(found)) == sorted(
            [
                ("queue", "waiting to begin", "success"),
                ("model", "m", "success"),
                ("decision", "bash", "approve"),
                ("decision", "bash", "reject"),
                ("queue", "waiting to begin", "success"),
                ("tool", "bash", "success"),
                ("command", "bash", "success"),
                ("tool", "bash", "error"),
                ("model", "m", "success"),
            ]
        )
        decided = [span for span in found["spans"] if span["kind"] == "decision"]
        tools = {span["call_id"]: span for span in found["spans"] if span["kind"] == "tool"}
        for decision in decided:
            assert _lasted(decision) >= 500 and decision["end_ms"] <= tools[decision["call_id"]]["start_ms"]
        assert found["status"] == "success" and len({run["trace_id"] for run in found["runs"]}) == 2
        assert [span["run_id"] for span in (found["spans"][0], found["spans"][-1])] == [
            run["run_id"] for run in found["runs"]
        ]
        of_thread = (await gateway.admin.get(f"/api/runs/{found['thread_id']}/timeline")).json()
        assert of_thread == found, "a thread's id stands for its newest turn"
        scripted.script(Text("Something else."))
        await _said(gateway.admin, path)
        assert await _timeline(gateway, path) == found, "what was asked afterwards is another turn"


async def test_a_decision_in_a_subagent_is_in_its_lane(site: Site, scripted: ScriptedOpenAI) -> None:
    scripted.script(ToolCalls(_task("a")), Text("Done."))
    scripted.script(ToolCalls(_bash("echo a")), Text("a ready"), key="a")
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        await _said(gateway.admin, path, context=ULTRA)
        assert _shown(await _timeline(gateway, path))[2:] == [
            ("tool", "task", "waiting"),
            ("agent", "general-purpose", "waiting"),
            ("model", "m", "success"),
            ("decision", "bash", "waiting"),
        ]
        [interrupt] = (await _asked(gateway.admin, path)).values()
        await _resumed(gateway, path, **{interrupt: {"type": "approve"}})
        found = await _timeline(gateway, path)
    [agent] = [span for span in found["spans"] if span["kind"] == "agent"]
    within = [(s["kind"], s["status"]) for s in found["spans"] if s["parent"] == agent["id"]]
    assert within == [
        ("model", "success"),
        ("decision", "approve"),
        ("tool", "success"),
        ("model", "success"),
    ]
    assert all(span["end_ms"] is not None for span in found["spans"])


async def test_a_run_that_goes_on_grows(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(ToolCalls(("bash", {"command": "sleep 1.5"})), Text("Slept."))
    path = await _thread(gateway.admin)
    following, before = asyncio.create_task(_said(gateway.admin, path)), dict[str, Any]()
    async with asyncio.timeout(20):
        while ("tool", "bash", "running") not in _shown(before or {"spans": []}):
            await asyncio.sleep(0.05)
            if (await gateway.admin.get(f"{path}/runs")).json():
                before = await _timeline(gateway, path)
    assert before["duration_ms"] is None and before["verification"] is None
    assert before["spans"][-1]["end_ms"] is None and before["spans"][-1]["status"] == "running"
    assert before["elapsed_ms"] >= before["spans"][-1]["start_ms"]
    await following
    after = await _timeline(gateway, path)
    assert after["elapsed_ms"] > before["elapsed_ms"] and after["duration_ms"] == after["elapsed_ms"]
    ids = {span["id"]: span["kind"] for span in after["spans"]}
    assert all(ids[span["id"]] == span["kind"] for span in before["spans"]), "ids stay as it grows"


async def test_the_trace_of_a_timeline_is_one_that_collectors_take(site: Site, scripted: ScriptedOpenAI) -> None:
    scripted.script(ToolCalls(_bash("exit 3")), Text("Decided.", usage=USAGE))
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        await _said(gateway.admin, path)
        [asked] = (await _asked(gateway.admin, path)).values()
        await _resumed(gateway, path, **{asked: {"type": "approve"}})
        found, trace = await _timeline(gateway, path), await _timeline(gateway, path, format="otlp")
        refused = await gateway.admin.get(f"/api/runs/{found['run_id']}/timeline?format=zipkin")
    assert refused.status_code == 422
    spans = spans_of_json(trace)
    assert [span.name for span in spans] == [
        "invoke_agent lead_agent",
        "invoke_agent lead_agent",
        "chat m",
        "execute_tool bash",
        "sandbox command",
        "chat m",
    ]
    first, second, _, tool, command, last = spans
    assert [first.trace_id, second.trace_id] == [run["trace_id"] for run in found["runs"]]
    assert (tool.parent_id, command.parent_id, last.parent_id) == (second.span_id, tool.span_id, second.span_id)
    assert command.failed and command.attributes == {"process.exit.code": 3, "error.type": "exit_code"}
    assert last.attributes["gen_ai.usage.cache_read.input_tokens"] == 800
    assert 0 < last.attributes["gen_ai.response.time_to_first_chunk"] < (last.end - last.start) / 1e9
    events = [event for span in trace["resourceSpans"][0]["scopeSpans"][0]["spans"] for event in span.get("events", ())]
    assert [event["name"] for event in events] == ["deerflow.decision"]
    assert "exit 3" not in str(trace) and "Decided" not in str(trace)


async def test_of_a_very_long_run_the_first_spans_are_shown(
    gateway: Gateway, scripted: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MOST", 3)
    scripted.script(ToolCalls(("bash", {"command": "echo 1"})), Text("Done."))
    path = await _thread(gateway.admin)
    await _said(gateway.admin, path)
    found = await _timeline(gateway, path)
    assert found["truncated"] and [kind for kind, _, _ in _shown(found)] == ["queue", "model", "tool"]
    assert all(span["end_ms"] is not None for span in found["spans"])
