"""Calls that wait for a person while the server's process is killed: each is made once or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.support.gateway_process import GatewayProcess, until

CONFIG = {
    "title": {"enabled": False},
    "guardrails": {
        "enabled": True,
        "provider": {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": {"ask_tools": ["bash"]}},
    },
}
LOG = "/mnt/user-data/workspace/log"


@pytest.fixture
def root() -> Iterator[Path]:
    """A sandbox with a user id of its own must get through, as it does not through pytest's directories."""
    folder = Path(tempfile.mkdtemp(prefix="deerflow-approvals-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _bash(name: str, then: str = "true") -> tuple[str, dict[str, Any]]:
    return "bash", {"description": name, "command": f"echo {name} >> {LOG}; {then}"}


def test_five_pending_calls_survive_kills_and_are_each_made_once_or_not_at_all(root: Path) -> None:
    with ScriptedOpenAI() as endpoint:
        calls = [_bash("approved", "sleep 1000"), *map(_bash, ("before", "rejected", "answered", "last"))]
        endpoint.script(ToolCalls(*calls), Text("All decided."))
        with GatewayProcess(root, model_url=endpoint.base_url, config=json.dumps(CONFIG)) as server:
            server.start()

            def made() -> list[str]:
                return [
                    line
                    for log in root.glob(f"home/users/*/threads/{thread}/user-data/workspace/log")
                    for line in log.read_text().split()
                ]

            with server.client() as http:
                thread = http.post("/api/threads", json={}).raise_for_status().json()["thread_id"]
                said = {"input": {"messages": [{"role": "user", "content": "work"}]}}
                http.post(f"/api/threads/{thread}/runs/wait", json=said).raise_for_status()
            server.restart()
            with server.client() as http:
                state = http.get(f"/api/threads/{thread}/state").raise_for_status().json()
                asked = {
                    request["args"]["description"]: interrupt["id"]
                    for interrupt in state["interrupts"]
                    for request in interrupt["value"]["action_requests"]
                }
                assert (len(asked), made()) == (5, [])
                decisions = {
                    "approved": {"type": "approve"},
                    "before": {"type": "edit", "edited_action": {"name": "bash", "args": _bash("edited")[1]}},
                    "rejected": {"type": "reject", "message": "no"},
                    "answered": {"type": "respond", "message": "It is so."},
                    "last": {"type": "approve"},
                }
                resume = {asked[name]: {"decisions": [decision]} for name, decision in decisions.items()}
                run = http.post(f"/api/threads/{thread}/runs", json={"command": {"resume": resume}}).json()
                until(lambda: "approved" in made(), lambda: server.output)
            server.restart()
            with server.client() as http:
                path = f"/api/threads/{thread}/runs/{run['run_id']}"
                until(lambda: http.get(path).json()["status"] not in ("pending", "running"), lambda: server.output)
                values = http.get(f"/api/threads/{thread}/state").json()["values"]
    results = {m["tool_call_id"]: m["content"] for m in values["messages"] if m["type"] == "tool"}
    in_order = [results[call["id"]] for m in values["messages"] for call in m.get("tool_calls") or ()]
    assert sorted(made()) == ["approved", "edited", "last"]
    assert "may or may not have taken effect" in in_order[0]
    assert "rejected" in in_order[2] and in_order[3].endswith("which was not made:\nIt is so.")
    assert values["messages"][-1]["content"] == "All decided."
