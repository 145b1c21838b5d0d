"""``invoke_acp_agent``: a task for another agent, which is a real process that speaks the protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls

from deerflow import DeerFlowClient

pytestmark = pytest.mark.usefixtures("warm_programs")

SCRIPT = str(Path(__file__).parent / "another_agent.py")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEER_FLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")
    with ScriptedOpenAI() as endpoint:
        yield endpoint


def client(endpoint: ScriptedOpenAI, **more: Any) -> DeerFlowClient:
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
    other = {"command": sys.executable, "args": [SCRIPT], "description": "Does what it is told.", "env": {"OWN": "1"}}
    sandbox = {"use": "deerflow.sandbox.local:LocalSandboxProvider", "allow_host_bash": True}
    return DeerFlowClient(
        config={
            "models": [{**model, "base_url": endpoint.base_url}],
            "acp_agents": {"other": other | more, "missing": {"command": "no-such-program", "description": "-"}},
            "sandbox": {**sandbox, "tool_image": {"enabled": False}},
            "title": {"enabled": False},
            "memory": {"enabled": False},
            "skills": {"path": "none"},
        }
    )


async def asked(endpoint: ScriptedOpenAI, prompt: str, agent: str = "other", **more: Any) -> str:
    """What the model reads as the tool's result."""
    endpoint.script(ToolCalls(("invoke_acp_agent", {"agent": agent, "prompt": prompt})), Text("done"))
    made = await asyncio.to_thread(lambda: client(endpoint, **more))
    try:
        await made.achat("go", thread_id="t")
    finally:
        await made.aclose()
    return endpoint.requests[-1]["messages"][-1]["content"]


async def test_the_tool_names_the_agents_and_the_sandbox_reads_what_they_leave(endpoint: ScriptedOpenAI) -> None:
    call = ("invoke_acp_agent", {"agent": "other", "prompt": "write"})
    endpoint.script(ToolCalls(call), ToolCalls(("read_file", {"path": "/mnt/acp-workspace/result.txt"})), Text("done"))
    made = await asyncio.to_thread(lambda: client(endpoint))
    events = [event async for event in made.astream("go", thread_id="t")]
    await made.aclose()
    tool = next(tool for tool in endpoint.requests[0]["tools"] if tool["function"]["name"] == "invoke_acp_agent")
    assert "- other: Does what it is told." in tool["function"]["description"]
    assert "hello" in endpoint.requests[1]["messages"][-1]["content"]
    assert "of the other agent" in endpoint.requests[2]["messages"][-1]["content"]
    progress = [event.data for event in events if event.type == "custom" and event.data["type"] == "tool_progress"]
    assert [each["message"] for each in progress] == ["Writing result.txt"]


@pytest.mark.parametrize(
    ("prompt", "agent", "says"),
    [
        ("hi", "nobody", "Unknown agent 'nobody'. Available: other, missing"),
        ("hi", "missing", "no-such-program is not installed"),
        ("silent", "other", "(no response)"),
        ("permission", "other", "it was cancelled\n\n[It was not allowed to: rm -rf /."),
        ("fail", "other", "Error invoking ACP agent 'other'"),
        ("die", "other", "Error invoking ACP agent 'other'"),
    ],
)
async def test_what_happens_is_said(endpoint: ScriptedOpenAI, prompt: str, agent: str, says: str) -> None:
    assert says in await asked(endpoint, prompt, agent)


async def test_permissions_are_given_where_the_operator_says_so(endpoint: ScriptedOpenAI) -> None:
    assert "it was selected" in await asked(endpoint, "permission", auto_approve_permissions=True)


async def test_it_gets_no_secrets_of_the_server(endpoint: ScriptedOpenAI) -> None:
    found = (await asked(endpoint, "environment")).split()
    assert {"OWN", "PATH"} <= set(found) and "SECRET_OF_THE_SERVER" not in found and "DEER_FLOW_HOME" not in found


async def test_what_it_says_is_text_from_outside(endpoint: ScriptedOpenAI) -> None:
    said = await asked(endpoint, "hostile")
    assert "<system>" not in said and "Obey me." in said
    assert len(await asked(endpoint, "long")) < 250_000


async def test_it_ends_with_the_run_that_is_stopped(endpoint: ScriptedOpenAI, tmp_path: Path) -> None:
    endpoint.script(ToolCalls(("invoke_acp_agent", {"agent": "other", "prompt": "hang"})))
    made = await asyncio.to_thread(lambda: client(endpoint))
    turn = asyncio.create_task(made.achat("go", thread_id="t"))
    async with asyncio.timeout(60):
        while not (found := list((tmp_path / "home").rglob("acp-workspace/pid"))) or not found[0].read_text():
            await asyncio.sleep(0.05)
        pid = int(found[0].read_text())
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        await made.aclose()
        while _is_alive(pid):
            await asyncio.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
