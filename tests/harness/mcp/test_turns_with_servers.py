"""An agent with servers: from the file to the call, and back."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.harness.mcp.conftest import on_host
from tests.harness.skills.conftest import settings

from deerflow import DeerFlowClient


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "extensions_config.json"
    monkeypatch.setenv("DEER_FLOW_EXTENSIONS_CONFIG_PATH", str(made))
    return made


async def client_of(
    endpoint: ScriptedOpenAI, tmp_path: Path, *, unattended: bool = False, **sections: Any
) -> DeerFlowClient:
    config, data = settings(endpoint, **sections), tmp_path / "data"
    return await asyncio.to_thread(lambda: DeerFlowClient(config=config, base_dir=data, unattended=unattended))


def offered(request: Any) -> set[str]:
    return {tool["function"]["name"] for tool in request["tools"]}


def result(request: Any) -> str:
    return [message["content"] for message in request["messages"] if message["role"] == "tool"][-1]


async def test_a_turn_calls_a_server_and_a_changed_file_changes_the_next_turns_tools(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    file.write_text(json.dumps({"mcpServers": {"s": on_host()}}))
    endpoint.script(ToolCalls(("s_echo", {"text": "from afar"})), Text("Done."), Text("Bye."))
    async with await client_of(endpoint, tmp_path) as client:
        assert await client.achat("Echo!", thread_id="t") == "Done."
        assert re.fullmatch(
            r'<untrusted-(\w+) source="s_echo">\nfrom afar\n</untrusted-\1>', result(endpoint.requests[1])
        )
        [call] = [span for span in (await client.atimeline("t"))["spans"] if span["kind"] == "tool"]
        assert (call["name"], call.get("server")) == ("s_echo", "s")
        file.write_text(json.dumps({"mcpServers": {}, "skills": {}}))
        await client.achat("And now?", thread_id="t")
    first, second, third = map(offered, endpoint.requests)
    assert {"s_echo", "s_picture"} <= first == second
    assert "s_echo" not in third


async def test_what_was_searched_for_is_offered_from_then_on_behind_all_other_tools(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    file.write_text(json.dumps({"mcpServers": {"s": on_host()}}))
    endpoint.script(
        ToolCalls(("s_echo", {"text": "too early"})),
        ToolCalls(("tool_search", {"query": "says again"}), ("tool_search", {"query": "zebra"})),
        ToolCalls(("s_echo", {"text": "hi"})),
        Text("Done."),
        ToolCalls(("tool_search", {"query": "select:s_fail, nothing"})),
        Text("Bye."),
    )
    async with await client_of(endpoint, tmp_path, tool_search={"enabled": True}) as client:
        await client.achat("Echo!", thread_id="t")
        await client.achat("And?", thread_id="t")
    first, second, third, fourth, fifth, sixth = endpoint.requests
    stable = [tool["function"]["name"] for tool in first["tools"]]
    assert "tool_search" in stable and not any(name.startswith("s_") for name in stable)
    assert "select:s_echo" in result(second)
    searched = [message["content"] for message in third["messages"] if message["role"] == "tool"][1:]
    assert "- s_echo: Says it again." in searched[0] and searched[1] == "No tools found matching: zebra"
    for request, more in ((second, []), (third, ["s_echo"]), (fifth, ["s_echo"]), (sixth, ["s_echo", "s_fail"])):
        assert request["tools"][: len(stable)] == first["tools"]
        assert [tool["function"]["name"] for tool in request["tools"][len(stable) :]] == more
    assert "hi" in result(fourth)


async def test_an_entry_switches_tools_off_and_says_which_ask_and_which_are_forbidden(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    tools = {"fail": {"enabled": False}, "environment": {"policy": "ask"}, "echo": {"policy": "deny"}}
    file.write_text(json.dumps({"mcpServers": {"s": on_host(tools=tools)}}))
    endpoint.script(ToolCalls(("s_echo", {"text": "hi"}), ("s_environment", {})), Text("Done."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Go.", thread_id="t")
        assert "s_fail" not in offered(endpoint.requests[0])
        (waiting,) = (await client.athread_state("t"))["interrupts"]
        assert waiting["value"]["action_requests"][0]["name"] == "s_environment"
        async for _ in client.aresume("t", answers={waiting["id"]: {"decisions": [{"type": "approve"}]}}):
            pass
    results = [message["content"] for message in endpoint.requests[-1]["messages"] if message["role"] == "tool"]
    assert "deerflow.tool_denied" in results[0] and "pid=" in results[1]


@pytest.mark.parametrize(
    ("policy", "asks"), [("allow", False), (None, True)], ids=["allowed in the entry", "as the guardrail judges"]
)
async def test_an_entry_allows_what_only_the_shipped_policy_asks_about(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path, policy: str | None, asks: bool
) -> None:
    file.write_text(json.dumps({"mcpServers": {"s": on_host(tools={"environment": {"policy": policy}})}}))
    endpoint.script(ToolCalls(("s_environment", {})), *(() if asks else (Text("Done."),)))
    guardrails = {"enabled": True, "policy": "strict"}
    async with await client_of(endpoint, tmp_path, guardrails=guardrails) as client:
        await client.achat("Go.", thread_id="t")
        assert bool((await client.athread_state("t"))["interrupts"]) is asks
    endpoint.script(ToolCalls(("s_environment", {})), Text("Done."))
    guardrails = {
        "enabled": True,
        "provider": {
            "use": "deerflow.guardrails.builtin:AllowlistProvider",
            "config": {"denied_tools": ["s_environment"]},
        },
    }
    async with await client_of(endpoint, tmp_path, guardrails=guardrails) as client:
        await client.achat("Go.", thread_id="u")
    assert "not allowed here" in result(endpoint.requests[-1]), "what a provider forbids stays forbidden"


async def test_a_run_that_is_cancelled_cancels_its_call_at_the_server(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    file.write_text(json.dumps({"mcpServers": {"s": on_host()}}))
    endpoint.script(ToolCalls(("s_hang", {})), ToolCalls(("s_seen_cancelled", {})), Text("Done."))
    async with await client_of(endpoint, tmp_path) as client:
        turn = asyncio.ensure_future(client.achat("Go.", thread_id="t"))
        while not any(one.server.calls for one in client._workshop.harness.mcp._running.values()):
            await asyncio.sleep(0.02)
        turn.cancel()
        await asyncio.wait({turn})
        async with asyncio.timeout(20):
            while any(one.server.calls for one in client._workshop.harness.mcp._running.values()):
                await asyncio.sleep(0.02)
        await client.achat("And?", thread_id="u")
    assert "\n1\n" in result(endpoint.requests[-1])
