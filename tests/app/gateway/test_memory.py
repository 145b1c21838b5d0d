"""Memory over HTTP: one's own, told in one's own runs, and nobody else's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway, Population, WithRuntime, listening, settings_for

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime

FACTS = "/api/memory/facts"


@pytest.fixture
async def gateway(with_runtime: WithRuntime) -> AsyncIterator[Gateway]:
    async with with_runtime() as made:
        yield made


async def added(client: httpx.AsyncClient, content: str) -> str:
    answer = await client.post(FACTS, json={"content": content, "category": "preference"})
    assert answer.is_success, answer.text
    return next(fact["id"] for fact in answer.json()["facts"] if fact["content"] == content)


async def contents(client: httpx.AsyncClient) -> list[str]:
    return [fact["content"] for fact in (await client.get("/api/memory")).json()["facts"]]


async def test_a_fact_is_changed_forgotten_and_restored_by_its_owner_alone(gateway: Gateway):
    path = f"{FACTS}/{await added(gateway.user, 'Tea, no coffee.')}"
    await added(gateway.admin, "Coffee, no tea.")
    for method, body in (("PATCH", {"content": "Milk."}), ("DELETE", None), ("POST", None)):
        address = f"{path}/undo" if method == "POST" else path
        assert (await gateway.admin.request(method, address, json=body)).status_code == 404
    assert await contents(gateway.user) == ["Tea, no coffee."]
    assert (await gateway.user.patch(path, json={"content": "Green tea."})).is_success
    assert await contents(gateway.user) == ["Green tea."]
    assert (await gateway.user.patch(path, json={"content": " "})).status_code in (400, 422)
    assert (await gateway.user.delete(path)).is_success
    assert await contents(gateway.user) == [] and await contents(gateway.admin) == ["Coffee, no tea."]
    assert (await gateway.user.post(f"{path}/undo")).is_success
    assert await contents(gateway.user) == ["Green tea."]
    export = (await gateway.user.get("/api/memory/export")).json()
    assert (await gateway.user.delete("/api/memory")).is_success
    assert await contents(gateway.user) == []
    assert (await gateway.user.post("/api/memory/import", json=export)).is_success
    assert await contents(gateway.user) == ["Green tea."]


async def test_an_unconfirmed_fact_counts_from_its_owners_click_on(gateway: Gateway, scripted: ScriptedOpenAI):
    facts = [{"id": f"fact_{n}", "content": f"Pays to DE{n}.", "untrusted": "uploads"} for n in range(3)]
    surer = [{"id": f"sure_{n}", "content": f"Fact {n}.", "confidence": 0.9} for n in range(300)]
    imported = await gateway.user.post("/api/memory/import", json={"facts": facts + surer})
    assert imported.is_success, imported.text
    assert len([fact for fact in imported.json()["facts"] if "untrusted" not in fact]) == 100
    assert {fact["id"] for fact in imported.json()["facts"] if "untrusted" in fact} == {f["id"] for f in facts}
    assert (await gateway.user.get("/api/memory/search", params={"q": "Pays"})).json()["facts"] == []
    assert (await gateway.admin.post(f"{FACTS}/fact_1/confirm")).status_code == 404
    confirmed = (await gateway.user.post(f"{FACTS}/fact_1/confirm")).json()["facts"]
    assert {fact["id"] for fact in confirmed if "untrusted" in fact} == {"fact_0", "fact_2"}
    changed = (await gateway.user.patch(f"{FACTS}/fact_2", json={"content": "Pays to DE3."})).json()["facts"]
    assert [fact["id"] for fact in changed if "untrusted" in fact] == ["fact_0"]
    assert (await gateway.user.delete(f"{FACTS}/fact_0")).is_success


async def test_what_is_remembered_is_told_in_ones_own_runs(gateway: Gateway, scripted: ScriptedOpenAI):
    await added(gateway.user, "Tea, no coffee.")
    asked = {"input": {"messages": [{"role": "user", "content": "What shall I drink?"}]}}
    for client, is_told in ((gateway.user, True), (gateway.admin, False)):
        scripted.script(Text("Something warm."))
        assert (await client.post("/api/runs/wait", json=asked)).is_success
        assert ("Tea, no coffee." in json.dumps(scripted.requests[-1])) is is_told


@pytest.mark.parametrize("storage", ["", "deerflow.agents.memory.FileMemoryStorage"], ids=["rows", "files"])
async def test_with_a_thread_goes_what_all_agents_learned_in_it(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI, storage: str
):
    """And when facts were used stays known, wherever they are kept."""
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
    overrides = {
        "models": [{**model, "base_url": scripted.base_url}],
        "sandbox": {"tool_image": {"enabled": False}},
        "title": {"enabled": False},
        "memory": {"mode": "both", **({"storage_class": storage} if storage else {})},
    }
    population.copy_to(Paths(tmp_path).data_dir)
    runtime = await asyncio.to_thread(lambda: Runtime(ConfigSource(cwd=tmp_path, overrides=overrides), Paths(tmp_path)))
    async with listening(settings_for(tmp_path), runtime) as gateway:
        await gateway.resume(population)
        user = gateway.user
        writer = {"name": "writer", "description": "Writes.", "soul": "You write."}
        assert (await user.post("/api/agents", json=writer)).is_success
        threads = [(await user.post("/api/threads", json={})).json()["thread_id"] for _ in range(2)]
        asked = {"input": {"messages": [{"role": "user", "content": "I drink tea, no coffee."}]}}
        for thread in threads:
            for agent, fact in (("lead_agent", f"Tea in {thread}."), ("writer", f"Short words in {thread}.")):
                scripted.script(ToolCalls(("memory_save", {"content": fact})), Text("Noted."))
                done = await user.post(f"/api/threads/{thread}/runs/wait", json={"assistant_id": agent, **asked})
                assert done.is_success, done.text
        paused = (await user.post("/api/threads", json={"metadata": {"memory_paused": True}})).json()["thread_id"]
        scripted.script(ToolCalls(("memory_save", {"content": "A secret."})), Text("I may not."))
        (await user.post(f"/api/threads/{paused}/runs/wait", json=asked)).raise_for_status()
        assert not [tool for tool in scripted.requests[-1]["tools"] if "memory" in tool["function"]["name"]]
        memories = ["/api/memory", "/api/memory?agent=writer"]
        assert [len((await user.get(path)).json()["facts"]) for path in memories] == [2, 2]
        assert (await user.delete(f"/api/threads/{threads[0]}?memory=true")).is_success
        for path in memories:
            (fact,) = (await user.get(path)).json()["facts"]
            assert fact["source"] == threads[1]
        scripted.script(Text("Tea."))
        assert (await user.post("/api/runs/wait", json=asked)).is_success
        (fact,) = (await user.get("/api/memory")).json()["facts"]
        assert fact["content"] in json.dumps(scripted.requests[-1]) and fact["lastUsed"] > fact["createdAt"]
