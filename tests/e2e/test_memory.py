"""What a process that is killed while it learns had read is neither forgotten nor learned twice, and two processes read it once."""

from __future__ import annotations

import json
import random
import re
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from bench.replies import Delay, Reply, Text
from bench.request_log import Record
from bench.scenarios import text_of
from bench.scripted_openai import ScriptedOpenAI
from tests.servers import PostgresServer
from tests.support.gateway_process import GatewayProcess, WorkerProcess, until

CONFIG = "memory: {{debounce_seconds: 1}}\ntitle: {{enabled: false}}\nruns: {{drain_seconds: 0, max_concurrent: 4}}\n{database}"
POSTGRES = "database: {{backend: postgres, postgres_url: {url}}}\n"
PAUSE, ENDLESS = 0.03, 600.0
"""Seconds until the model answers."""
_SAID = re.compile(r"My number is (\d+)")
_LEARNED = re.compile(r"Number (\d+)")


class Reader(ScriptedOpenAI):
    """Makes a fact of each number that it reads, in other words at each reading, so that none is taken for one that is known."""

    pause, chat_pause = PAUSE, 0.0

    def reply_to(self, record: Record) -> Reply:
        if record.place.kind != "memory":
            return Delay(self.chat_pause, Text("Noted."), 0)
        facts = [
            {
                "content": f"Number {number} reading{record.number}",
                "category": "knowledge",
                "confidence": 1,
                "message": 1,
            }
            for number in _SAID.findall(_prompt(record))
        ]
        return Delay(self.pause, Text(json.dumps({"newFacts": facts})), 0)

    @property
    def readings(self) -> list[Record]:
        return [record for record in list(self.records) if record.place.kind == "memory"]


class Learning:
    """Processes with one home and one database. Jobs are looked at by hand from here, where nobody else has the file open."""

    def __init__(self, root: Path, endpoint: Reader, url: str | None) -> None:
        self._root, self.endpoint, self._url = root, endpoint, url
        self._config = CONFIG.format(database=POSTGRES.format(url=url) if url else "")
        self._key = {"OPENAI_API_KEY": "gateway"}
        options: dict[str, Any] = {"config": self._config, "model_url": endpoint.base_url}
        self.gateway = GatewayProcess(root, **options, environment=self._key)
        self.orders = GatewayProcess(root, "--no-execute", name="orders", **options)

    def worker(self, name: str) -> WorkerProcess:
        key = {"OPENAI_API_KEY": name}
        return WorkerProcess(
            self._root, name=name, config=self._config, model_url=self.endpoint.base_url, environment=key
        )

    def say(self, thread: str, number: int, gateway: GatewayProcess | None = None) -> None:
        words = {
            "input": {"messages": [{"role": "user", "content": f"My number is {number}."}]},
            "if_not_exists": "create",
        }
        with (gateway or self.gateway).client() as http:
            http.post(f"/api/threads/{thread}/runs", json=words).raise_for_status()

    def learned(self, gateway: GatewayProcess | None = None) -> Counter[int]:
        with (gateway or self.gateway).client() as http:
            facts = http.get("/api/memory").raise_for_status().json()["facts"]
        return Counter(int(number) for fact in facts for number in _LEARNED.findall(fact["content"]))

    def jobs(self) -> int:
        return self._sql("SELECT count(*) FROM jobs WHERE kind = 'memory'")[0][0]

    def let_leases_run_out(self) -> None:
        """As a minute without a sign of life does."""
        self._sql(
            "UPDATE jobs SET leased_until = '2020-01-01 00:00:00.000000+00:00' WHERE leased_until IS NOT NULL RETURNING id"
        )

    def _sql(self, query: str) -> Sequence[Any]:
        if self._url:
            with psycopg.connect(self._url, autocommit=True) as connection:
                return connection.execute(query).fetchall()  # pyright: ignore[reportArgumentType,reportCallIssue]
        (file,) = self.gateway.home.glob("data/*.db")
        with closing(sqlite3.connect(file, timeout=30)) as connection, connection:
            return connection.execute(query).fetchall()


def _prompt(record: Record) -> str:
    return "\n".join(text_of(message) for message in record.body["messages"])


@pytest.fixture
def endpoint() -> Iterator[Reader]:
    with Reader() as endpoint:
        yield endpoint


@pytest.fixture(params=["sqlite", "postgres"])
def learning(request: pytest.FixtureRequest, endpoint: Reader, tmp_path: Path) -> Learning:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return Learning(tmp_path, endpoint, url)


def _survives(learning: Learning, kills: int, seed: int) -> None:
    """The first kill strikes while the model thinks, the others between the question to it and a moment after its answer."""
    chance, endpoint = random.Random(seed), learning.endpoint
    with learning.gateway as gateway:
        gateway.start()
        for number in range(1, kills + 1):
            before, endpoint.pause = len(endpoint.readings), PAUSE if number > 1 else ENDLESS
            learning.say(f"thread-{number % 2}", number)
            until(lambda: len(endpoint.readings) > before, lambda: gateway.output)  # noqa: B023
            time.sleep(chance.uniform(0, 3 * PAUSE))
            gateway.kill()
            endpoint.pause = PAUSE
            learning.let_leases_run_out()
            gateway.start()
            until(lambda: not learning.jobs(), lambda: gateway.output)
        assert learning.learned() == Counter(range(1, kills + 1))
    assert kills < len(endpoint.readings) <= 2 * kills


@pytest.mark.timeout(300)
def test_what_a_killed_process_was_reading_is_learned_once(learning: Learning) -> None:
    _survives(learning, kills=2, seed=3)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_what_a_killed_process_was_reading_is_learned_once_over_many_kills(learning: Learning) -> None:
    _survives(learning, kills=60, seed=4)


@pytest.fixture
def shared(endpoint: Reader, postgres: PostgresServer, tmp_path: Path) -> Iterator[Learning]:
    with postgres.fresh_database() as url:
        yield Learning(tmp_path, endpoint, url)


@pytest.mark.timeout(300)
def test_two_processes_read_what_is_new_once(shared: Learning) -> None:
    threads = 16
    shared.endpoint.pause = shared.endpoint.chat_pause = (
        1.0  # four at a time: neither process is done before the other begins
    )
    with ExitStack() as running:
        running.enter_context(shared.orders).start()
        for name in ("worker-1", "worker-2"):
            running.enter_context(shared.worker(name)).start()
        with ThreadPoolExecutor(threads) as people:
            list(people.map(lambda n: shared.say(f"thread-{n}", n, shared.orders), range(threads)))
        until(lambda: len(shared.learned(shared.orders)) == threads and not shared.jobs())
        assert shared.learned(shared.orders) == Counter(range(threads))
    assert len(shared.endpoint.readings) == threads
    by = {record.headers["authorization"] for record in shared.endpoint.readings}
    assert by == {"Bearer worker-1", "Bearer worker-2"}


@pytest.mark.timeout(300)
def test_a_process_that_freezes_while_it_reads_adds_nothing_when_it_wakes_behind_another(shared: Learning) -> None:
    endpoint = shared.endpoint
    endpoint.pause = 3
    with shared.orders as orders, shared.worker("worker-1") as frozen, shared.worker("worker-2") as other:
        orders.start()
        frozen.start()
        shared.say("thread", 7, orders)
        until(lambda: endpoint.readings, lambda: frozen.output)
        frozen.signal(signal.SIGSTOP)
        endpoint.pause = PAUSE
        shared.let_leases_run_out()
        other.start()
        until(lambda: not shared.jobs(), lambda: other.output)
        assert shared.learned(orders) == Counter([7])
        until(lambda: endpoint.readings[0].ended)  # the answer lies ready
        frozen.signal(signal.SIGCONT)
        frozen.terminate()  # waits for what it has in hand
        assert shared.learned(orders) == Counter([7])
    keys = [record.headers["authorization"] for record in endpoint.readings]
    assert keys == ["Bearer worker-1", "Bearer worker-2"]
