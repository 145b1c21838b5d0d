"""An hour more or less on the wall clock, in the middle of everything, is nobody's business but the calendar's."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.support.wall_clock import set_clock

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime
from deerflow.storage.tables import utc_now

from .conftest import PASSWORD, USER, listening, settings_for


@pytest.mark.parametrize("hours", [1, -1])
async def test_runs_queues_jobs_and_sessions_go_on_when_the_clock_is_set(
    tmp_path: Path, scripted: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    model = {"name": "scripted", "use": "langchain_openai:ChatOpenAI", "model": "scripted-model"}
    model |= {"base_url": scripted.base_url, "api_key": "test-key"}
    config = ConfigSource(cwd=tmp_path, overrides={"models": [model], "runs": {"timeout_seconds": 900}})
    runtime = await asyncio.to_thread(Runtime, config, Paths(tmp_path))
    asked, answer = threading.Event(), threading.Event()

    def reply(request: dict[str, Any]) -> Text:
        if not request.get("tools"):
            return Text("A title")
        asked.set()
        answer.wait(60)
        return Text(f"Answer to {request['messages'][-1]['content'][-1]}.")

    def body(number: int) -> dict[str, Any]:
        messages = [{"role": "user", "content": f"Question {number}"}]
        return {"input": {"messages": messages}, "multitask_strategy": "enqueue"}

    scripted.script(*[reply] * 4)
    async with listening(settings_for(tmp_path), runtime) as gateway, asyncio.timeout(120):
        await gateway.populate()
        user, token = gateway.user, await gateway.token(gateway.user, "read", "write")
        thread = (await user.post("/api/threads", json={})).json()["thread_id"]
        first = (await user.post(f"/api/threads/{thread}/runs", json=body(1))).json()["run_id"]
        await asyncio.to_thread(asked.wait, 60)
        before = utc_now()

        set_clock(monkeypatch, timedelta(hours=hours))

        assert abs(utc_now() - before - timedelta(hours=hours)) < timedelta(minutes=5), "the test itself"
        second = (await user.post(f"/api/threads/{thread}/runs", json=body(2))).json()["run_id"]
        answer.set()
        for run in (first, second):
            stream = (await token.get(f"/api/threads/{thread}/runs/{run}/stream")).text
            assert "event: end" in stream
            assert (await user.get(f"/api/threads/{thread}/runs/{run}")).json()["status"] == "success"
        another = await gateway.sign_in(USER)
        third = await another.post(f"/api/threads/{thread}/runs/wait", json=body(3))
        said = [message["content"] for message in third.json()["messages"] if message["type"] == "ai"]
        assert said == ["Answer to 1.", "Answer to 2.", "Answer to 3."]
        assert (await user.get("/api/v1/auth/me")).json()["email"] == USER
        while (await user.get(f"/api/threads/{thread}")).json()["values"].get("title") != "A title":
            await asyncio.sleep(0.05)
        changed = {"current_password": PASSWORD, "new_password": "another good horse"}
        assert (await user.post("/api/v1/auth/change-password", json=changed)).status_code == 200
