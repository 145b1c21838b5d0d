"""Custom agents over HTTP: made, changed, undone, talked to, each by their owner alone."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from langgraph_sdk import get_client
from tests.app.gateway.conftest import WithRuntime

SKILLS = Path(__file__).parents[3] / "skills"
WRITER = {"name": "Writer", "description": "Writes.", "soul": "You never use adverbs."}


@pytest.fixture
def opened(with_runtime: WithRuntime) -> WithRuntime:
    return partial(with_runtime, memory={"enabled": False}, skills={"path": str(SKILLS)})


async def said(client: httpx.AsyncClient, text: str = "Hi", **more: Any) -> httpx.Response:
    return await client.post(
        "/api/runs/wait", json={"input": {"messages": [{"role": "user", "content": text}]}, **more}
    )


def tools_of(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools", ())}


async def test_an_agent_is_made_found_changed_undone_and_deleted_by_its_owner_alone(opened: WithRuntime):
    async with opened() as gateway:
        me, other = gateway.user, gateway.admin
        assert (await me.get("/api/agents/check", params={"name": "Writer"})).json() == {
            "available": True,
            "name": "writer",
        }
        made = await me.post("/api/agents", json=WRITER)
        assert made.status_code == 201 and made.json()["name"] == "writer"
        assert (await me.post("/api/agents", json=WRITER)).status_code == 409
        assert (await me.get("/api/agents/check", params={"name": "writer"})).json()["available"] is False
        for client, there in ((me, 200), (other, 404)):
            assert (await client.get("/api/agents/writer")).status_code == there
            assert (await client.put("/api/agents/writer", json={"description": "x"})).status_code == there
        changed = await me.put("/api/agents/WRITER", json={"skills": [], "soul": None, "description": "Writes well."})
        assert (changed.json()["skills"], changed.json()["soul"]) == ([], WRITER["soul"])
        versions = (await me.get("/api/agents/writer/versions")).json()["versions"]
        assert [(each["version"], each["is_current"], each["author"]) for each in versions] == [
            (3, True, "human"),
            (2, False, "human"),
            (1, False, "human"),
        ]
        assert "-description: x\n+description: Writes well." in versions[0]["diff"]
        back = await me.post("/api/agents/writer/rollback", json={"version": 1})
        assert (back.json()["description"], back.json()["skills"]) == ("Writes.", None)
        assert (await me.post("/api/agents/writer/rollback", json={"version": 9})).status_code == 404
        assert (await me.put("/api/agents/writer", json={"description": "Again."})).is_success
        assert (await me.get("/api/agents/writer/versions")).json()["versions"][0]["version"] == 4
        assert [one["name"] for one in (await me.get("/api/agents")).json()["agents"]] == ["writer"]
        assert (await other.get("/api/agents")).json() == {"agents": []}
        assert (await other.delete("/api/agents/writer")).status_code == 404
        assert (await me.delete("/api/agents/writer")).status_code == 204
        assert (await me.get("/api/agents/writer")).status_code == 404


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "../x"}, "letters, digits"),
        ({"name": ""}, "letters, digits"),
        ({"name": "check"}, "already exists"),
        ({"name": "a", "model": "none"}, "There is: m, other"),
        ({"name": "a", "tool_groups": ["none"]}, "there is no 'none'"),
        ({"name": "a", "subagents": ["none"]}, "general-purpose"),
        ({"name": "a", "soul": "x" * 20_001}, "20000"),
        ({"name": "a", "souls": "x"}, "Extra inputs"),
    ],
)
async def test_what_cannot_be_an_agent_is_refused_with_the_reason(
    opened: WithRuntime, given: dict[str, Any], says: str
):
    async with opened() as gateway:
        answer = await gateway.user.post("/api/agents", json=given)
        assert answer.status_code in (409, 422) and says in answer.text
        assert (await gateway.user.get("/api/agents")).json() == {"agents": []}


async def test_it_can_be_asked_what_agents_can_be_given(opened: WithRuntime):
    tools = [{"name": "read_file", "group": "read", "use": "deerflow.sandbox.tools:read_file_tool"}]
    async with opened(tool_groups=[{"name": "write"}], tools=tools) as gateway:
        choices = (await gateway.user.get("/api/agent-choices")).json()
        assert choices["tool_groups"] == ["read", "write"] and "general-purpose" in choices["subagents"]
        assert (await gateway.user.post("/api/agents", json={"name": "all", **choices})).is_success


async def test_the_operator_can_switch_the_api_off(opened: WithRuntime):
    async with opened(agents_api={"enabled": False}) as gateway:
        for path in ("/api/agents", "/api/agent-choices", "/api/agents/check?name=a", "/api/user-profile"):
            answer = await gateway.admin.get(path)
            assert answer.status_code == 403 and "agents_api.enabled" in answer.text


async def test_a_run_has_what_the_agent_chooses_and_the_caller_counts_more(
    opened: WithRuntime, scripted: ScriptedOpenAI
):
    groups = [{"name": "read"}, {"name": "write"}]
    tools = [
        {"name": "read_file", "group": "read", "use": "deerflow.sandbox.tools:read_file_tool"},
        {"name": "write_file", "group": "write", "use": "deerflow.sandbox.tools:write_file_tool"},
    ]
    async with opened(tool_groups=groups, tools=tools) as gateway:
        me = gateway.user
        chosen = {"model": "other", "tool_groups": ["read"], "skills": ["pdf"], "subagents": ["bash"]}
        assert (await me.post("/api/agents", json={**WRITER, **chosen})).is_success
        for how in ({"assistant_id": "writer"}, {"context": {"agent_name": "Writer"}}):
            scripted.script(Text("Done."))
            assert (await said(me, **how)).is_success
            request = scripted.requests[-1]
            prompt = request["messages"][0]["content"]
            assert "You are writer" in prompt and "<soul>\nYou never use adverbs.\n</soul>" in prompt
            assert request["model"] == "other" and "- public/pdf: " in prompt and "- public/slides: " not in prompt
            assert {"read_file", "task", "update_agent"} <= tools_of(request) and "write_file" not in tools_of(request)
            task = next(tool for tool in request["tools"] if tool["function"]["name"] == "task")
            assert "bash" in json.dumps(task) and "general-purpose" not in json.dumps(task)
        scripted.script(Text("Done."))
        context = {"model_name": "m", "subagent_enabled": False}
        assert (await said(me, assistant_id="writer", context=context)).is_success
        assert scripted.requests[-1]["model"] == "m" and "task" not in tools_of(scripted.requests[-1])
        scripted.script(Text("Done."))
        assert (await said(me)).is_success
        assert "adverbs" not in json.dumps(scripted.requests[-1])
        for client, name in ((me, "nobody"), (gateway.admin, "writer")):
            answer = await said(client, context={"agent_name": name})
            assert answer.status_code == 422 and "There is no agent" in answer.text


async def test_assistants_of_the_sdk_are_ones_agents(opened: WithRuntime, scripted: ScriptedOpenAI):
    async with opened() as gateway:
        assert (await gateway.user.post("/api/agents", json=WRITER)).is_success
        token = (await gateway.user.post("/api/v1/auth/tokens", json={"name": "t", "scopes": ["read", "write"]})).json()
        sdk = get_client(url=gateway.url, api_key=None, headers={"authorization": f"Bearer {token['token']}"})
        found = {each["name"]: each for each in await sdk.assistants.search()}
        assert list(found) == ["lead_agent", "writer"]
        assert await sdk.assistants.get("writer") == found["writer"]
        thread = await sdk.threads.create()
        scripted.script(Text("Done."))
        await sdk.runs.wait(thread["thread_id"], found["writer"]["assistant_id"], input={"messages": "Hi"})
        assert "adverbs" in json.dumps(scripted.requests[-1])
        assert [each["thread_id"] for each in await sdk.threads.search(metadata={"graph_id": "writer"})] == [
            thread["thread_id"]
        ]
        refused = await gateway.user.patch(f"/api/assistants/{found['writer']['assistant_id']}", json={"name": "x"})
        assert refused.status_code == 403 and "/api/agents/writer" in refused.text


async def test_agents_of_files_are_everyones_and_what_one_changes_is_ones_own(opened: WithRuntime, tmp_path: Path):
    directory = tmp_path / "agents" / "Coder"
    directory.mkdir(parents=True)
    (directory / "config.yaml").write_text("description: Codes.\nmodel: other\nunknown: 1\n")
    (directory / "SOUL.md").write_text("\nTests first.\n")
    (tmp_path / "agents" / "broken").mkdir()
    (tmp_path / "agents" / "broken" / "config.yaml").write_text("skills: {")
    async with opened() as gateway:
        for client in (gateway.user, gateway.admin):
            (agent,) = (await client.get("/api/agents")).json()["agents"]
            assert (agent["name"], agent["model"], agent["soul"]) == ("coder", "other", "Tests first.")
        refused = await gateway.user.delete("/api/agents/coder")
        assert refused.status_code == 403 and "agents/coder" in refused.text
        assert (await gateway.user.get("/api/agents/coder/versions")).json() == {"versions": []}
        assert (await gateway.user.put("/api/agents/coder", json={"soul": "Code first."})).is_success
        versions = (await gateway.user.get("/api/agents/coder/versions")).json()["versions"]
        assert "-Tests first.\n+Code first." in versions[0]["diff"] and len(versions) == 2
        assert (await gateway.admin.get("/api/agents/coder")).json()["soul"] == "Tests first."
        listed = (await gateway.user.post("/api/assistants/search", json={})).json()
        assert [each["name"] for each in listed] == ["lead_agent", "coder"]
        assert (await gateway.user.delete("/api/agents/coder")).is_success
        assert (await gateway.user.get("/api/agents/coder")).json()["soul"] == "Tests first."


async def test_an_agent_is_set_up_in_a_conversation_and_changes_itself_when_asked(
    opened: WithRuntime, scripted: ScriptedOpenAI
):
    async with opened() as gateway:
        bootstrap = {"is_bootstrap": True, "agent_name": "poet"}
        setup = {"soul": "You rhyme.", "description": "Rhymes.", "display_name": "诗人  Éva"}
        scripted.script(ToolCalls(("setup_agent", setup)), Text("Ready."))
        assert (await said(gateway.user, "Make me a poet", context=bootstrap)).is_success
        request = scripted.requests[-2]
        assert (
            "- public/bootstrap: " in request["messages"][0]["content"]
            and "- public/pdf: " not in request["messages"][0]["content"]
        )
        assert "setup_agent" in tools_of(request)
        poet = (await gateway.user.get("/api/agents/poet")).json()
        assert (poet["soul"], poet["display_name"]) == ("You rhyme.", "诗人 Éva")
        assert (await gateway.admin.get("/api/agents")).json() == {"agents": []}

        scripted.script(ToolCalls(("update_agent", {"soul": "You rhyme in Latin."})), Text("Salve."))
        assert (await said(gateway.user, "In Latin, please", assistant_id="poet")).is_success
        assert "setup_agent" not in tools_of(scripted.requests[-1])
        version = (await gateway.user.get("/api/agents/poet/versions")).json()["versions"][0]
        assert version["author"] == "agent" and version["thread_id"] and "+You rhyme in Latin." in version["diff"]

        scripted.script(ToolCalls(("setup_agent", {**setup, "name": "../../evil"})), Text("Hm."))
        assert (await said(gateway.user, "Another", context={"is_bootstrap": True})).is_success
        assert "letters, digits" in scripted.requests[-1]["messages"][-1]["content"]
        assert [each["name"] for each in (await gateway.user.get("/api/agents")).json()["agents"]] == ["poet"]


async def test_what_one_says_of_oneself_and_of_the_default_agent_is_told_in_ones_own_runs(
    opened: WithRuntime, scripted: ScriptedOpenAI
):
    async with opened() as gateway:
        assert (await gateway.user.get("/api/user-profile")).json() == {"content": None}
        assert (await gateway.user.put("/api/user-profile", json={"content": "A nurse in Oslo."})).is_success
        assert (await gateway.user.get("/api/user-profile")).json() == {"content": "A nurse in Oslo."}
        setup = {"soul": "Dry humour.", "description": "-"}
        for text in ("No humour.", "Dry humour."):
            scripted.script(ToolCalls(("setup_agent", {**setup, "soul": text})), Text("Ready."))
            assert (await said(gateway.user, "Be dry", context={"is_bootstrap": True})).is_success
        for client, is_told in ((gateway.user, True), (gateway.admin, False)):
            scripted.script(Text("Hello."))
            assert (await said(client)).is_success
            prompt = scripted.requests[-1]["messages"][0]["content"]
            assert ("<soul>\nDry humour.\n</soul>" in prompt) is is_told
            assert ("<user_profile>\nA nurse in Oslo.\n</user_profile>" in prompt) is is_told


async def test_an_agent_may_be_stricter_and_cheaper_than_the_installation_never_looser(
    opened: WithRuntime, scripted: ScriptedOpenAI
):
    async with opened(guardrails={"enabled": True, "policy": "strict"}) as gateway:
        me = gateway.user
        for name, more in (("loose", {"policy": "off"}), ("poor", {"budget": {"tokens": 10, "at_limit": "stop"}})):
            assert (await me.post("/api/agents", json={"name": name, **more})).is_success
        thread = (await me.post("/api/threads", json={})).json()["thread_id"]
        scripted.script(ToolCalls(("update_agent", {"soul": "Anything goes."})))
        body = {"assistant_id": "loose", "input": {"messages": [{"role": "user", "content": "Hi"}]}}
        assert (await me.post(f"/api/threads/{thread}/runs/wait", json=body)).is_success
        assert (await me.get(f"/api/threads/{thread}")).json()["status"] == "interrupted"
        assert (await me.get("/api/agents/loose")).json()["soul"] == ""
        scripted.script(Text("A long answer."))
        assert "spending.per_agent_day" in (await said(me, assistant_id="poor")).text


async def test_what_an_agent_used_counts_as_its_own(opened: WithRuntime, scripted: ScriptedOpenAI):
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    async with opened() as gateway:
        me = gateway.user
        assert (await me.post("/api/agents", json={**WRITER, "budget": {"tokens": 1_000_000}})).is_success
        thread = (await me.post("/api/threads", json={})).json()["thread_id"]
        for asked in ({"assistant_id": "writer"}, {"context": {"agent_name": "writer"}}, {}):
            scripted.script(Text("Done.", usage=usage))
            body = {"input": {"messages": [{"role": "user", "content": "Hi"}]}, **asked}
            assert (await me.post(f"/api/threads/{thread}/runs/wait", json=body)).is_success
        runs = (await me.get(f"/api/threads/{thread}/runs")).json()
        assert [run["agent"] for run in runs] == [None, "writer", "writer"]
        assert runs[1]["assistant_id"] == runs[2]["assistant_id"] != runs[0]["assistant_id"]
        rows = (await me.get("/api/usage", params={"by": "agent"})).json()["rows"]
        assert {row["key"]: row["total_tokens"] for row in rows} == {"writer": 2200, "lead_agent": 1100}
        budgets = "SELECT key, tokens FROM budgets WHERE scope = 'agent'"
        job = lambda connection: connection.exec_driver_sql(budgets).fetchall()  # noqa: E731
        assert [tuple(row) for row in await gateway.runtime.database.read(job)] == [(runs[1]["assistant_id"], 2200)]


async def test_an_agent_that_is_changed_during_a_run_changes_the_next_one(
    opened: WithRuntime, scripted: ScriptedOpenAI
):
    async with opened() as gateway:
        me = gateway.user
        assert (await me.post("/api/agents", json=WRITER)).is_success
        thread = (await me.post("/api/threads", json={})).json()["thread_id"]
        for soul in ("You never use adverbs.", "You always use adverbs."):
            assert (await me.put("/api/agents/writer", json={"soul": soul})).is_success
            scripted.script(Text("Done."))
            body = {"assistant_id": "writer", "input": {"messages": [{"role": "user", "content": "Hi"}]}}
            assert (await me.post(f"/api/threads/{thread}/runs/wait", json=body)).is_success
            assert soul in scripted.requests[-1]["messages"][0]["content"]
