"""`deerflow acp` as editors use it: a real process, and the official client of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.support.warm_python import for_asyncio

REPORT = ("write_file", {"path": "/mnt/user-data/outputs/report.md", "content": "# Report"})
PRESENT = ("present_files", {"filepaths": ["/mnt/user-data/outputs/report.md"]})


class Editor:
    """``choose`` is what the person answers to each question; None closes it."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.choose: str | None = "approve"
        self.spoke = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.spoke.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> acp.RequestPermissionResponse:
        self.asked.append((tool_call, [option.option_id for option in options]))
        if self.choose is None:
            return acp.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return acp.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=self.choose))

    def on_connect(self, conn: Any) -> None:
        """Nothing to keep."""

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    def said(self) -> str:
        return "".join(getattr(update.content, "text", "") for update in self.of("agent_message_chunk"))


@pytest.fixture
def endpoint() -> Any:
    with ScriptedOpenAI() as endpoint:
        yield endpoint


@pytest.fixture
def config(tmp_path: Path, endpoint: ScriptedOpenAI) -> Path:
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
    off = {"title": {"enabled": False}, "memory": {"enabled": False}, "skills": {"path": "none"}}
    asking = {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": {"ask_tools": ["bash"]}}
    sandbox = {"use": "deerflow.sandbox.local:LocalSandboxProvider", "allow_host_bash": True}
    file = tmp_path / "config.yaml"
    sections = {
        "models": [{**model, "base_url": endpoint.base_url}],
        "sandbox": {**sandbox, "tool_image": {"enabled": False}},
        "guardrails": {"enabled": True, "provider": asking},
        **off,
    }
    file.write_text(json.dumps(sections))
    return file


@asynccontextmanager
async def connected(config: Path) -> AsyncIterator[tuple[Any, Editor]]:
    editor = Editor()
    command = ["-m", "deerflow_app.cli.main", "--config", str(config), "acp"]
    env = {**os.environ, "DEER_FLOW_HOME": str(config.parent / "home")}
    async with asyncio.timeout(120), AsyncExitStack() as stack:
        spawned = acp.spawn_agent_process(editor, sys.executable, *command, env=env, cwd=config.parent)
        with for_asyncio():
            agent, _ = await stack.enter_async_context(spawned)
        about = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert about.agent_info.name == "deerflow" and about.agent_capabilities.load_session
        yield agent, editor


async def test_a_prompt_becomes_words_plan_tool_calls_and_files(
    config: Path, endpoint: ScriptedOpenAI, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("from the editor")
    endpoint.script(
        ToolCalls(("read_file", {"path": "/mnt/user-data/uploads/notes.md"}), text="Let me read."),
        ToolCalls(REPORT),
        ToolCalls(PRESENT),
        Text("Here it is."),
    )
    async with connected(config) as (agent, editor):
        session = (await agent.new_session(cwd=str(tmp_path))).session_id
        embedded = acp.embedded_text_resource("file:///x/other.md", "embedded text")
        prompt = [
            acp.text_block("Report on"),
            acp.resource_link_block("notes.md", (tmp_path / "notes.md").as_uri()),
            acp.resource_block(embedded),
        ]
        answer = await agent.prompt(session_id=session, prompt=prompt)
        assert answer.stop_reason == "end_turn" and editor.said() == "Let me read.Here it is."
        calls = {update.tool_call_id: update for update in editor.of("tool_call")}
        assert [(call.title, call.kind) for call in calls.values()][:2] == [
            ("Read uploads/notes.md", "read"),
            ("Write outputs/report.md", "edit"),
        ]
        results = editor.of("tool_call_update")
        assert {result.tool_call_id for result in results} == set(calls)
        assert "from the editor" in results[0].content[0].content.text
        (link,) = [u.content for u in editor.of("agent_message_chunk") if u.content.type == "resource_link"]
        assert link.name == "report.md" and (tmp_path / "deerflow-out" / "report.md").read_text() == "# Report"
        assert "other.md" in str(endpoint.requests[0]["messages"])

        other = Editor()
        editor.updates, before = other.updates, len(endpoint.requests)
        await agent.load_session(cwd=str(tmp_path), session_id=session)
        assert editor.said() == "Let me read.Here it is." and len(endpoint.requests) == before
        assert len(editor.of("tool_call")) == 3 and "Report on" in editor.of("user_message_chunk")[0].content.text
        with pytest.raises(acp.RequestError):
            await agent.load_session(cwd=str(tmp_path), session_id="nothing")


@pytest.mark.parametrize(("choice", "runs"), [("approve", True), ("reject", False), (None, False)])
async def test_the_person_decides_in_the_editor(
    config: Path, endpoint: ScriptedOpenAI, tmp_path: Path, choice: str | None, runs: bool
) -> None:
    endpoint.script(ToolCalls(("bash", {"command": "echo done > made"})), Text("So be it."))
    async with connected(config) as (agent, editor):
        editor.choose = choice
        session = (await agent.new_session(cwd=str(tmp_path))).session_id
        await agent.prompt(session_id=session, prompt=[acp.text_block("Make it")])
        ((call, options),) = editor.asked
        assert call.raw_input == {"command": "echo done > made"} and call.kind == "execute"
        assert {"approve", "reject"} <= set(options) and editor.said() == "So be it."
        assert bool(list((tmp_path / "home").rglob("made"))) is runs


async def test_a_turn_is_stopped_and_the_session_goes_on(
    config: Path, endpoint: ScriptedOpenAI, tmp_path: Path
) -> None:
    endpoint.script(Text("word " * 2000))
    endpoint.delay = 0.02
    async with connected(config) as (agent, editor):
        session = (await agent.new_session(cwd=str(tmp_path))).session_id
        prompting = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[acp.text_block("Talk")]))
        await editor.spoke.wait()
        await agent.cancel(session_id=session)
        assert (await prompting).stop_reason == "cancelled"
        endpoint.delay = 0
        endpoint.script(Text("Yes."))
        editor.updates.clear()
        assert (
            await agent.prompt(session_id=session, prompt=[acp.text_block("Still there?")])
        ).stop_reason == "end_turn"
        assert editor.said() == "Yes."
