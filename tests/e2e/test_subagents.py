"""Subagents do each thing once, and the lead gets all results, however often the process is killed."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.replies import Delay, Reply, Text, ToolCalls
from bench.request_log import Record
from bench.scenarios import text_of
from bench.scripted_openai import ScriptedOpenAI
from tests.support.gateway_process import GatewayProcess

CHILDREN, STEPS = "abc", 4
GUARD = 120.0
_KEY = re.compile(r"mark (\w)")


class TeamEndpoint(ScriptedOpenAI):
    """A lead agent with three subagents, each of which appends its marks to a file. Answers follow from transcripts alone."""

    background = False

    def reply_to(self, record: Record) -> Reply:
        messages = record.body["messages"]
        users = [text_of(message) for message in messages if message["role"] == "user"]
        results = [text_of(message) for message in messages if message["role"] == "tool"]
        if found := _KEY.search(users[0]):
            return Delay(0.01, self._step(found[1], results), 0.002)
        if not results:
            return Delay(0.01, ToolCalls(*map(self._task, CHILDREN)))
        done = [*results, *users] if self.background else results
        return Delay(0.01, Text(f"{sum('all marks' in text for text in done)} have ended."))

    def _task(self, key: str) -> tuple[str, dict[str, Any]]:
        asked = {"description": key, "prompt": f"Please mark {key}", "subagent_type": "general-purpose"}
        return "task", {**asked, "background": self.background}

    def _step(self, key: str, results: list[str]) -> Reply:
        done = sum("wrote" in result for result in results)
        if done == STEPS:
            return Text(f"{key}: all marks are there")
        mark = f"{key}-{done}"
        write = f"echo {mark} >> marks; sleep 0.03; echo wrote"
        if results and "wrote" not in results[-1]:  # it may have taken effect
            write = f"grep -qx {mark} marks || echo {mark} >> marks; echo wrote"
        return ToolCalls(("bash", {"description": mark, "command": write}))


@pytest.fixture
def root() -> Iterator[Path]:
    """A sandbox with a user id of its own must get through, as it does not through pytest's directories."""
    folder = Path(tempfile.mkdtemp(prefix="deerflow-subagents-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _survives(root: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    with TeamEndpoint() as endpoint, GatewayProcess(root, model_url=endpoint.base_url) as server:
        server.start()
        made = 0
        while made < kills:
            endpoint.background = chance.random() < 0.5
            with server.client() as http:
                thread = http.post("/api/threads", json={}).raise_for_status().json()["thread_id"]
                asked = {
                    "input": {"messages": [{"role": "user", "content": "go"}]},
                    "context": {"subagent_enabled": True},
                }
                run = http.post(f"/api/threads/{thread}/runs", json=asked).raise_for_status().json()["run_id"]
            while made < kills and _moment(server, endpoint, f"/api/threads/{thread}/runs/{run}", chance.randint(1, 9)):
                time.sleep(chance.uniform(0, 0.1))
                server.kill()
                server.start()
                made += 1
            _check(root, server, thread, run, endpoint.background)


def _status(server: GatewayProcess, path: str) -> str:
    try:
        with server.client() as http:
            return http.get(path).raise_for_status().json()["status"]
    except httpx.HTTPError:
        return "away"


def _moment(server: GatewayProcess, endpoint: TeamEndpoint, path: str, answers: int) -> bool:
    """Somewhere in the run; False: it has ended."""
    enough, until = len(endpoint.records) + answers, time.monotonic() + GUARD
    while len(endpoint.records) < enough:
        if _status(server, path) in ("success", "error", "interrupted", "timeout"):
            return False
        assert time.monotonic() < until, server.output[-3000:]
        time.sleep(0.01)
    return True


def _check(root: Path, server: GatewayProcess, thread: str, run: str, background: bool) -> None:
    path, until = f"/api/threads/{thread}", time.monotonic() + GUARD
    while (status := _status(server, f"{path}/runs/{run}")) in ("pending", "running", "away"):
        assert time.monotonic() < until, server.output[-3000:]
        time.sleep(0.05)
    assert status == "success", server.output[-3000:]
    (log,) = root.glob(f"home/users/*/threads/{thread}/user-data/workspace/marks")
    wanted = Counter(f"{key}-{step}" for key in CHILDREN for step in range(STEPS))
    assert Counter(log.read_text().split()) == wanted
    with server.client() as http:
        messages = http.get(f"{path}/state").json()["values"]["messages"]
        assert messages[-1]["content"] == "3 have ended.", [message["content"] for message in messages]
        tasks = http.get(f"{path}/tasks").json()
        assert [(task["status"], task["background"]) for task in tasks] == [("completed", background)] * 3
        for task in tasks:
            said = http.get(f"{path}/tasks/{task['task_id']}/messages").json()
            assert [message["type"] for message in said[:2]] == ["human", "ai"]
            assert said[-1]["content"] == f"{task['description']}: all marks are there"
            calls = [call["id"] for message in said for call in message.get("tool_calls") or ()]
            assert calls == [message["tool_call_id"] for message in said if message["type"] == "tool"]


@pytest.mark.timeout(600)
def test_subagents_do_each_thing_once_over_some_kills(root: Path) -> None:
    _survives(root, kills=3, seed=5)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_subagents_do_each_thing_once_over_many_kills(root: Path) -> None:
    _survives(root, kills=60, seed=11)
