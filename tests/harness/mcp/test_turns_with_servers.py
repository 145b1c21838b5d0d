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
from deerflow.features.mcp.offer import McpOffer


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


async def test_what_a_search_finds_is_called_and_the_tools_of_the_requests_stay_the_same(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    tools = {"echo": {"policy": "allow"}, "fail": {"policy": "allow"}}
    file.write_text(json.dumps({"mcpServers": {"s": on_host(description="A parrot.", tools=tools)}}))
    endpoint.script(
        ToolCalls(("s_echo", {"text": "at once"})),
        ToolCalls(("tool_search", {"query": "says again"}), ("tool_search", {"query": "ecko"})),
        ToolCalls(("call_tool", {"name": "s_echo", "arguments": {"text": "hi"}}), ("call_tool", {"name": "s_eco"})),
        ToolCalls(("call_tool", {"name": "s_echo", "text": "beside"}), ("call_tool", {"name": "bash"})),
        Text("Done."),
        ToolCalls(("call_tool", {"name": "s_fail", "arguments": '{"note": "as text"}'})),
        Text("Bye."),
    )
    async with await client_of(endpoint, tmp_path, tool_search={"enabled": True}) as client:
        await client.achat("Echo!", thread_id="t")
        spans = (await client.atimeline("t"))["spans"]
        await client.achat("And?", thread_id="t")
        spans += (await client.atimeline("t"))["spans"]
    first = endpoint.requests[0]
    assert all(request["tools"] == first["tools"] for request in endpoint.requests)
    assert {"tool_search", "call_tool"} <= offered(first) and not any(name.startswith("s_") for name in offered(first))
    assert "- s (A parrot.): s_" in first["messages"][0]["content"] and "s_echo" in first["messages"][0]["content"]
    results = [message["content"] for message in endpoint.requests[-1]["messages"] if message["role"] == "tool"]
    for result, text in zip((results[0], results[3], results[5]), ("at once", "hi", "beside"), strict=True):
        assert re.fullmatch(rf'<untrusted-(\w+) source="s_echo">\n{text}\n</untrusted-\1>', result)
    assert "- s_echo: Says it again. Arguments: {" in results[1] and "- s (A parrot.): s_" in results[1]
    assert "Similar names: s_echo" in results[2] and "- s (A parrot.): s_" in results[2]
    assert "no tool 's_eco' behind call_tool" in results[4] and "Similar names: s_echo" in results[4]
    assert results[6] == "Error: bash is called directly, not with call_tool."
    assert "s_fail: " in results[7] and "Arguments: {" in results[7], "it was guessed, so it is shown"
    called = [span["name"] for span in spans if span["kind"] == "tool"]
    assert called.count("s_echo") == 3 and "s_fail" in called


async def test_long_arguments_behind_call_tool_are_kept_in_a_file_like_others(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    file.write_text(json.dumps({"mcpServers": {"s": on_host(tools={"echo": {"policy": "allow"}})}}))
    long = "word " * 20_000
    endpoint.script(ToolCalls(("call_tool", {"name": "s_echo", "arguments": {"text": long}})), Text("Done."))
    async with await client_of(endpoint, tmp_path, tool_search={"enabled": True}) as client:
        await client.achat("Go.", thread_id="t")
    (call,) = endpoint.requests[-1]["messages"][-2]["tool_calls"]
    args = json.loads(call["function"]["arguments"])
    assert args["name"] == "s_echo" and len(args["arguments"]["text"]) < 8_000
    assert "-arguments" in args["arguments"]["text"]


async def test_guard_grant_and_card_of_a_tool_behind_call_tool_are_its_own(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    tools = {"environment": {"policy": "ask"}, "echo": {"policy": "deny"}}
    file.write_text(json.dumps({"mcpServers": {"s": on_host(tools=tools)}}))
    ask = ("call_tool", {"name": "s_environment", "arguments": {}})
    endpoint.script(
        ToolCalls(("call_tool", {"name": "s_echo", "arguments": {"text": "no"}}), ask), ToolCalls(ask), Text("Done.")
    )
    async with await client_of(endpoint, tmp_path, tool_search={"enabled": True}) as client:
        await client.achat("Go.", thread_id="t")
        (waiting,) = (await client.athread_state("t"))["interrupts"]
        assert waiting["value"]["action_requests"][0]["name"] == "s_environment"
        assert waiting["value"]["effect"]["server"] == "s"
        answers = {waiting["id"]: {"decisions": [{"type": "approve", "grant": "thread"}]}}
        async for _ in client.aresume("t", answers=answers):
            pass
        assert not (await client.athread_state("t"))["interrupts"], "the grant holds for the next call"
    results = [message["content"] for message in endpoint.requests[-1]["messages"] if message["role"] == "tool"]
    assert "deerflow.tool_denied" in results[0] and "pid=" in results[1] and "pid=" in results[2]


async def test_a_model_with_a_small_window_gets_a_small_request(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    file.write_text(json.dumps({"mcpServers": {"s": on_host()}}))
    sizes: list[int] = []
    for window in (16_000, 128_000):
        entry = settings(endpoint)["models"][0] | {"context_window": window}
        endpoint.script(Text("Done."))
        client = await client_of(endpoint, tmp_path, models=[entry], skills={}, tool_search={"enabled": True})
        async with client:
            await client.achat("Hi!", thread_id=f"t{window}", subagent_enabled=True)
        request = endpoint.requests[-1]
        sizes.append(len(json.dumps([request["tools"], request["messages"][0]])))
        assert ("task" in offered(request), "web_capture" in offered(request)) == (window > 16_000,) * 2
        assert "call_tool" in offered(request)
    assert sizes[0] <= 12.5 * 1024 < sizes[1], "10 kB, and what names and calls tools of servers"


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
        while not any(
            one.server.calls for one in client._agent_provider.harness.of(McpOffer).servers._running.values()
        ):
            await asyncio.sleep(0.02)
        turn.cancel()
        await asyncio.wait({turn})
        async with asyncio.timeout(20):
            while any(
                one.server.calls for one in client._agent_provider.harness.of(McpOffer).servers._running.values()
            ):
                await asyncio.sleep(0.02)
        await client.achat("And?", thread_id="u")
    assert "\n1\n" in result(endpoint.requests[-1])
