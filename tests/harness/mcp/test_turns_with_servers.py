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
