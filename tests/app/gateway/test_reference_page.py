"""The requests of the reference's page of August, with the fields that it reads."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls

from .conftest import WithRuntime

REPORT = "mnt/user-data/outputs/report.md"


async def _ask(client: httpx.AsyncClient, method: str, path: str, status: int = 200, **body: Any) -> Any:
    answer = await client.request(method, path, **body)
    assert answer.status_code == status, (method, path, answer.status_code, answer.text)
    return answer.json() if answer.content else None


async def _said(client: httpx.AsyncClient, thread: str, text: str, **more: Any) -> dict[str, Any]:
    asked = {"input": {"messages": [{"type": "human", "content": [{"type": "text", "text": text}]}]}, **more}
    return await _ask(client, "POST", f"{thread}/runs/wait", json=asked)


async def _thread(client: httpx.AsyncClient) -> str:
    return f"/api/threads/{(await _ask(client, 'POST', '/api/threads', json={'metadata': {}}))['thread_id']}"


def _texts(values: dict[str, Any]) -> list[str]:
    return [
        "".join(b if isinstance(b, str) else b["text"] for b in message["content"]) for message in values["messages"]
    ]


def _write(text: str) -> ToolCalls:
    return ToolCalls(("write_file", {"path": f"/{REPORT}", "content": text}))


async def test_its_start_page_learns_what_the_server_has(with_runtime: WithRuntime) -> None:
    async with with_runtime(agents_api={"enabled": False}) as gateway:
        setup = await _ask(gateway.anonymous, "GET", "/api/v1/auth/setup-status")
        features = await _ask(gateway.user, "GET", "/api/features")
        suggestions = await _ask(gateway.user, "GET", "/api/suggestions/config")
        skills = await _ask(gateway.user, "GET", "/api/skills")
        reloaded = await _ask(gateway.user, "POST", "/api/skills/reload")
        limits = await _ask(gateway.user, "GET", "/api/threads/not-there-yet/uploads/limits")

    assert setup["registration_enabled"] is setup["registration"] is False
    assert features == {
        name: {"enabled": False} for name in ("agents_api", "browser_control", "mcp_tasks", "transcription")
    }
    assert suggestions == {"enabled": True, "max_suggestions": 5}
    assert skills["skills"] and not any(skill["editable"] for skill in skills["skills"])
    assert reloaded["success"] and reloaded["scope"] == "process" and str(len(skills["skills"])) in reloaded["message"]
    assert limits.keys() == {"max_files", "max_file_size", "max_total_size"} and limits["max_file_size"] > 1 << 20


async def test_its_conversation_is_paged_from_the_end_and_states_hold_what_it_shows(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    scripted.script(Text("one"), Text("two"), Text("three"))
    async with with_runtime() as gateway:
        thread = await _thread(gateway.user)
        sent = await _ask(gateway.user, "POST", f"{thread}/uploads", files={"files": ("a.csv", b"1,2\n")})
        listed = await _ask(gateway.user, "GET", f"{thread}/uploads/list")
        named = {"files": [{"filename": "a.csv", "size": 4}]}
        first = {"messages": [{"type": "human", "content": "1", "additional_kwargs": named}]}
        await _ask(gateway.user, "POST", f"{thread}/runs/wait", json={"input": first})
        [state] = await _ask(gateway.user, "POST", f"{thread}/history", json={"limit": 1})
        sent_back = {"values": {**state["values"], "title": "Mine"}}
        await _ask(gateway.user, "POST", f"{thread}/state", json=sent_back)
        values = (await _ask(gateway.user, "GET", thread))["values"]
        values["messages"] = [{"role": "user", "content": "2"}]
        await _ask(gateway.user, "POST", f"{thread}/runs/wait", json={"input": values})
        await _said(gateway.user, thread, "3")
        newest = await _ask(gateway.user, "GET", f"{thread}/messages/page?limit=4")
        oldest = await _ask(
            gateway.user, "GET", f"{thread}/messages/page?limit=4&before_seq={newest['next_before_seq']}"
        )
        now = await _ask(gateway.user, "GET", f"{thread}/state")

    assert sent["files"][0]["size"] == listed["files"][0]["size"] == 4
    assert state["values"]["thread_data"] == {
        f"{name}_path": f"/mnt/user-data/{name}" for name in ("workspace", "uploads", "outputs")
    }
    assert state["values"]["sandbox"]["sandbox_id"].endswith(thread.rsplit("/", 1)[-1])
    assert [(file["filename"], file["size"]) for file in state["values"]["uploaded_files"]] == [("a.csv", 4)]
    assert now["values"]["title"] == "Mine" and now["values"]["uploaded_files"] == []
    assert [row["seq"] for row in newest["data"]] == [3, 4, 5, 6] and newest["has_more"]
    assert [row["seq"] for row in oldest["data"]] == [1, 2] and not oldest["has_more"]
    assert oldest["next_before_seq"] is None and newest["next_before_seq"] == 3


async def test_its_answers_are_asked_for_again_and_its_messages_edited(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    scripted.script(Text("one"), Text("two"), Text("three"), Text("two again"), Text("edited"))
    async with with_runtime() as gateway:
        thread = await _thread(gateway.user)
        for text in ("first", "second", "third"):
            values = await _said(gateway.user, thread, text)
        ids = [message["id"] for message in values["messages"]]
        runs = await _ask(gateway.user, "GET", f"{thread}/runs")

        prepared = await _ask(gateway.user, "POST", f"{thread}/runs/regenerate/prepare", json={"message_id": ids[3]})
        again = {key: prepared[key] for key in ("input", "checkpoint", "metadata")}
        regenerated = await _ask(gateway.user, "POST", f"{thread}/runs/wait", json=again)
        asked = {"human_message_id": regenerated["messages"][0]["id"], "replacement_text": "other words"}
        edit = await _ask(gateway.user, "POST", f"{thread}/runs/edit-regenerate/prepare", json=asked)
        edited = await _ask(
            gateway.user, "POST", f"{thread}/runs/wait", json={k: edit[k] for k in ("input", "checkpoint", "metadata")}
        )
        await _ask(gateway.user, "POST", f"{thread}/runs/regenerate/prepare", 404, json={"message_id": ids[5]})
        no_person = {**asked, "human_message_id": edited["messages"][1]["id"]}
        await _ask(gateway.user, "POST", f"{thread}/runs/edit-regenerate/prepare", 422, json=no_person)

    assert prepared["target_run_id"] == runs[1]["run_id"]
    assert _texts(regenerated) == ["first", "one", "second", "two again"]
    assert _texts(edited) == ["other words", "edited"]
    assert edit["replacement_human_message_id"] == edited["messages"][0]["id"] not in ids
    assert edit["source_message_ids"] == [message["id"] for message in regenerated["messages"]]


async def test_its_branches_go_on_from_a_message_in_a_thread_of_their_own(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    scripted.script(Text("one"), Text("two"), Text("another two"))
    async with with_runtime() as gateway:
        thread = await _thread(gateway.user)
        values = await _said(gateway.user, thread, "first")
        answer = values["messages"][-1]["id"]
        await _ask(gateway.user, "POST", f"{thread}/uploads", files={"files": ("a.csv", b"1,2\n")})
        await _said(gateway.user, thread, "second")
        asked = {"message_id": answer, "message_ids": [answer], "title": "Aside"}
        made = await _ask(gateway.user, "POST", f"{thread}/branches", 201, json=asked)
        branch = f"/api/threads/{made['thread_id']}"
        began = await _ask(gateway.user, "GET", branch)
        files = await _ask(gateway.user, "GET", f"{branch}/uploads/list")
        on = await _said(gateway.user, branch, "other second")
        before = await _ask(gateway.user, "GET", thread)
        count = await _ask(gateway.user, "POST", "/api/threads/count", json={})
        await _ask(gateway.user, "POST", f"{thread}/branches", 404, json={"message_id": "unknown"})
        after = await _ask(gateway.user, "POST", "/api/threads/count", json={})

    assert made["branched_from_message_id"] == answer and made["parent_checkpoint_id"]
    assert made["parent_thread_id"] == thread.rsplit("/", 1)[-1] and after == count
    assert began["values"]["title"] == "Aside" and _texts(began["values"]) == ["first", "one"]
    assert began["status"] == "idle" and files["count"] == 1
    assert _texts(on) == ["first", "one", "other second", "another two"]
    assert _texts(before["values"]) == ["first", "one", "second", "two"]


async def test_its_editor_saves_only_over_what_it_has_read_and_sees_what_runs_changed(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    scripted.script(_write("one\n"), Text("done"), _write("one\ntwo\n"), Text("done"))
    async with with_runtime(guardrails={"enabled": False}) as gateway:
        thread = await _thread(gateway.user)
        await _said(gateway.user, thread, "write")
        await _said(gateway.user, thread, "write more")
        runs = [run["run_id"] for run in await _ask(gateway.user, "GET", f"{thread}/runs")]
        params = {"include_files": True, "include_diff": True}
        second, first = [
            await _ask(gateway.user, "GET", f"{thread}/runs/{run}/workspace-changes", params=params) for run in runs
        ]
        brief = await _ask(
            gateway.user, "GET", f"{thread}/runs/{runs[0]}/workspace-changes", params={"include_files": False}
        )
        file = f"{thread}/artifacts/{REPORT}"
        known = hashlib.sha256((await gateway.user.get(file)).content).hexdigest()
        edit = {"content": "mine ü\n", "expected_sha256": known}
        saved = await _ask(gateway.user, "PUT", file, json=edit)
        await _ask(gateway.user, "PUT", file, 409, json={**edit, "content": "too late"})
        await _ask(gateway.user, "PUT", file, 428, json={"content": "blind"})
        content = (await gateway.user.get(file)).text

    assert first["summary"] == {"created": 1, "modified": 0, "deleted": 0, "total": 1}
    assert [(each["path"], each["change"]) for each in second["files"]] == [(f"/{REPORT}", "modified")]
    assert first["files"][0]["diff"].endswith("+one\n") and second["files"][0]["diff"].endswith("+two\n")
    assert brief["files"] == [] and brief["summary"] == second["summary"]
    assert saved["path"] == f"/{REPORT}" and saved["size"] == 8 and content == "mine ü\n"
    assert saved["sha256"] == hashlib.sha256("mine ü\n".encode()).hexdigest()


async def test_its_agents_have_settings_of_their_model(with_runtime: WithRuntime, scripted: ScriptedOpenAI) -> None:
    scripted.script(Text("one"), Text("two"))
    settings = {"temperature": 0.5, "max_tokens": 77, "top_p": None}
    async with with_runtime(agents_api={"enabled": True}) as gateway:
        agent = {"name": "poet", "description": "d", "soul": "", "model_settings": settings}
        made = await _ask(gateway.user, "POST", "/api/agents", 201, json=agent)
        read = await _ask(gateway.user, "GET", "/api/agents/poet")
        await _ask(gateway.user, "POST", "/api/agents", 422, json={**agent, "name": "b", "model_settings": {"heat": 1}})
        for name in ("poet", None):
            await _said(gateway.user, await _thread(gateway.user), "hi", context={"agent_name": name})

    assert made["model_settings"] == read["model_settings"] == settings
    own, default = (json.loads(raw) for raw in scripted.raw_requests)
    assert own["temperature"] == 0.5 and 77 in (own.get("max_tokens"), own.get("max_completion_tokens"))
    assert not {"temperature", "max_tokens", "max_completion_tokens"} & default.keys()


async def test_its_settings_switch_one_mcp_server_and_reset_all(with_runtime: WithRuntime, tmp_path: Path) -> None:
    off = {"url": "http://127.0.0.1:9/mcp", "type": "http", "headers": {"Authorization": "Bearer kept"}}
    servers = {"mcpServers": {"other": off | {"enabled": False}, "one": off | {"disabled": True}}}
    file = tmp_path / "extensions_config.json"
    file.write_text(json.dumps(servers))
    async with with_runtime() as gateway:
        await _ask(gateway.user, "PATCH", "/api/mcp/config", 403, json={"server_name": "one", "enabled": True})
        shown = await _ask(gateway.admin, "PATCH", "/api/mcp/config", json={"server_name": "one", "enabled": True})
        await _ask(gateway.admin, "PATCH", "/api/mcp/config", 404, json={"server_name": "none", "enabled": True})
        reset = await _ask(gateway.admin, "POST", "/api/mcp/cache/reset")
        kept = json.loads(file.read_text())["mcpServers"]

    assert {name: entry["enabled"] for name, entry in shown["mcp_servers"].items()} == {"other": False, "one": True}
    assert kept["other"] == servers["mcpServers"]["other"]
    assert kept["one"]["headers"] == off["headers"] and kept["one"]["enabled"]
    assert reset["success"] and "one" in reset["message"] and "other" not in reset["message"]


async def test_a_post_stops_a_run_and_follows_it(with_runtime: WithRuntime, scripted: ScriptedOpenAI) -> None:
    scripted.script(*[ToolCalls(("bash", {"description": "d", "command": "sleep 60"}))] * 2)
    async with with_runtime(guardrails={"enabled": False}) as gateway:
        thread = await _thread(gateway.user)
        for wait in (False, True):
            asked = {"input": {"messages": [{"role": "user", "content": "work"}]}}
            run = await _ask(gateway.user, "POST", f"{thread}/runs", json=asked)
            stream = f"{thread}/runs/{run['run_id']}/stream"
            stopped = await gateway.user.post(stream, params={"action": "interrupt", "wait": int(wait)})
            ended = await _ask(gateway.user, "GET", f"{thread}/runs/{run['run_id']}")
            followed = await gateway.user.post(stream, params={"action": "interrupt"})
            assert stopped.status_code == (204 if wait else 200) and ended["status"] == "interrupted"
            assert "event: end" in followed.text and ("event: end" in stopped.text) is not wait
