"""Limits of spending: over HTTP and embedded, over kills and crowds. A call takes 2,100 tokens."""

from __future__ import annotations

import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.support.gateway_process import GatewayProcess, gateway_process, until

from deerflow import DeerFlowClient

CALL = {"prompt_tokens": 2000, "completion_tokens": 100, "total_tokens": 2100}
TOKENS = 2100
APPROVE, REJECT = ({"decisions": [{"type": kind}]} for kind in ("approve", "reject"))


def config(endpoint: ScriptedOpenAI, **spending: Any) -> str:
    model = {
        "name": "m",
        "use": "deerflow.models.openai:OpenAIChatModel",
        "model": "m",
        "base_url": endpoint.base_url,
        "api_key": "k",
        "max_tokens": 100,
        "pricing": {"input": 10, "output": 10},
    }
    sandbox = {"use": "deerflow.sandbox.local:LocalSandboxProvider", "tool_image": {"enabled": False}}
    off = {"title": {"enabled": False}, "skills": {"path": "none"}, "memory": {"enabled": False}}
    return json.dumps({"models": [model], "sandbox": sandbox, **off, "spending": spending})


def listing(number: int, usage: dict[str, int] = CALL) -> ToolCalls:
    return ToolCalls(("bash", {"description": "List", "command": f"echo {number}"}), usage=usage)


def asked(http: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """What the thread asks when its run has ended."""
    http.post(f"{path}/runs/wait", json={"if_not_exists": "create", **body}).raise_for_status()
    return http.get(f"{path}/state").raise_for_status().json()["interrupts"]


SAY = {"input": {"messages": [{"role": "user", "content": "work"}]}}


def newest(http: httpx.Client, path: str) -> dict[str, Any]:
    return http.get(f"{path}/runs").raise_for_status().json()[0]


def test_the_question_at_a_limit_survives_a_kill_and_its_answer_counts_once(tmp_path: Path) -> None:
    with ScriptedOpenAI() as endpoint:
        endpoint.script(*map(listing, range(5)), Text("never asked for"))
        limits = config(endpoint, per_thread={"tokens": 6000})
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=limits) as gateway:
            path = "/api/threads/t"
            with gateway.client() as http:
                (question,) = asked(http, path, SAY)
                assert newest(http, path)["status"] == "interrupted"
            assert len(endpoint.requests) == 2
            gateway.restart()
            with gateway.client() as http:
                assert http.get(f"{path}/state").json()["interrupts"] == [question]
                request = question["value"]["action_requests"][0]
                assert request["name"] == "spend_more"
                assert request["args"] == {
                    "setting": "spending.per_thread",
                    "unit": "tokens",
                    "limit": 6000,
                    "used": 2 * TOKENS,
                }
                assert question["value"]["review_configs"][0]["allowed_decisions"] == ["approve", "reject"]
                (again,) = asked(http, path, {"command": {"resume": {question["id"]: {"decisions": "?"}}}})
                assert "error" in again["value"] and len(endpoint.requests) == 2
                (second,) = asked(http, path, {"command": {"resume": {again["id"]: APPROVE}}})
                assert len(endpoint.requests) == 5, "as much again, and no more"
                assert second["value"]["action_requests"][0]["args"]["limit"] == 12_000
                endpoint.reset()
                endpoint.script(Text("what I have", usage=CALL))
                assert asked(http, path, {"command": {"resume": {second["id"]: REJECT}}}) == []
                assert newest(http, path)["stop_reason"] == "spending_limit"
                (last,) = endpoint.requests
                assert last["tool_choice"] == "none" and "SPENDING LIMIT" in last["messages"][-1]["content"]
                messages = http.get(f"{path}/state").json()["values"]["messages"]
                assert messages[-1]["content"] == "what I have"
                report = http.get("/api/usage").json()
                assert report["total"]["total_tokens"] == 6 * TOKENS


def test_a_killed_call_counts_once_with_what_was_reserved_for_it(tmp_path: Path) -> None:
    with ScriptedOpenAI() as endpoint:
        gateway: GatewayProcess

        def killed(_: dict[str, Any]) -> Text:
            gateway.signal(signal.SIGKILL)
            return Text("lost", usage=CALL)

        endpoint.script(listing(0), killed, Text("done", usage=CALL))
        limits = config(endpoint, per_thread={"tokens": 1_000_000}, per_agent_day={"money": 5})
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=limits) as gateway:
            with gateway.client() as http, pytest.raises(httpx.HTTPError):
                asked(http, "/api/threads/t", SAY)
            gateway.restart()
            with gateway.client() as http:
                run = newest(http, "/api/threads/t")
                http.get(f"/api/threads/t/runs/{run['run_id']}/join").raise_for_status()
                used = newest(http, "/api/threads/t")["total_tokens"]
        with sqlite3.connect(gateway.home / "data" / "deerflow.db") as database:
            rows = database.execute("SELECT scope, tokens, cost FROM budgets ORDER BY scope").fetchall()
        assert 2 * TOKENS < used < 6 * TOKENS, (
            "no one knows what the call took: the reservation counts, and nothing is reserved besides"
        )
        assert rows == [(scope, used, pytest.approx(used * 10 / 1e6)) for scope in ("agent", "person", "thread")]


def test_a_call_that_is_stopped_counts_with_what_was_sent_and_streamed(tmp_path: Path) -> None:
    with ScriptedOpenAI() as endpoint:
        endpoint.script(Text("word " * 400, usage=CALL))
        endpoint.delay = 0.05
        limits = config(endpoint, per_thread={"tokens": 1_000_000})
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=limits) as gateway, gateway.client() as http:
            http.post("/api/threads", json={"thread_id": "t"}).raise_for_status()
            run = http.post("/api/threads/t/runs", json=SAY).raise_for_status().json()["run_id"]
            until(lambda: len(endpoint.requests) == 1)
            http.post(f"/api/threads/t/runs/{run}/cancel", params={"wait": "true"}).raise_for_status()
            counted = http.get("/api/usage").json()["total"]
            assert counted["input_tokens"] > 500 and counted["output_tokens"] < 400
        with sqlite3.connect(gateway.home / "data" / "deerflow.db") as database:
            rows = database.execute("SELECT tokens FROM budgets WHERE scope = 'thread'").fetchall()
        assert rows == [(counted["total_tokens"],)]


def test_questions_beside_the_conversation_count_and_stop_at_the_persons_limit(tmp_path: Path) -> None:
    with ScriptedOpenAI() as endpoint:
        endpoint.script(Text('["More?"]', usage=CALL), Text("Done.", usage={**CALL, "prompt_tokens": 50_000}))
        limits = config(endpoint, per_person_day={"tokens": 50_000})
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=limits) as gateway, gateway.client() as http:
            http.post("/api/threads", json={"thread_id": "t"}).raise_for_status()
            said = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
            for suggestions, requests in ((["More?"], 1), ([], 2)):
                answer = http.post("/api/threads/t/suggestions", json=said).raise_for_status().json()
                assert (answer["suggestions"], len(endpoint.requests)) == (suggestions, requests)
                with sqlite3.connect(gateway.home / "data" / "deerflow.db") as database:
                    rows = database.execute("SELECT scope, tokens FROM budgets WHERE scope <> 'thread'").fetchall()
                [limit] = http.get("/api/usage/limits").raise_for_status().json()["limits"]
                assert limit == {"scope": "person", "unit": "tokens", "limit": 50_000, "used": dict(rows)["person"]}
                if requests == 1:
                    assert rows == [("person", TOKENS)]
                    asked(http, "/api/threads/t", SAY)


def test_a_run_without_a_person_stops_with_a_last_answer_and_then_says_that_nothing_is_left(tmp_path: Path) -> None:
    about = {"prompt_tokens": 5000, "completion_tokens": 100, "total_tokens": 5100}  # as large as its estimate
    with ScriptedOpenAI() as endpoint:
        endpoint.script(*(listing(number, about) for number in range(3)))
        limits = config(endpoint, per_agent_day={"money": 0.12})
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=limits) as gateway:
            with gateway.client() as http:
                values = http.post("/api/runs/wait", json=SAY).raise_for_status().json()
                assert values["messages"][-1]["content"] == "[STOPPED] The spending limit is reached."
                assert values["messages"][-1]["tool_calls"] == [] and len(endpoint.requests) == 3
                http.post("/api/threads/t/runs/wait", json=SAY | {"if_not_exists": "create"})
                run = newest(http, "/api/threads/t")
                assert len(endpoint.requests) == 3, "overshot by one answer, and nothing is left"
                assert run["status"] == "interrupted"
                value = http.get("/api/threads/t/state").json()["interrupts"][0]["value"]
                assert value["action_requests"][0]["args"]["unit"] == "USD"
                values = http.post("/api/runs/wait", json=SAY).raise_for_status().json()
                assert "Go on tomorrow (UTC)." in json.dumps(values) and len(endpoint.requests) == 3


def test_the_embedded_client_asks_and_takes_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ScriptedOpenAI() as endpoint:
        (tmp_path / "config.yaml").write_text(config(endpoint, per_run={"tokens": 4500}))
        endpoint.script(*map(listing, range(9)))
        client = DeerFlowClient(tmp_path / "config.yaml", base_dir=tmp_path / "home")
        client.chat("work", thread_id="t")
        (question,) = client.thread_state("t")["interrupts"]
        list(client.resume("t", answers={question["id"]: APPROVE}))
        (question,) = client.thread_state("t")["interrupts"]
        assert question["value"]["action_requests"][0]["args"]["limit"] == 9000, "the same turn, and one allotment more"
        endpoint.reset()
        endpoint.script(Text("enough", usage=CALL))
        list(client.resume("t", answers={question["id"]: REJECT}))
        assert [request["tool_choice"] for request in endpoint.requests] == ["none"]
        assert client.thread_state("t")["interrupts"] == []
        client.close()


def test_a_run_without_a_person_stops_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ScriptedOpenAI() as endpoint:
        (tmp_path / "config.yaml").write_text(config(endpoint, per_run={"tokens": 4500}))
        endpoint.script(*map(listing, range(2)), Text("enough", usage=CALL))
        with DeerFlowClient(tmp_path / "config.yaml", base_dir=tmp_path / "home", unattended=True) as client:
            client.chat("work", thread_id="t")
            assert client.thread_state("t")["interrupts"] == []
            assert endpoint.requests[-1]["tool_choice"] == "none"
