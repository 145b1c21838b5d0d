"""Acceptance checks and receipts of a run, over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from sqlalchemy import Connection, update
from tests.app.gateway.conftest import Gateway, Population, opened, settings_for

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime
from deerflow.storage.tables import runs

REPORT = "/mnt/user-data/outputs/report.md"
CHECKS = [{"command": f"grep -q total {REPORT}"}, {"file_exists": REPORT}]


@pytest.fixture
async def served(tmp_path: Path, population: Population, scripted: ScriptedOpenAI) -> AsyncIterator[Gateway]:
    population.copy_to(Paths(tmp_path).data_dir)
    model = {
        "name": "m",
        "use": "langchain_openai:ChatOpenAI",
        "model": "m",
        "base_url": scripted.base_url,
        "api_key": "k",
    }
    config = {
        "models": [model],
        "sandbox": {
            "use": "deerflow.sandbox.local:LocalSandboxProvider",
            "allow_host_bash": True,
            "tool_image": {"enabled": False},
        },
        "title": {"enabled": False},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    runtime = await asyncio.to_thread(lambda: Runtime(ConfigSource(cwd=tmp_path), Paths(tmp_path)))
    async with opened(settings_for(tmp_path), runtime) as gateway:
        await gateway.resume(population)
        yield gateway


def _written(content: str) -> ToolCalls:
    return ToolCalls(("write_file", {"path": REPORT, "content": content}))


async def _run(gateway: Gateway, **asked: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run and its receipts."""
    thread = (await gateway.admin.post("/api/threads", json={})).json()["thread_id"]
    path = f"/api/threads/{thread}/runs"
    body = {"input": {"messages": [{"role": "user", "content": "report"}]}, **asked}
    (await gateway.admin.post(f"{path}/wait", json=body)).raise_for_status()
    [run] = (await gateway.admin.get(path)).json()
    return run, (await gateway.admin.get(f"{path}/{run['run_id']}/receipts")).json()


async def test_the_agent_goes_on_until_the_checks_pass(served: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(_written("empty"), Text("Done."), _written("total: 3"), Text(f"Now {REPORT} is right."))
    run, receipts = await _run(served, checks=CHECKS)
    assert run["status"] == "success" and run["stop_reason"] == "end_turn" and run["verification"] == "verified"
    assert [check["passed"] for check in receipts["checks"]] == [True, True]
    assert [(claim["claim"], claim["word"]) for claim in receipts["claims"]] == [(REPORT, "verified")]
    assert [file["bytes"] for file in receipts["files"]] == [8]
    asked = scripted.requests[2]["messages"][-1]["content"]
    assert "1 of 2 acceptance checks failed" in asked and "exit code 1" in asked


async def test_checks_that_never_pass_end_after_their_rounds(served: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(_written("empty"), Text("Done."), Text("Still done."), Text("I cannot."))
    run, receipts = await _run(served, checks=[*CHECKS, {"file_exists": "nowhere"}], check_rounds=2)
    assert len(scripted.requests) == 4
    assert (
        run["status"] == "success" and run["stop_reason"] == "checks_failed" and run["verification"] == "contradicted"
    )
    assert [check["passed"] for check in receipts["checks"]] == [False, True, False]


async def test_an_answer_without_a_receipt_is_only_claimed(served: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(ToolCalls(("bash", {"command": "echo all tests pass"})), Text("All tests pass."))
    run, receipts = await _run(served)
    assert run["verification"] == receipts["verification"] == "claimed"
    assert receipts["commands"] == [{"command": "echo all tests pass", "exit_code": 0, "test": False}]
    scripted.script(Text("Paris."))
    run, receipts = await _run(served)
    assert run["verification"] is receipts["verification"] is None and receipts["commands"] == []


async def test_what_an_older_version_judged_has_no_word(served: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(Text("Paris."))
    run, _ = await _run(served)
    older = {
        "verification": "verified",
        "claims": [{"claim": "tests pass", "proved": True}],
        "commands": [],
        "files": [],
    }

    def judged(connection: Connection) -> None:
        connection.execute(update(runs).where(runs.c.run_id == run["run_id"]).values(receipts=older))

    await served.runtime.database.write(judged)
    found = (await served.admin.get(f"/api/threads/{run['thread_id']}/runs/{run['run_id']}/receipts")).json()
    assert found["verification"] is None and found["claims"] == []


@pytest.mark.parametrize("check", [{}, {"command": "a", "file_exists": "b"}, {"command": "a", "timeout": 0}, {"x": 1}])
async def test_a_check_that_is_none_is_refused(served: Gateway, check: dict[str, Any]) -> None:
    thread = (await served.admin.post("/api/threads", json={})).json()["thread_id"]
    answer = await served.admin.post(f"/api/threads/{thread}/runs", json={"input": None, "checks": [check]})
    assert answer.status_code == 422
