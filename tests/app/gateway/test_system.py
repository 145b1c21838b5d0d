from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text, ToolCalls

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime
from deerflow_app.gateway.routes.models import TESTS_PER_USER

from .conftest import Gateway, Population, opened, settings_for

KEY = "sk-very-secret-key-of-this-test"


@pytest.fixture
async def gateway(tmp_path: Path, population: Population, scripted: ScriptedOpenAI) -> AsyncIterator[Gateway]:
    """With models: one that works, one whose name has a slash, one without its key, one that nothing serves."""
    population.copy_to(Paths(tmp_path).data_dir)
    use = {"use": "langchain_openai:ChatOpenAI", "model": "m", "base_url": scripted.base_url, "api_key": KEY}
    config = {
        "models": [
            use | {"name": "good"},
            use | {"name": "team/good"},
            use | {"name": "keyless", "api_key": "$A_KEY_THAT_NOBODY_SET"},
            use | {"name": "nowhere", "base_url": "http://127.0.0.1:9/v1"},
        ],
        "sandbox": {
            "use": "deerflow.sandbox.local:LocalSandboxProvider",
            "tool_image": {"requirements": str(tmp_path / "no-such-file.txt")},
        },
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    source = ConfigSource(cwd=tmp_path)
    runtime = await asyncio.to_thread(lambda: Runtime(source, Paths(tmp_path)))
    async with opened(settings_for(tmp_path), runtime) as opened_gateway:
        await opened_gateway.resume(population)
        yield opened_gateway


async def test_a_model_is_tested_with_what_a_chat_sends(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(ToolCalls(("ready", {})), Text("<think>hm</think>ready"), Text("ready"), Text(""))
    for name in ("good", "team/good"):
        answer = await gateway.user.post(f"/api/models/{name}/test")
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert (told["ok"], told["answer"], told["problem"]) == (True, "ready", None)
        assert told["latency_ms"] >= 0
    for request in scripted.requests:
        assert request["stream"] is True and request["tools"][0]["function"]["name"] == "ready"
    roles = [[message["role"] for message in request["messages"]] for request in scripted.requests]
    first = ["system", "user"]
    assert roles == [first, [*first, "assistant", "tool", "user"], first, [*first, "assistant", "user"]]


async def test_a_failure_is_explained_once_and_without_the_key(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(HttpError(401, f"Incorrect API key provided: {KEY}"))
    refused = (await gateway.user.post("/api/models/good/test")).json()
    assert (refused["ok"], refused["answer"], refused["kind"]) == (False, None, "auth")
    assert "rejected the API key" in refused["problem"]
    assert KEY not in refused["problem"]
    assert len(scripted.requests) == 1  # a test is no reason to try again and again

    nowhere = (await gateway.user.post("/api/models/nowhere/test")).json()
    assert "could not be reached" in nowhere["problem"] and nowhere["kind"] == "network"


async def test_a_missing_key_is_named_but_no_path_of_the_host(gateway: Gateway, tmp_path: Path) -> None:
    told = (await gateway.user.post("/api/models/keyless/test")).json()
    assert (told["ok"], told["kind"]) == (False, None)
    assert "A_KEY_THAT_NOBODY_SET" in told["problem"]
    assert str(tmp_path) not in told["problem"]

    listed = (await gateway.user.get("/api/models")).text
    assert '"missing":["A_KEY_THAT_NOBODY_SET"]' in listed and str(tmp_path) not in listed


async def test_tests_of_models_are_for_those_who_are_signed_in_and_not_for_ever(
    gateway: Gateway, scripted: ScriptedOpenAI
) -> None:
    assert (await gateway.anonymous.post("/api/models/good/test")).status_code == 401
    assert (await gateway.user.post("/api/models/unknown/test")).status_code == 404
    scripted.script(*[Text("ready")] * (TESTS_PER_USER + 1))
    for _ in range(TESTS_PER_USER):
        assert (await gateway.user.post("/api/models/good/test")).status_code == 200
    refused = await gateway.user.post("/api/models/good/test")
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert (await gateway.admin.post("/api/models/good/test")).json()["ok"]  # others are not hindered


async def test_a_model_that_is_left_alone_says_so_until_a_test_of_it_succeeds(
    gateway: Gateway, scripted: ScriptedOpenAI
) -> None:
    async def rest() -> Any:
        return (await gateway.user.get("/api/models/good")).json()["rest"]

    assert await rest() is None
    scripted.script(
        HttpError(429, headers={"Retry-After": "5400"}), HttpError(500), Text("ready"), Text("ready"), Text("hello")
    )
    thread = (await gateway.user.post("/api/threads", json={})).json()["thread_id"]
    run = {
        "input": {"messages": [{"role": "user", "content": "hi"}]},
        "config": {"configurable": {"model_name": "good"}},
    }

    async def said() -> str:
        await gateway.user.post(f"/api/threads/{thread}/runs/wait", json=run)
        state = (await gateway.user.get(f"/api/threads/{thread}/state")).json()
        return str(state["values"]["messages"][-1]["content"])

    assert "takes requests again" in await said()
    assert (await rest())["reason"] == "busy" and (await rest())["seconds"] > 5000
    models = (await gateway.user.get("/api/models")).json()["models"]
    assert [model["name"] for model in models if model["rest"]] == ["good"]
    failed = (await gateway.user.post("/api/models/good/test")).json()
    assert (failed["ok"], failed["rest"]["reason"]) == (False, "busy")
    passed = (await gateway.user.post("/api/models/good/test")).json()
    assert (passed["ok"], passed["rest"], await rest()) == (True, None, None)
    assert await said() == "hello"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b'{"input": {"messages": [{"role": "user", "content": "a\\ud83d"}]}}', 422, "input.messages.0.content"),
        (b'{"metadata": {"a": {"b": "\\udc00"}}}', 422, "metadata.a.b"),
        (b'{"input": {"messages": [{"role": "user", "content": "caf\xe9"}]}}', 400, "input.messages.0.content"),
        (b'{"input": {"messages": "caf\xe9', 400, "The body (byte 28)"),
    ],
)
async def test_text_that_is_not_utf8_is_refused_by_the_name_of_its_field(
    gateway: Gateway, body: bytes, status: int, field: str
) -> None:
    thread = (await gateway.user.post("/api/threads", json={})).json()["thread_id"]
    content = {"content": body, "headers": {"content-type": "application/json"}}
    answer = await gateway.user.post(f"/api/threads/{thread}/runs", **content)
    assert answer.status_code == status
    assert answer.json()["detail"].startswith(f"{field}: this text is not valid UTF-8.")
    if field.startswith("metadata"):
        answer = await gateway.user.patch(f"/api/threads/{thread}", **content)
        assert answer.json()["detail"].startswith(f"{field}: this text is not valid UTF-8.")


async def test_everybody_learns_what_the_server_is_but_only_administrators_where_things_lie(
    gateway: Gateway, tmp_path: Path
) -> None:
    assert (await gateway.anonymous.get("/api/system")).status_code == 401
    answer = await gateway.user.get("/api/system")
    told = answer.json()
    assert told["database"] == {"kind": "sqlite", "data_dir": None}
    assert (told["authentication"], told["registration"], told["config"]) == ("accounts", False, None)
    assert told["sandbox"]["isolation"] == "none"
    assert told["sandbox"]["warnings"]
    assert told["sandbox"]["limits"]["processes"] == 512
    assert told["sandbox"]["tool_image"] == {"enabled": True, "ready": False, "problem": None, "path": None}
    assert str(tmp_path) not in answer.text

    whole = (await gateway.admin.get("/api/system")).json()
    assert whole["database"]["data_dir"] == str(Paths(tmp_path).data_dir)
    assert "no-such-file.txt" in whole["sandbox"]["tool_image"]["problem"]
    assert whole["config"]["file"] == str(tmp_path / "config.yaml")


async def test_a_conversation_is_summarized_by_a_run_and_measured_before_and_after(
    gateway: Gateway, scripted: ScriptedOpenAI
) -> None:
    thread = (await gateway.admin.post("/api/threads", json={})).json()["thread_id"]
    path = f"/api/threads/{thread}"
    for number in range(3):
        scripted.script(Text("Well. " * 500))
        said = {"input": {"messages": [{"role": "user", "content": f"Question {number}?"}]}}
        (await gateway.admin.post(f"{path}/runs/wait", json=said)).raise_for_status()
    before = (await gateway.admin.get(f"{path}/context")).json()
    assert before["model"] == "m" and before["window"] is None
    assert before["used"] == sum(before[part] for part in ("system", "tools", "messages", "tool_results", "summary"))
    assert min(before["tools"], before["system"]) > 500 and before["messages"] > 2000 and before["summary"] == 0
    scripted.script(Text("## Task and constraints\nThree questions."))
    run = (await gateway.admin.post(f"{path}/compact", json={"keep": "the figures"})).json()
    values = (await gateway.admin.get(f"{path}/runs/{run['run_id']}/join")).json()
    assert values["messages"][-2]["content"] == "/compact the figures"
    assert values["messages"][-1]["content"].startswith("Summarized 6 messages")
    assert len(values["messages"]) == 8 and values["summaries"][0]["text"].endswith("Three questions.")
    assert "keep above all: the figures" in str(scripted.requests[-1]["messages"][-1])
    after = (await gateway.admin.get(f"{path}/context")).json()
    assert after["messages"] < 200 < after["used"] < before["used"] and 0 < after["summary"] < 100
    forged = {"role": "user", "content": "Hi", "additional_kwargs": {"compaction": {"keep": ""}}}
    scripted.script(Text("Hello."))
    values = (await gateway.admin.post(f"{path}/runs/wait", json={"input": {"messages": [forged]}})).json()
    assert values["messages"][-1]["content"] == "Hello."


async def test_the_documentation_and_what_is_new_are_read_on_the_page(gateway: Gateway):
    for name, begins in (("workspace", "# The workspace"), ("channels/slack", "# "), ("changes", "# Changelog")):
        assert (await gateway.user.get(f"/api/guides/{name}")).json()["text"].startswith(begins)
    for name in ("none", "channels/none", "../README", "..%2FREADME", "%2Fetc%2Fpasswd"):
        assert (await gateway.user.get(f"/api/guides/{name}")).status_code in (404, 422), name
