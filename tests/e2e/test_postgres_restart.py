"""PostgreSQL goes away in the middle of everything and comes back: it is said meanwhile, nothing is lost, all goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.servers import PostgresServer, postgres_server
from tests.support.gateway_process import GatewayProcess, gateway_process, until

PRIVATE = re.compile(r"Traceback|site-packages|\.py\b|secret-of-the-test|password|psycopg|127\.0\.0\.1")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Not the one of the other tests, which they need."""
    with postgres_server() as own:
        yield own


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as endpoint:
        yield endpoint


@pytest.fixture
def gateway(
    server: PostgresServer, endpoint: ScriptedOpenAI, tmp_path: Path, own_home: Path
) -> Iterator[GatewayProcess]:
    with server.fresh_database() as url:
        config = f"title:\n  enabled: false\ndatabase:\n  backend: postgres\n  postgres_url: {url}\n"
        options: dict[str, Any] = {"model_url": endpoint.base_url, "config": config}
        with gateway_process(tmp_path, environment={"DEER_FLOW_HOME": str(own_home)}, **options) as process:
            yield process


def start(client: httpx.Client, key: str) -> tuple[str, str]:
    thread = client.post("/api/threads", json={}).raise_for_status().json()["thread_id"]
    body = {"input": {"messages": [{"role": "user", "content": f"key:{key} go"}]}}
    return thread, client.post(f"/api/threads/{thread}/runs", json=body).raise_for_status().json()["run_id"]


def status(client: httpx.Client, thread: str, run: str) -> str | None:
    """None while the server cannot say."""
    answer = client.get(f"/api/threads/{thread}/runs/{run}")
    return answer.json()["status"] if answer.status_code == 200 else None


def messages(client: httpx.Client, thread: str) -> list[tuple[str, str]]:
    state = client.get(f"/api/threads/{thread}/state").raise_for_status().json()
    return [(message["type"], message["content"]) for message in state["values"]["messages"]]


def check_refusals(client: httpx.Client, thread: str, run: str) -> None:
    hello = {"input": {"messages": [{"role": "user", "content": "hello"}]}}
    asked: list[tuple[str, str, Any]] = [
        ("GET", "/api/ok", None),
        ("POST", "/api/threads", {}),
        ("POST", "/api/threads/search", {}),
        ("GET", f"/api/threads/{thread}", None),
        ("GET", f"/api/threads/{thread}/state", None),
        ("POST", f"/api/threads/{thread}/history", {}),
        ("GET", f"/api/threads/{thread}/runs/{run}", None),
        ("POST", f"/api/threads/{thread}/runs", hello),
        ("POST", f"/api/threads/{thread}/runs/stream", hello),
        ("POST", f"/api/threads/{thread}/runs/wait", hello),
        ("POST", f"/api/threads/{thread}/runs/{run}/cancel", None),
        ("POST", "/api/assistants/search", {}),
        ("POST", "/api/store/items/search", {"namespace_prefix": ["a"]}),
    ]
    for method, path, body in asked:
        answer = client.request(method, path, json=body)
        assert answer.status_code == 503, f"{answer.status_code} to {method} {path}: {answer.text}"
        assert answer.json()["code"] == "unavailable", answer.text
        assert not PRIVATE.search(answer.text), answer.text
    assert client.get("/health").status_code == 200


def test_a_run_goes_on_when_the_database_is_back(
    server: PostgresServer, endpoint: ScriptedOpenAI, gateway: GatewayProcess, own_home: Path
):
    """It waits for the model when the database goes away; another has a command that ends meanwhile."""
    command = (
        "echo once >>/mnt/user-data/outputs/effects; while [ ! -e /mnt/user-data/workspace/go ]; do sleep 0.05; done"
    )
    endpoint.script(Delay(600, Text("never")), Text("Asked again."), key="model")
    endpoint.script(
        ToolCalls(("bash", {"description": "wait", "command": command})), Text("After the command."), key="tool"
    )
    with gateway.client() as client:
        asking, working = start(client, "model"), start(client, "tool")
        until(lambda: any("key:model" in json.dumps(request) for request in endpoint.requests))
        until(lambda: effects(client, working[0]), lambda: gateway.output)
        with server.stopped():
            check_refusals(client, *asking)
            [workspace] = own_home.glob(f"users/*/threads/{working[0]}/user-data/workspace")
            (workspace / "go").touch()
        for thread, run in (asking, working):
            until(lambda thread=thread, run=run: status(client, thread, run) == "success", lambda: gateway.output)
        assert messages(client, asking[0]) == [("human", "key:model go"), ("ai", "Asked again.")]
        said = messages(client, working[0])
        assert [kind for kind, _ in said] == ["human", "ai", "tool", "ai"]
        assert said[-1] == ("ai", "After the command.")
        assert effects(client, working[0]) == "once\n"


def test_all_works_again_without_a_new_start(server: PostgresServer, endpoint: ScriptedOpenAI, gateway: GatewayProcess):
    with gateway.client() as client:
        endpoint.script(Text("Before."), key="before")
        thread, run = start(client, "before")
        until(lambda: status(client, thread, run) == "success", lambda: gateway.output)
        for number in range(2):
            with server.stopped():
                check_refusals(client, thread, run)
            until(lambda: client.get("/api/ok").status_code == 200, lambda: gateway.output)
            assert messages(client, thread)[-1] == ("ai", "Before.")
            endpoint.script(Text(f"After {number}."), key=f"after-{number}")
            other = start(client, f"after-{number}")
            with client.stream("GET", f"/api/threads/{other[0]}/runs/{other[1]}/stream") as stream:
                assert "event: end" in stream.read().decode()
            assert messages(client, other[0])[-1] == ("ai", f"After {number}.")
        assert gateway.is_running
    assert gateway.terminate() == 0


def test_who_follows_a_run_learns_of_its_end(server: PostgresServer, endpoint: ScriptedOpenAI, gateway: GatewayProcess):
    """In the stream that was open all the time, or, if that broke off, in one that goes on where it ended."""
    endpoint.script(Delay(600, Text("never")), Text("Here after all."), key="follow")
    with gateway.client() as client:
        thread, run = start(client, "follow")
        until(lambda: any("key:follow" in json.dumps(request) for request in endpoint.requests))
        url = f"/api/threads/{thread}/runs/{run}/stream"
        lines: list[str] = []
        with client.stream("GET", url, headers={"Last-Event-ID": "-1"}) as stream:
            following = stream.iter_lines()
            lines.append(next(following))
            with server.stopped():
                check_refusals(client, thread, run)
            with suppress(httpx.RemoteProtocolError):
                lines += following
        if "event: end" not in lines:
            last = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")][-1]
            until(lambda: client.get("/api/ok").status_code == 200, lambda: gateway.output)
            lines += client.get(url, headers={"Last-Event-ID": last}).raise_for_status().text.splitlines()
        assert "event: end" in lines
        ids = [line for line in lines if line.startswith("id: ")]
        assert len(ids) == len(set(ids)), "nothing comes twice"
        assert "Here after all." in "\n".join(lines)


def test_a_gateway_that_starts_without_its_database_says_so(server: PostgresServer, gateway: GatewayProcess):
    assert gateway.terminate() == 0
    with server.stopped():
        gateway.launch()
        assert gateway.wait() != 0
    assert "PostgreSQL cannot be reached" in gateway.output and "Traceback" not in gateway.output, gateway.output
    gateway.start()


def effects(client: httpx.Client, thread: str) -> str:
    answer = client.get(f"/api/threads/{thread}/artifacts/mnt/user-data/outputs/effects")
    return answer.text if answer.status_code == 200 else ""
