"""Assistants, store and crons, as LangGraph's own SDK asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from langgraph_sdk.client import LangGraphClient

from deerflow.agents import create_deerflow_agent
from deerflow.config import AppConfig, Paths
from deerflow.features.assistants.agents import AgentService
from deerflow.features.assistants.service import LEAD_AGENT_ID, AssistantService
from deerflow.features.schedules.service import CronService
from deerflow.features.store import StoreService
from deerflow.identity import Principal
from deerflow.models.demo import DemoChatModel
from deerflow.storage.database import Database
from deerflow_app.gateway.http import errors
from deerflow_app.gateway.routes import assistants, crons, current_principal, current_runtime, store


async def _nothing(*args: Any) -> Any:
    return None


async def _agent() -> Any:
    return await asyncio.to_thread(lambda: create_deerflow_agent(DemoChatModel()))


async def _config() -> AppConfig:
    return AppConfig()


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """As alice, unless the header ``x-user`` says otherwise."""
    database = Database(tmp_path / "deerflow.db")
    agents = AgentService(database, Paths(tmp_path), _config, _nothing)
    service = AssistantService(database, _agent, _nothing, agents)
    runtime = SimpleNamespace(
        assistants=service, store=StoreService(database), crons=CronService(database, service, lambda: None)
    )

    async def principal(request: Request) -> Principal:
        return Principal(request.headers.get("x-user", "alice"))

    app = FastAPI()
    errors.install(app)
    for router in (assistants.router, store.router, crons.router):
        app.include_router(router)
    app.dependency_overrides = {current_principal: principal, current_runtime: lambda: runtime}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/api/", timeout=60) as client:
        yield client
    await database.aclose()


@pytest.fixture
def sdk(http: httpx.AsyncClient) -> LangGraphClient:
    return LangGraphClient(http)


async def test_the_sdk_makes_changes_and_finds_assistants(sdk: LangGraphClient) -> None:
    made: Mapping[str, Any] = await sdk.assistants.create(
        "agent", name="Mine", metadata={"a": 1}, context={"mode": "pro"}
    )
    assert (made["graph_id"], made["version"], made["name"]) == ("lead_agent", 1, "Mine")
    assert made["created_at"].endswith("+00:00")
    ident = made["assistant_id"]
    assert await sdk.assistants.get(ident) == made
    assert (await sdk.assistants.update(ident, name="Ours"))["version"] == 2
    assert [found["version"] for found in await sdk.assistants.get_versions(ident)] == [2, 1]
    assert (await sdk.assistants.set_latest(ident, 1))["name"] == "Mine"
    page: Any = await sdk.assistants.search(limit=1, response_format="object")
    assert page["next"] == "1" and page["assistants"][0]["assistant_id"] == LEAD_AGENT_ID
    found = await sdk.assistants.search(metadata={"a": 1}, select=["name", "version"], sort_by="name", sort_order="asc")
    assert found == [{"name": "Mine", "version": 1}]
    assert await sdk.assistants.count() == 2
    await sdk.assistants.delete(ident, delete_threads=True)
    assert await sdk.assistants.count() == 1


async def test_the_sdk_reads_graph_and_schemas(sdk: LangGraphClient) -> None:
    drawn = await sdk.assistants.get_graph("agent", xray=1)
    assert {"model", "tools"} <= {node["id"] for node in drawn["nodes"]}
    assert "messages" in (await sdk.assistants.get_schemas("lead_agent"))["input_schema"]["properties"]  # pyright: ignore
    assert await sdk.assistants.get_subgraphs("agent", recurse=True) == {}
    assert await sdk.assistants.get_subgraphs("agent", namespace="x") == {}


async def test_assistants_of_others_are_not_there(http: httpx.AsyncClient) -> None:
    made = (await http.post("assistants", json={"graph_id": "agent"})).json()["assistant_id"]
    bob = {"x-user": "bob"}
    for answer in (
        await http.get(f"assistants/{made}", headers=bob),
        await http.patch(f"assistants/{made}", json={"name": "x"}, headers=bob),
        await http.delete(f"assistants/{made}", headers=bob),
        await http.get("assistants/nope"),
    ):
        assert answer.status_code == 404 and answer.json()["code"] == "not_found"
    assert (await http.post("assistants/count", headers=bob)).json() == 1


async def test_pages_are_told_in_headers(http: httpx.AsyncClient) -> None:
    for n in range(3):
        await http.post("assistants", json={"graph_id": "agent", "name": f"n{n}"})
    first = await http.post("assistants/search", json={"limit": 2})
    assert (first.headers["x-pagination-total"], first.headers["x-pagination-next"]) == ("4", "2")
    last = await http.post("assistants/search", json={"limit": 2, "offset": 2})
    assert "x-pagination-next" not in last.headers and len(last.json()) == 2


UNSUPPORTED: list[tuple[str, Any, str]] = [
    ("assistants", {"graph_id": "agent", "colour": "red"}, "colour"),
    ("assistants/search", {"limit": 0}, "limit"),
    ("assistants/search", {"select": ["secret"]}, "select"),
    ("store/items/search", {"limit": 100_000}, "limit"),
    ("runs/crons", {"schedule": "0 * * * *", "strict_resume": True}, "strict_resume"),
    ("runs/crons", {"input": {}}, "schedule"),
    ("runs/crons/search", {"colour": 1}, "colour"),
]


async def test_what_is_not_supported_is_named(http: httpx.AsyncClient) -> None:
    for path, body, field in UNSUPPORTED:
        answer = await http.post(path, json=body)
        assert answer.status_code == 422
        assert any(error["field"].startswith(field) for error in answer.json()["errors"]), answer.text


async def test_the_sdk_stores_and_finds_items(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    await sdk.store.put_item(["docs", "a"], "k1", {"n": 1, "kind": "x"}, ttl=5, index=False)
    await sdk.store.put_item(["docs", "b"], "k2", {"n": 2, "kind": "x"})
    item = await sdk.store.get_item(["docs", "a"], "k1", refresh_ttl=False)
    assert (item["namespace"], item["value"]) == (["docs", "a"], {"n": 1, "kind": "x"})
    assert item["created_at"].endswith("+00:00")  # pyright: ignore
    found = await sdk.store.search_items(["docs"], filter={"kind": "x", "n": {"$gt": 1}}, query="anything")
    assert [(one["key"], one.get("score")) for one in found["items"]] == [("k2", None)]
    assert await sdk.store.list_namespaces(prefix=["docs"], max_depth=1) == {"namespaces": [["docs"]]}
    assert (
        await http.get("store/items", params={"namespace": "docs.a", "key": "k1"}, headers={"x-user": "bob"})
    ).json() is None
    await sdk.store.delete_item(["docs", "a"], "k1")
    await sdk.store.delete_item(["docs", "a"], "k1")
    assert await sdk.store.get_item(["docs", "a"], "k1") is None


async def test_what_the_store_cannot_take_is_refused(http: httpx.AsyncClient) -> None:
    for body in (
        {"namespace": [], "key": "k", "value": {}},
        {"namespace": ["a.b"], "key": "k", "value": {}},
        {"namespace": ["a"], "key": "", "value": {}},
        {"namespace": ["a"], "key": "k", "value": []},
        {"namespace": ["a"], "key": "k", "value": {}, "ttl": 0},
        {"namespace": ["a"], "key": "k", "value": {"x": "\0"}},
        {"namespace": ["langgraph"], "key": "k", "value": {}},
    ):
        assert (await http.put("store/items", json=body)).status_code == 422, body
    assert (await http.get("store/items", params={"namespace": "a..b", "key": "k"})).status_code == 422
    answer = await http.post("store/items/search", json={"filter": {"a": {"$near": 1}}})
    assert answer.status_code == 422 and "$near" in answer.json()["detail"]


async def test_the_sdk_makes_changes_and_finds_crons(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    made: Any = await sdk.crons.create(
        "agent",
        schedule="0 9 * * *",
        timezone="Europe/Berlin",
        input={"messages": []},
        metadata={"why": "news"},
        on_run_completed="keep",
        end_time=datetime(2100, 1, 1, tzinfo=UTC),
        stream_mode=["values"],
    )
    assert (made["assistant_id"], made["on_run_completed"], made["enabled"]) == (LEAD_AGENT_ID, "keep", True)
    assert made["payload"]["input"] == {"messages": []} and made["next_run_date"].endswith("+00:00")
    ident = made["cron_id"]
    changed: Any = await sdk.crons.update(ident, schedule="0 10 * * *", end_time=None)
    assert (changed["schedule"], changed["end_time"], changed["timezone"]) == ("0 10 * * *", None, "Europe/Berlin")
    off: Any = await sdk.crons.update(ident, enabled=False)
    assert off["next_run_date"] is None
    found = await sdk.crons.search(enabled=False, metadata={"why": "news"}, select=["cron_id", "enabled"])
    assert found == [{"cron_id": ident, "enabled": False}]
    assert await sdk.crons.count(assistant_id=LEAD_AGENT_ID) == 1
    assert (await http.get(f"runs/crons/{ident}", headers={"x-user": "bob"})).status_code == 404
    await sdk.crons.delete(ident)
    assert (await http.get(f"runs/crons/{ident}")).status_code == 404


async def test_a_cron_that_cannot_be_is_refused(http: httpx.AsyncClient) -> None:
    for body, status in (
        ({"schedule": "61 * * * *"}, 422),
        ({"schedule": "0 * * * *", "timezone": "Mars/Olympus"}, 422),
        ({"schedule": "0 * * * *", "assistant_id": "nope"}, 422),
        ({"schedule": "0 * * * *"}, 404),
    ):
        assert (await http.post("threads/t1/runs/crons", json=body)).status_code == status
