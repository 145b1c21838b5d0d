"""Subagents over HTTP: their events, their transcripts, and what a person decides in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Population
from tests.app.gateway.test_approvals import Site, _asked, _guarded, _resumed, _thread

ULTRA = {"subagent_enabled": True}


def _task(key: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "task", {"description": key, "prompt": f"key:{key}", "subagent_type": "general-purpose", **more}


def _bash(command: str) -> tuple[str, dict[str, Any]]:
    return "bash", {"description": "d", "command": command}


def _go(**more: Any) -> dict[str, Any]:
    return {"input": {"messages": [{"role": "user", "content": "go"}]}, "context": ULTRA, **more}


async def test_approvals_in_three_subagents_are_answered_by_id_in_any_order_over_a_restart(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    scripted.script(ToolCalls(*map(_task, "abc")), Text("All decided."))
    for key in "abc":
        write = ("write_file", {"path": f"{key}.txt", "content": key})
        scripted.script(ToolCalls(write), ToolCalls(_bash(f"echo {key} >> log")), Text(f"{key} ready"), key=key)
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        (await gateway.admin.post(f"{path}/runs/wait", json=_go())).raise_for_status()
        assert len(await _asked(gateway.admin, path)) == 3
    async with site.open() as gateway:
        asked = await _asked(gateway.admin, path)
        await _resumed(gateway, path, **{asked["echo c >> log"]: {"type": "approve"}})
        assert site.log() == ["c"] and len(await _asked(gateway.admin, path)) == 2
        rest = {asked["echo a >> log"]: {"type": "approve"}, asked["echo b >> log"]: {"type": "reject"}}
        values = await _resumed(gateway, path, **rest)
        assert site.log() == ["a", "c"]
        assert values["messages"][-1]["content"] == "All decided."
        tasks = (await gateway.admin.get(f"{path}/tasks")).json()
        assert [task["status"] for task in tasks] == ["completed"] * 3
        said = (await gateway.admin.get(f"{path}/tasks/{tasks[0]['task_id']}/messages")).json()
        assert [message["type"] for message in said] == ["human", "ai", "tool", "ai", "tool", "ai"]
        usage = (await gateway.admin.get(f"{path}/token-usage")).json()
        assert usage["total_tokens"] == sum(len(raw) // 4 + 40 for raw in scripted.raw_requests)
        assert usage["by_caller"]["subagent"] > 0


async def test_events_of_subagents_come_with_their_namespaces(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, {"enabled": False})
    scripted.script(ToolCalls(_task("a")), Text("Done."))
    scripted.script(ToolCalls(_bash("echo a")), Text("a ready"), key="a")
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        asked = _go(stream_mode=["custom", "messages-tuple", "updates"], stream_subgraphs=True)
        answer = await gateway.admin.post(f"{path}/runs/stream", json=asked)
        names = [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]
        data = [
            json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data:")
        ]
        custom = [one for name, one in zip(names, data, strict=True) if name == "custom" and "task_id" in one]
        assert [one["type"] for one in custom] == ["task_started", "task_running", "task_running", "task_completed"]
        (namespace,) = custom[0]["namespace"]
        assert f"messages|{namespace}" in names and f"updates|{namespace}" in names
        assert names.index("custom") < names.index(f"messages|{namespace}")
