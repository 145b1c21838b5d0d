"""What models used and what it cost: over HTTP, in the terminal and embedded, also of runs that were killed."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway
from tests.support import warm_python
from tests.support.gateway_process import COMMAND, GUARD, gateway_process

from deerflow import DeerFlowClient
from deerflow.storage.budgets import add_usage
from deerflow.storage.database import Database

CALL = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 400},
}
PRICES = {"input": 10, "output": 20, "cache_read": 1, "currency": "EUR"}
PER_CALL = (600 * 10 + 400 * 1 + 100 * 20) / 1e6
LIST = ("bash", {"description": "List", "command": "ls"})


def config(base_url: str, **sections: Any) -> str:
    def model(name: str, **more: Any) -> dict[str, Any]:
        return {
            "name": name,
            "use": "deerflow.models.openai:OpenAIChatModel",
            "model": name,
            "base_url": base_url,
            "api_key": "k",
            **more,
        }

    models = [model("priced", pricing=PRICES), model("unknown")]
    sandbox = {"use": "deerflow.sandbox.local:LocalSandboxProvider", "tool_image": {"enabled": False}}
    return json.dumps({"models": models, "sandbox": sandbox, "title": {"enabled": False}, **sections})


def body(text: str, **more: Any) -> dict[str, Any]:
    return {"input": {"messages": [{"role": "user", "content": text}]}, "if_not_exists": "create", **more}


def test_what_a_killed_run_used_counts_once_wherever_one_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gate = threading.Event(), threading.Event()

    def held(_: dict[str, Any]) -> Text:
        asked.set()
        assert gate.wait(GUARD)
        return Text("lost", usage=CALL)

    with ScriptedOpenAI() as endpoint:
        monkeypatch.setenv("DEER_FLOW_HOME", str(tmp_path / "home"))
        endpoint.script(ToolCalls(LIST, usage=CALL), held, Text("done", usage=CALL), Text("hi", usage=CALL))
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=config(endpoint.base_url)) as gateway:
            with gateway.client() as http:
                run = http.post("/api/threads/t/runs", json=body("list")).raise_for_status().json()
                assert asked.wait(GUARD)
            gateway.kill()
            gate.set()
            gateway.start()
            with gateway.client() as http:
                where = f"/api/threads/t/runs/{run['run_id']}"
                http.get(f"{where}/join").raise_for_status()
                ended = http.get(where).json()
                http.post(
                    "/api/threads/t/runs/wait", json=body("hi", context={"model_name": "unknown"})
                ).raise_for_status()
                report = http.get("/api/usage", params={"by": "model"}).raise_for_status().json()
                days = http.get("/api/usage").raise_for_status().json()
                agents = http.get("/api/usage", params={"by": "agent"}).raise_for_status().json()
            command = [*COMMAND, "usage", "--by", "model"]
            shown = warm_python.run(command, cwd=tmp_path, env=gateway.environment, timeout=GUARD)
            shown.check_returncode()
        assert ended["attempt"] == 2
        assert (ended["llm_call_count"], ended["total_input_tokens"]) == (2, 2000)
        assert ended["cost"] == pytest.approx(2 * PER_CALL)
        priced, unknown = report["rows"]
        assert priced == {
            "key": "priced",
            "calls": 2,
            "input_tokens": 2000,
            "cached_tokens": 800,
            "output_tokens": 200,
            "total_tokens": 2200,
            "unpriced_calls": 0,
            "estimated_calls": 0,
            "cost": {"EUR": pytest.approx(2 * PER_CALL)},
        }
        assert (unknown["key"], unknown["calls"], unknown["unpriced_calls"], unknown["cost"]) == ("unknown", 1, 1, {})
        assert report["total"]["calls"] == 3
        assert [row["key"] for row in days["rows"]] == [datetime.now(UTC).date().isoformat()]
        assert [row["key"] for row in agents["rows"]] == ["lead_agent"]
        assert "0.0168 EUR" in shown.stdout and "1 calls of unknown cost" in shown.stdout
        with monkeypatch.context() as here:
            here.chdir(tmp_path)
            client = DeerFlowClient(tmp_path / "config.yaml")
            assert client.usage(by="model") == report
            client.close()


async def test_people_see_their_own_and_administrators_everyones(gateway: Gateway, tmp_path: Path) -> None:
    database: Database = gateway.runtime.database
    counted = {"m": {"lead_agent": {"calls": 1, "input_tokens": 5, "output_tokens": 1, "cost": 2.0, "currency": "USD"}}}
    other = {"m": {"lead_agent": {"calls": 1, "input_tokens": 1, "output_tokens": 1, "cost": 1.0, "currency": "CNY"}}}
    who = [(await client.get("/api/v1/auth/me")).json()["id"] for client in (gateway.admin, gateway.user)]
    for user_id, usage in ((who[0], counted), (who[1], counted), (who[1], other)):
        await database.write(lambda connection, u=user_id, usage=usage: add_usage(connection, u, "lead_agent", usage))
    from deerflow.features.usage.service import UsageService

    gateway.runtime.usage = UsageService(database)
    mine = (await gateway.user.get("/api/usage")).json()
    assert mine["total"]["cost"] == {"USD": 2.0, "CNY": 1.0} and mine["total"]["calls"] == 2
    assert (await gateway.user.get("/api/usage", params={"everyone": True})).status_code == 403
    assert (await gateway.user.get("/api/usage", params={"person": who[0]})).status_code == 403
    assert (await gateway.user.get("/api/usage", params={"person": who[1]})).json() == mine
    assert (await gateway.admin.get("/api/usage", params={"person": who[1]})).json() == mine
    everyone = (await gateway.admin.get("/api/usage", params={"everyone": True, "by": "person"})).json()
    assert [(row["key"], row["calls"]) for row in everyone["rows"]] == [(who[1], 2), (who[0], 1)]
    today = datetime.now(UTC).date()
    for since, until in ((today, today - timedelta(1)), (today - timedelta(400), today)):
        params = {"since": since.isoformat(), "until": until.isoformat()}
        assert (await gateway.admin.get("/api/usage", params=params)).status_code == 422
    yesterday = (today - timedelta(1)).isoformat()
    before = await gateway.user.get("/api/usage", params={"since": yesterday, "until": yesterday})
    assert before.json()["rows"] == [] and before.json()["total"]["calls"] == 0
