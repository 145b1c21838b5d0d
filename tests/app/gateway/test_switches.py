"""Switches of a chat: agents do not get what a person switches off, no matter who starts the run."""
# ruff: noqa: F811 - fixtures of other modules

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import WithRuntime
from tests.app.gateway.test_agents import SKILLS, tools_of
from tests.harness.mcp.conftest import start  # noqa: F401

MEMORY = {"memory_search", "memory_save", "memory_forget", "search_chats"}
EVERYTHING = ["mcp:tickets", "mcp:gone", "memory", "skills", "web"]
SUBAGENT = {"description": "part", "prompt": "key:part", "subagent_type": "general-purpose"}


@pytest.fixture
async def opened(with_runtime: WithRuntime, start: Callable[..., str], tmp_path: Path) -> WithRuntime:
    url = await asyncio.to_thread(start, "http")
    servers = {name: {"type": "http", "url": url, "description": f"The {name}."} for name in ("tickets", "wiki")}
    (tmp_path / "extensions_config.json").write_text(json.dumps({"mcpServers": servers}))
    return partial(
        with_runtime,
        memory={"mode": "both", "search_chats": True},
        skills={"path": str(SKILLS)},
        tool_search={"enabled": False},
    )


async def thread(client: httpx.AsyncClient, **metadata: Any) -> str:
    made = await client.post("/api/threads", json={"metadata": metadata})
    assert made.is_success, made.text
    return made.json()["thread_id"]


async def say(client: httpx.AsyncClient, thread_id: str, text: str = "Hi", **more: Any) -> httpx.Response:
    asked = {"input": {"messages": [{"role": "user", "content": text}]}, **more}
    return await client.post(f"/api/threads/{thread_id}/runs/wait", json=asked)


def servers_of(tools: set[str]) -> set[str]:
    return {tool.partition("_")[0] for tool in tools} & {"tickets", "wiki"}


async def test_what_a_thread_switches_off_neither_agent_nor_subagent_gets(
    opened: WithRuntime, scripted: ScriptedOpenAI
):
    async with opened() as gateway:
        user = gateway.user
        scripted.script(Text("Hello."))
        assert (await say(user, await thread(user))).is_success
        all_tools = tools_of(scripted.requests[-1])
        assert all_tools >= {"web_search", "web_fetch", *MEMORY} and servers_of(all_tools) == {"tickets", "wiki"}
        assert "SKILL.md" in json.dumps(scripted.requests[-1])

        off = await thread(user, switched_off=EVERYTHING)
        scripted.script(ToolCalls(("task", SUBAGENT)), Text("Done."))
        scripted.script(Text("ready"), key="part")
        before = len(scripted.requests)
        # A run can switch off more, and nothing on.
        assert (await say(user, off, context={"mode": "ultra", "switched_off": ["mcp:more"]})).is_success
        sent = scripted.requests[before:]
        assert len(sent) == 3
        for request in sent:
            tools, whole = tools_of(request), json.dumps(request)
            assert not tools & {"web_search", "web_fetch", "image_search", "web_capture", *MEMORY}
            assert servers_of(tools) == {"wiki"} and "SKILL.md" not in whole and "describe_skill" not in tools

        assert (await user.patch(f"/api/threads/{off}", json={"metadata": {"switched_off": []}})).is_success
        scripted.script(Text("Again."))
        assert (await say(user, off)).is_success
        assert tools_of(scripted.requests[-1]) == all_tools


async def test_a_run_without_memory_neither_uses_nor_makes_any(opened: WithRuntime, scripted: ScriptedOpenAI):
    async with opened() as gateway:
        user = gateway.user
        fact = {"content": "The user lives in Riga.", "category": "context"}
        assert (await user.post("/api/memory/facts", json=fact)).is_success
        asked = {"context": {"switched_off": ["memory"]}}
        for more, is_told in (({}, True), (asked, False)):
            scripted.script(ToolCalls(("memory_save", {"content": "A secret."})) if more else Text("Hi."), Text("Hm."))
            assert (await say(user, await thread(user), "Where do I live in Riga?", **more)).is_success
            assert ("lives in Riga" in json.dumps(scripted.requests[-1])) is is_told
        facts = (await user.get("/api/memory")).json()["facts"]
        assert [fact["content"] for fact in facts] == ["The user lives in Riga."]


async def test_a_skill_that_is_switched_off_cannot_be_named_either(opened: WithRuntime, scripted: ScriptedOpenAI):
    async with opened() as gateway:
        skill = next(one["name"] for one in (await gateway.user.get("/api/skills")).json()["skills"] if one["enabled"])
        for off, is_read in (([], True), (["skills"], False)):
            scripted.script(Text("Hi."))
            where = await thread(gateway.user, switched_off=off)
            assert (await say(gateway.user, where, f"/{skill} go")).is_success
            assert (f"skills/public/{skill}" in json.dumps(scripted.requests[-1]["messages"])) is is_read


async def test_a_switch_that_there_is_not_is_refused(with_runtime: WithRuntime):
    async with with_runtime() as gateway:
        user = gateway.user
        where = await thread(user)
        for given in ("web", ["webb"], ["mcp:"], [1], {"web": True}):
            answers = [
                await say(user, where, context={"switched_off": given}),
                await user.patch(f"/api/threads/{where}", json={"metadata": {"switched_off": given}}),
                await user.post("/api/threads", json={"metadata": {"switched_off": given}}),
            ]
            for answer in answers:
                assert answer.status_code == 422 and "switched_off" in answer.text, answer.text
