"""Calls that wait for a person's decision, over HTTP and over a restart of the server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway, Population, opened, settings_for

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime


def _write(name: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": f"/mnt/user-data/workspace/{name}", "content": name}


async def _resumed(gateway: Gateway, path: str, **answers: Any) -> dict[str, Any]:
    resume = {key: {"decisions": [decision]} for key, decision in answers.items()}
    answer = await gateway.admin.post(f"{path}/runs/wait", json={"command": {"resume": resume}})
    answer.raise_for_status()
    return answer.json()


async def test_pending_calls_survive_a_restart_and_are_decided_one_by_one(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    population.copy_to(Paths(tmp_path).data_dir)
    config = {
        "models": [
            {
                "name": "m",
                "use": "langchain_openai:ChatOpenAI",
                "model": "m",
                "base_url": scripted.base_url,
                "api_key": "k",
            }
        ],
        "sandbox": {"use": "deerflow.sandbox.local:LocalSandboxProvider", "tool_image": {"enabled": False}},
        "title": {"enabled": False},
        "guardrails": {
            "enabled": True,
            "provider": {
                "use": "deerflow.guardrails.builtin:AllowlistProvider",
                "config": {"ask_tools": ["write_file"], "denied_tools": ["str_replace"]},
            },
        },
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))

    async def runtime() -> Runtime:
        return await asyncio.to_thread(lambda: Runtime(ConfigSource(cwd=tmp_path), Paths(tmp_path)))

    scripted.script(
        ToolCalls(
            _write("a"), _write("b"), ("str_replace", {"path": "x", "old_str": "a", "new_str": "b"}), _write("c")
        ),
        Text("Written."),
    )
    async with opened(settings_for(tmp_path), await runtime()) as gateway:
        await gateway.resume(population)
        thread = (await gateway.admin.post("/api/threads", json={})).json()["thread_id"]
        path = f"/api/threads/{thread}"
        said = {"input": {"messages": [{"role": "user", "content": "write"}]}}
        (await gateway.admin.post(f"{path}/runs/wait", json=said)).raise_for_status()
        assert (await gateway.admin.get(path)).json()["status"] == "interrupted"
    async with opened(settings_for(tmp_path), await runtime()) as gateway:
        await gateway.resume(population)
        state = (await gateway.admin.get(f"{path}/state")).json()
        asked = {
            request["args"]["content"]: interrupt["id"]
            for interrupt in state["interrupts"]
            for request in interrupt["value"]["action_requests"]
        }
        assert sorted(asked) == ["a", "b", "c"]
        await _resumed(gateway, path, **{asked["c"]: {"type": "approve"}})
        edited = {"name": "write_file", "args": _write("z")[1]}
        values = await _resumed(
            gateway,
            path,
            **{asked["a"]: {"type": "reject"}, asked["b"]: {"type": "edit", "edited_action": edited}},
        )
        results = [message for message in values["messages"] if message["type"] == "tool"]
        assert [message["status"] for message in results].count("error") == 2
        assert values["messages"][-1]["content"] == "Written."
        written = sorted(file.name for file in tmp_path.rglob("workspace/*") if file.is_file())
        assert written == ["c", "z"]
