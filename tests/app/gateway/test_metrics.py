"""Figures for Prometheus: what happened is counted, the format holds, and only those who may see them do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text
from sqlalchemy import Connection
from tests.support.gateway_process import WorkerProcess, until

from deerflow.counts import Distribution
from deerflow.storage.tables import channel_connections, utc_now
from deerflow_app.metrics import CONTENT_TYPE, Metric, rendered

from .conftest import Gateway, WithRuntime

_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')


def parsed(text: str) -> dict[str, float]:
    """Return the samples of a text by name and labels. Each belongs to the metric that was announced last."""
    found: dict[str, float] = {}
    assert text.endswith("\n")
    announced = ""
    for line in text.splitlines():
        if line.startswith("# "):
            announced = line.split()[2]
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match[1].removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") == announced, line
            found[f"{match[1]}{{{match[2]}}}" if match[2] else match[1]] = float(match[3])
    return found


async def scrape(client: httpx.AsyncClient) -> dict[str, float]:
    answer = await client.get("/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"] == CONTENT_TYPE, answer.text
    return parsed(answer.text)


def test_labels_hold_anything_and_buckets_add_up() -> None:
    spread = Distribution((1, 5))
    for seconds in (0.5, 1, 3, 60):
        spread.add(seconds)
    samples: Any = [({"model": 'a"b\\c\nd'}, 1), ({}, spread)]
    text = rendered([Metric("m", "histogram", "Help.", samples)])
    assert parsed(text) == {
        r'm{model="a\"b\\c\nd"}': 1,
        'm_bucket{le="1"}': 2,
        'm_bucket{le="5"}': 3,
        'm_bucket{le="+Inf"}': 4,
        "m_sum": 64.5,
        "m_count": 4,
    }


async def test_what_happened_is_counted(with_runtime: WithRuntime, scripted: ScriptedOpenAI) -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}}
    async with with_runtime() as gateway:
        before = await scrape(gateway.anonymous)
        assert before['deerflow_runs{state="running"}'] == before["deerflow_open_streams"] == 0
        scripted.script(Text("Hello.", usage=usage), HttpError(401))
        run = {"input": {"messages": [{"role": "user", "content": "Hi"}]}}
        for _ in range(2):
            await gateway.user.post("/api/runs/wait", json=run)
        async with gateway.user.stream("GET", "/api/events") as events:
            await anext(events.aiter_bytes())
            after = await scrape(gateway.anonymous)
        assert after["deerflow_open_streams"] == 1 and after["deerflow_database_up"] == 1
        assert after['deerflow_model_answers_total{model="m"}'] == 1
        assert after['deerflow_model_errors_total{model="m",kind="auth"}'] == 1
        tokens = {
            kind: after[f'deerflow_model_tokens_total{{model="m",kind="{kind}"}}']
            for kind in ("input", "cached", "output")
        }
        assert tokens == {"input": 70, "cached": 40, "output": 5}
        for status in ("success", "error"):
            assert after[f'deerflow_run_duration_seconds_count{{status="{status}"}}'] == 1
        assert after["process_resident_memory_bytes"] > 1e7 and after["process_open_fds"] > 3
        assert after['deerflow_database_connections{pool="write"}'] == 1

        def add_bot(connection: Connection) -> None:
            now = utc_now()
            row = {"id": "b", "kind": "slack", "state": "retrying", "created_at": now, "updated_at": now}
            connection.execute(channel_connections.insert().values(row))

        await gateway.runtime.database.write(add_bot)
        bot = 'deerflow_channels{kind="slack",state="retrying"}'
        assert bot not in await scrape(gateway.anonymous), "the database is not asked at each scrape"
        gateway.app.state.metrics._known = None
        assert (await scrape(gateway.anonymous))[bot] == 1


async def test_without_the_database_the_process_still_shows_its_figures(gateway: Gateway) -> None:
    gateway.app.state.runtime = None  # it is not open yet
    await gateway.app.state.database.aclose()
    found = await scrape(gateway.anonymous)
    assert found["deerflow_database_up"] == 0 and found["process_cpu_seconds_total"] > 0
    assert not any(name.startswith("deerflow_runs{") for name in found)


async def test_others_need_the_token_of_an_administrator(gateway: Gateway) -> None:
    gateway.app.state.runtime = None

    def elsewhere(client: httpx.AsyncClient, peer: str = "192.0.2.9") -> httpx.AsyncClient:
        client._transport = httpx.ASGITransport(gateway.app, client=(peer, 4711))
        return client

    stranger = elsewhere(await gateway.client())
    assert (await stranger.get("/metrics")).status_code == 401
    through_a_proxy = await gateway.client(**{"x-forwarded-for": "192.0.2.9"})
    assert (await through_a_proxy.get("/metrics")).status_code == 401
    assert (
        (await elsewhere(await gateway.token(gateway.user, "read")).get("/metrics"))
        .json()["detail"]
        .startswith("Only administrators")
    )
    assert (await elsewhere(await gateway.token(gateway.admin, "write")).get("/metrics")).status_code == 403
    for scopes in (["read"], ["read", "admin"]):
        await scrape(elsewhere(await gateway.token(gateway.admin, *scopes)))
    await scrape(gateway.anonymous)
    await scrape(elsewhere(await gateway.client(), "::1"))


def test_a_worker_answers_for_its_health_and_its_figures(tmp_path: Path, postgres_url: str) -> None:
    config = f"database: {{backend: postgres, postgres_url: '{postgres_url}'}}"
    with WorkerProcess(tmp_path, "--health-port", "0", config=config) as worker:
        worker.start()
        found = until(lambda: re.search(r"http://127.0.0.1:\d+", worker.output), lambda: worker.output)
        assert found
        with httpx.Client(base_url=found[0], trust_env=False) as client:
            assert client.get("/ready").json() == {"ok": True}
            assert parsed(client.get("/metrics").text)["deerflow_runs_executing"] == 0
            assert client.get("/metrics", headers={"host": "evil.example"}).status_code == 403
            assert client.get("/metrics", headers={"x-forwarded-for": "192.0.2.9"}).status_code == 401
            assert client.get("/api/threads").status_code == 401 and client.get("/").status_code == 404
        assert worker.terminate() == 0
