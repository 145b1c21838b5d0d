"""Two gateways and two workers on one PostgreSQL, each a process of its own, as `deerflow serve` and `deerflow worker` make them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.servers import PostgresServer, pooler
from tests.support.warm_python import WarmPython

DEERFLOW = [sys.executable, "-m", "deerflow_app.cli.main"]
GUARD = 120.0


class House:
    """Gateways that only take orders, and workers by name."""

    def __init__(self, database: str, root: Path, endpoint: ScriptedOpenAI, *, through: str = "") -> None:
        self.endpoint = endpoint
        self._database = database
        self._root = root
        self._processes: dict[str, subprocess.Popen[str]] = {}
        addresses = {"postgres_url": through or database} | ({"postgres_direct_url": database} if through else {})
        storage = "database:\n  backend: postgres\n" + "".join(f"  {name}: {url}\n" for name, url in addresses.items())
        (root / "config.yaml").write_text(
            storage + "runs: {drain_seconds: 0}\nsandbox: {tool_image: {enabled: false}}\n"
        )
        self.gateways = [self.gateway(name, "--no-execute") for name in ("gateway-1", "gateway-2")]
        for name in ("worker-1", "worker-2"):
            self.start(name, "worker")

    def start(self, name: str, *command: str) -> subprocess.Popen[str]:
        with (self._root / f"{name}.log").open("w") as log:
            self._processes[name] = WarmPython(
                [*DEERFLOW, *command, "--config", str(self._root / "config.yaml")],
                cwd=self._root,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(self._root),
                    "DEER_FLOW_HOME": str(self._root / "home"),
                    "OPENAI_API_KEY": "k",
                    "OPENAI_BASE_URL": self.endpoint.base_url,
                },
                stdout=log,
                stderr=log,
                text=True,
            )
        return self._processes[name]

    def signal(self, name: str, what: signal.Signals) -> None:
        self._processes[name].send_signal(what)

    def end(self, name: str) -> int:
        return self._processes[name].wait(GUARD)

    def worker_of(self, run_id: str, *, attempt: int = 1) -> str:
        """The name of the process that executes the run, as soon as it does."""

        def found() -> str | None:
            query = "SELECT worker FROM runs WHERE run_id = %s AND attempt >= %s"
            row = self.sql(query, run_id, attempt)
            pid = int(row[0][0].rpartition(":")[2]) if row else 0
            return next((name for name, process in self._processes.items() if process.pid == pid), None)

        return self.until(found)

    def until(self, condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + GUARD
        while not (value := condition()):
            assert time.monotonic() < deadline, self._logs()
            time.sleep(0.05)
        return value

    def sql(self, query: str, *arguments: Any) -> list[Any]:
        with psycopg.connect(self._database, autocommit=True) as connection:
            return connection.execute(query.encode(), arguments).fetchall()

    def close(self) -> None:
        for gateway in self.gateways:
            gateway.close()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def gateway(self, name: str, *options: str) -> httpx.Client:
        self.start(name, "serve", "--no-ui", "--no-auth", "--port", "0", *options)
        log = self._root / f"{name}.log"
        found = self.until(lambda: re.search(r"http://127\.0\.0\.1:\d+", log.read_text()))
        return httpx.Client(base_url=found[0], timeout=GUARD)

    def _logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in self._root.glob("*.log"))


@pytest.fixture(scope="module", params=["direct", pytest.param("pooler", marks=pytest.mark.nightly)])
def house(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    with ExitStack() as stack:
        url, endpoint = stack.enter_context(postgres.fresh_database()), stack.enter_context(ScriptedOpenAI())
        through = stack.enter_context(pooler(postgres))(url) if request.param == "pooler" else ""
        house = House(url, tmp_path_factory.mktemp("house"), endpoint, through=through)
        stack.callback(house.close)
        yield house


def _start(gateway: httpx.Client, key: str, **context: Any) -> tuple[str, str]:
    thread = gateway.post("/api/threads", json={}).raise_for_status().json()["thread_id"]
    given = {"messages": [{"role": "user", "content": f"key:{key} hello"}]}
    body = {"assistant_id": "lead_agent", "input": given, "context": context}
    run = gateway.post(f"/api/threads/{thread}/runs", json=body).raise_for_status().json()
    return thread, run["run_id"]


def _events(gateway: httpx.Client, thread: str, run: str) -> list[tuple[str, Any]]:
    """All events of the run, from its begin to its end."""
    text = (
        gateway.get(f"/api/threads/{thread}/runs/{run}/stream", headers={"Last-Event-ID": "-1"}).raise_for_status().text
    )
    blocks = [dict(re.findall(r"(?m)^(event|data): (.*?)\r?$", block)) for block in re.split(r"\r?\n\r?\n", text)]
    return [(block["event"], json.loads(block.get("data") or "null")) for block in blocks if "event" in block]


def _status(gateway: httpx.Client, thread: str, run: str) -> str:
    return gateway.get(f"/api/threads/{thread}/runs/{run}").raise_for_status().json()["status"]


def test_a_run_started_at_one_gateway_is_streamed_by_the_other(house: House):
    house.endpoint.script(Text("Hello from afar."), key="one")
    thread, run = _start(house.gateways[0], "one")
    events = _events(house.gateways[1], thread, run)
    assert events[0][0] == "metadata" and events[-1][0] == "end"
    assert "Hello from afar." in json.dumps([data for name, data in events if name == "values"][-1])
    assert _status(house.gateways[1], thread, run) == "success"


def test_a_cancellation_at_one_gateway_stops_the_worker_that_executes_the_run(house: House):
    house.endpoint.script(Delay(600, Text("never")), key="two")
    thread, run = _start(house.gateways[0], "two")
    house.worker_of(run)
    house.gateways[1].post(f"/api/threads/{thread}/runs/{run}/cancel", params={"wait": 1}).raise_for_status()
    assert _status(house.gateways[0], thread, run) == "interrupted"


def test_a_subagent_is_stopped_from_a_gateway_that_does_not_execute_its_run(house: House):
    task = {"description": "wait", "prompt": "key:child", "subagent_type": "general-purpose"}
    house.endpoint.script(ToolCalls(("task", task)), Text("Without it, then."), key="lead")
    house.endpoint.script(Delay(600, Text("never")), key="child")
    thread, run = _start(house.gateways[0], "lead", subagent_enabled=True)
    house.until(lambda: any("key:child" in json.dumps(request["messages"][-1]) for request in house.endpoint.requests))
    (child,) = house.gateways[1].get(f"/api/threads/{thread}/tasks").raise_for_status().json()
    assert child["status"] == "running"
    house.gateways[1].post(f"/api/threads/{thread}/tasks/{child['task_id']}/cancel").raise_for_status()
    assert _events(house.gateways[0], thread, run)[-1][1]["status"] == "success"
    (child,) = house.gateways[0].get(f"/api/threads/{thread}/tasks").raise_for_status().json()
    assert child["status"] == "cancelled"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_run_of_a_worker_that_ends_is_finished_by_another_one(house: House, how: signal.Signals):
    key = how.name
    house.endpoint.script(Delay(600, Text("never")), Text("Done by the other."), key=key)
    thread, run = _start(house.gateways[0], key)
    gone = house.worker_of(run)
    house.until(lambda: any(key in json.dumps(request) for request in house.endpoint.requests))
    house.signal(gone, how)
    assert house.worker_of(run, attempt=2) != gone
    events = _events(house.gateways[1], thread, run)
    assert events[-1][0] == "end" and events[-1][1]["status"] == "success"
    assert "Done by the other." in json.dumps([data for name, data in events if name == "values"][-1])
    house.end(gone)
    house.start(gone, "worker")


def test_the_run_of_a_worker_that_freezes_is_finished_by_another_one_and_stays_so_when_it_wakes_up(house: House):
    house.endpoint.script(Delay(600, Text("never")), Text("Done by the other."), key="ice")
    house.endpoint.script(Text("And on."), key="thaw")  # the one that wakes up may ask for the first answer again
    thread, run = _start(house.gateways[0], "ice")
    frozen = house.worker_of(run)
    house.until(lambda: any("key:ice" in json.dumps(request) for request in house.endpoint.requests))
    house.signal(frozen, signal.SIGSTOP)
    assert house.worker_of(run, attempt=2) != frozen
    assert _events(house.gateways[1], thread, run)[-1][1]["status"] == "success"
    house.signal(frozen, signal.SIGCONT)
    body = {"input": {"messages": [{"role": "user", "content": "key:thaw and now?"}]}}
    values = house.gateways[0].post(f"/api/threads/{thread}/runs/wait", json=body).raise_for_status().json()
    texts = [message["content"] for message in values["messages"]]
    assert texts == ["key:ice hello", "Done by the other.", "key:thaw and now?", "And on."]


def test_a_run_of_a_frozen_worker_can_be_stopped(house: House):
    house.endpoint.script(Delay(600, Text("never")), key="freeze")
    thread, run = _start(house.gateways[0], "freeze")
    frozen = house.worker_of(run)
    house.until(lambda: any("key:freeze" in json.dumps(request) for request in house.endpoint.requests))
    house.signal(frozen, signal.SIGSTOP)
    house.gateways[1].post(f"/api/threads/{thread}/runs/{run}/cancel", params={"wait": 1}).raise_for_status()
    assert _status(house.gateways[0], thread, run) == "interrupted"
    house.signal(frozen, signal.SIGCONT)


def test_the_run_of_a_gateway_that_executes_it_itself_is_finished_by_a_worker_when_it_dies(house: House):
    house.endpoint.script(Delay(600, Text("never")), Text("Done by a worker."), key="solo")
    thread, run = _start(house.gateway("solo"), "solo")
    assert house.worker_of(run) == "solo"
    house.until(lambda: any("key:solo" in json.dumps(request) for request in house.endpoint.requests))
    house.signal("solo", signal.SIGKILL)
    assert house.worker_of(run, attempt=2).startswith("worker")
    assert _events(house.gateways[1], thread, run)[-1][1]["status"] == "success"


def test_a_run_goes_on_after_all_connections_to_the_database_were_cut(house: House):
    house.endpoint.script(Delay(600, Text("never")), Text("Done after all."), key="cut")
    thread, run = _start(house.gateways[0], "cut")
    house.worker_of(run)
    house.until(lambda: any("key:cut" in json.dumps(request) for request in house.endpoint.requests))
    house.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    house.worker_of(run, attempt=2)
    events = _events(house.gateways[1], thread, run)
    assert events[-1][0] == "end" and events[-1][1]["status"] == "success"


def test_a_worker_shows_that_it_is_healthy_as_long_as_the_database_answers(house: House, tmp_path: Path):
    file = tmp_path / "healthy"
    house.start("shown", "worker", "--health-file", str(file))
    house.until(file.exists)
    seen = file.stat().st_mtime_ns
    house.until(lambda: file.stat().st_mtime_ns > seen)
    house.signal("shown", signal.SIGTERM)
    assert house.end("shown") == 0
