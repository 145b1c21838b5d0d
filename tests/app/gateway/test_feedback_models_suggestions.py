from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text
from fastapi import FastAPI, Request
from sqlalchemy import insert

from deerflow.config import AppConfig
from deerflow.features.ask import Asker
from deerflow.features.site import SiteService
from deerflow.features.suggestions import SuggestionService
from deerflow.identity import Principal
from deerflow.models import ModelCache
from deerflow.storage.database import Database
from deerflow.storage.tables import runs, threads, utc_now
from deerflow.storage.threads import ThreadRepository
from deerflow.threads.feedback import FeedbackRepository
from deerflow_app.gateway.http import errors
from deerflow_app.gateway.routes import current_principal, current_runtime, feedback, models, suggestions

RUN = "threads/t1/runs/r1/feedback"


class Source:
    """A configuration that tests change."""

    def __init__(self, endpoint: ScriptedOpenAI) -> None:
        use = {"use": "langchain_openai:ChatOpenAI", "base_url": endpoint.base_url, "max_retries": 0}
        first = {"name": "big", "model": "big-1", "api_key": "sk-secret", "supports_thinking": True, **use}
        second = {"name": "team/small", "model": "s", "api_key": "sk-secret", "display_name": "Small", **use}
        self.config = AppConfig.model_validate({"models": [first, second]})

    async def acurrent(self) -> AppConfig:
        return self.config


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as server:
        yield server


@pytest.fixture
async def runtime(tmp_path: Path, endpoint: ScriptedOpenAI) -> AsyncIterator[Any]:
    database = Database(tmp_path / "deerflow.db")
    now = utc_now()
    row: dict[str, Any] = {"thread_id": "t1", "user_id": "alice", "metadata": {}, "created_at": now, "updated_at": now}
    run = {"run_id": "r1", "position": 1, "multitask_strategy": "enqueue", "kwargs": {}, **row}

    def rows(connection: Any) -> None:
        connection.execute(insert(threads), [row])
        connection.execute(insert(runs), [run])

    await database.write(rows)
    source = Source(endpoint)
    yield SimpleNamespace(
        config_source=source,
        feedback=FeedbackRepository(database),
        site=SiteService(database, source.acurrent),
        suggestions=SuggestionService(Asker(database, ModelCache())),
        threads=SimpleNamespace(repository=ThreadRepository(database)),
        agent_provider=SimpleNamespace(rest_of=lambda config, name: None),
    )
    await database.aclose()


@pytest.fixture
async def http(runtime: Any) -> AsyncIterator[httpx.AsyncClient]:
    async def principal(request: Request) -> Principal:
        return Principal(request.headers.get("x-user", "alice"))

    app = FastAPI()
    errors.install(app)
    for router in (feedback.router, models.router, suggestions.router):
        app.include_router(router)
    app.dependency_overrides = {current_principal: principal, current_runtime: lambda: runtime}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test/api/", timeout=60) as client:
        yield client


async def test_feedback_is_one_per_run_however_it_is_sent(http: httpx.AsyncClient) -> None:
    first = await http.post(RUN, json={"rating": 1, "message_id": "m1"})
    again = await http.post(RUN, json={"rating": 1})
    changed = await http.put(RUN, json={"rating": -1, "comment": "no"})
    assert first.status_code == again.status_code == changed.status_code == 200
    assert changed.json() == first.json() | {"rating": -1, "comment": "no"}
    assert (await http.get(RUN)).json() == [changed.json()]
    assert (await http.get("runs/r1/feedback")).json() == [changed.json()]
    stats = (await http.get(f"{RUN}/stats")).json()
    assert stats == {"run_id": "r1", "total": 1, "positive": 0, "negative": 1}
    ident = first.json()["feedback_id"]
    assert (await http.delete(f"{RUN}/{ident}")).json() == {"success": True}
    assert (await http.delete(RUN)).status_code == 404


async def test_nobody_else_rates_or_reads_ratings(http: httpx.AsyncClient) -> None:
    await http.put(RUN, json={"rating": 1})
    bob = {"x-user": "bob"}
    for answer in (
        await http.get(RUN, headers=bob),
        await http.get(f"{RUN}/stats", headers=bob),
        await http.get("runs/r1/feedback", headers=bob),
        await http.put(RUN, json={"rating": 1}, headers=bob),
        await http.delete(RUN, headers=bob),
        await http.get(RUN.replace("t1", "t2")),
    ):
        assert answer.status_code == 404


async def test_a_rating_is_up_or_down(http: httpx.AsyncClient) -> None:
    for body in ({}, {"rating": 0}, {"rating": 5}, {"rating": 1, "stars": 3}, {"rating": "up"}):
        assert (await http.put(RUN, json=body)).status_code == 422


async def test_models_are_those_of_the_configuration_now_and_no_secret_is_told(
    http: httpx.AsyncClient, runtime: Any
) -> None:
    answer = await http.get("models")
    assert "sk-secret" not in answer.text
    found = answer.json()
    assert [model["name"] for model in found["models"]] == ["big", "team/small"]
    assert found["models"][0]["is_default"] and found["models"][0]["supports_thinking"]
    assert found["currency"] is None
    one = await http.get("models/team/small")
    assert one.json()["display_name"] == "Small" and "sk-secret" not in one.text
    runtime.config_source.config = AppConfig()
    assert (await http.get("models")).json()["models"] == []
    assert (await http.get("models/big")).status_code == 404


async def test_costs_have_a_currency_if_all_prices_have_the_same(http: httpx.AsyncClient, runtime: Any) -> None:
    def model(name: str, currency: str) -> dict[str, Any]:
        return {"name": name, "use": "x:Y", "model": name, "pricing": {"input": 1, "currency": currency}}

    for currencies, told in ((("CNY", "CNY"), "CNY"), (("CNY", "USD"), None)):
        models = [model(f"m{i}", currency) for i, currency in enumerate(currencies)]
        runtime.config_source.config = AppConfig.model_validate({"models": models})
        assert (await http.get("models")).json()["currency"] == told
    with pytest.raises(ValueError, match="currency"):
        AppConfig.model_validate({"models": [model("m", "dollars")]})


async def test_suggestions_come_from_the_model_and_never_fail(
    http: httpx.AsyncClient, endpoint: ScriptedOpenAI
) -> None:
    endpoint.script(Text('["More?"]'), HttpError(400))
    body = {"messages": [{"role": "user", "content": "Birds?", "id": "ignored"}], "n": 2, "model_name": "team/small"}
    assert (await http.post("threads/t1/suggestions", json=body)).json() == {"suggestions": ["More?"]}
    failed = await http.post("threads/t1/suggestions", json=body)
    assert (failed.status_code, failed.json()) == (200, {"suggestions": []})
    assert (await http.post("threads/t1/suggestions", json=body | {"n": 6})).status_code == 422
