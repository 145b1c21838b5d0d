"""Workers that are killed, frozen and stopped: real processes, a real PostgreSQL, an executor that leaves traces."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.harness.runs.scale_worker import TABLES
from tests.harness.tasks.queue_house import Rows
from tests.support.warm_python import for_asyncio

from deerflow.events.notify import Notifier
from deerflow.runs.postgres_queue import LOOK, PostgresQueue
from deerflow.storage.database import Database
from deerflow.storage.postgres_lock import PostgresThreadLock

GUARD = 120.0


class Fleet:
    """Worker processes by name, and a gateway that only rings."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._database = Database(url)
        self._rows = Rows(url)
        self._gateway = PostgresQueue(self._database, Notifier(self._database), PostgresThreadLock(url))

    async def add(self, *names: str, concurrency: int = 10) -> None:
        script = Path(__file__).with_name("scale_worker.py")
        for name in names:
            with for_asyncio():
                self._processes[name] = await asyncio.create_subprocess_exec(
                    sys.executable, script, self._url, name, str(concurrency), stdout=asyncio.subprocess.PIPE
                )
        for name in names:
            output = self._processes[name].stdout
            assert output is not None and await output.readline() == b"ready\n"

    async def ring(self, run_id: str, thread_id: str) -> None:
        await self._rows.add(run_id, thread_id)
        await self._gateway.defer(run_id, thread_id)

    def signal(self, name: str, what: signal.Signals) -> None:
        self._processes[name].send_signal(what)

    async def end(self, name: str) -> int:
        return await self._processes[name].wait()

    async def let_end(self) -> None:
        await self.sql("UPDATE runs SET may_end = true RETURNING 1")

    async def all_ended(self) -> None:
        await self.until("SELECT count(*) = 0 FROM runs WHERE status <> 'success'")

    async def worker_of(self, run_id: str, *, other_than: str = "") -> str:
        """The worker that has begun the run, as soon as there is one."""
        query = "SELECT worker FROM effects WHERE run_id = %s AND kind = 'begin' AND worker <> %s ORDER BY id DESC"
        async with asyncio.timeout(GUARD):
            while not (found := await self.sql(query, run_id, other_than)):
                await asyncio.sleep(0.05)
        return found[0][0]

    async def until(self, query: str, *arguments: Any) -> None:
        async with asyncio.timeout(GUARD):
            while not (await self.sql(query, *arguments))[0][0]:
                await asyncio.sleep(0.05)

    async def traces(self, run_id: str) -> list[tuple[str, str]]:
        return await self.sql("SELECT worker, kind FROM effects WHERE run_id = %s ORDER BY id", run_id)

    async def sql(self, query: str, *arguments: Any) -> list[Any]:
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            return await (await connection.execute(query.encode(), arguments)).fetchall()

    async def aclose(self) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await self._gateway.aclose(grace=0)
        await self._database.aclose()


@pytest.fixture
async def fleet(migrated_url: str) -> AsyncIterator[Fleet]:
    async with await psycopg.AsyncConnection.connect(migrated_url, autocommit=True) as connection:
        await connection.execute(TABLES)
    fleet = Fleet(migrated_url)
    yield fleet
    await fleet.aclose()


async def test_another_worker_goes_on_with_the_runs_of_a_killed_one(fleet: Fleet):
    await fleet.add("a", "b")
    await fleet.ring("r", "t")
    killed = await fleet.worker_of("r")
    fleet.signal(killed, signal.SIGKILL)
    await fleet.worker_of("r", other_than=killed)
    await fleet.let_end()
    await fleet.all_ended()


async def test_the_runs_of_a_worker_that_freezes_for_a_moment_are_left_to_it(fleet: Fleet):
    await fleet.add("a", "b")
    await fleet.ring("r", "t")
    frozen = await fleet.worker_of("r")
    other = {"a": "b", "b": "a"}[frozen]
    fleet.signal(frozen, signal.SIGSTOP)
    # The other worker looks around often enough to notice a dead one.
    for number in range(3):
        await fleet.ring(f"tick {number}", f"tick {number}")
        assert await fleet.worker_of(f"tick {number}") == other
        await asyncio.sleep(LOOK)
    fleet.signal(frozen, signal.SIGCONT)
    await fleet.let_end()
    await fleet.all_ended()
    traces = await fleet.traces("r")
    assert {worker for worker, _ in traces} == {frozen}
    assert [kind for _, kind in traces if kind != "step"] == ["begin", "end"]


async def test_a_worker_that_is_asked_to_end_hands_its_runs_over(fleet: Fleet):
    await fleet.add("a", "b")
    for number in range(4):
        await fleet.ring(f"r{number}", f"t{number}")
    ending = await fleet.worker_of("r0")
    fleet.signal(ending, signal.SIGTERM)
    assert await fleet.end(ending) == 0
    await fleet.worker_of("r0", other_than=ending)
    await fleet.let_end()
    await fleet.all_ended()


async def test_whoever_is_killed_every_run_ends_and_no_thread_is_executed_twice_at_once(fleet: Fleet):
    chance, names = random.Random(3), [f"w{number}" for number in range(5)]
    await fleet.add(*names[:2], concurrency=2)  # four threads: none gets them all, each that is killed has begun
    runs = {f"r{number}": f"t{number % 4}" for number in range(12)}
    for run_id, thread_id in runs.items():
        await fleet.ring(run_id, thread_id)
    for killed, born in zip(names, names[2:], strict=False):
        await fleet.until("SELECT count(*) > 0 FROM effects WHERE worker = %s AND kind = 'begin'", killed)
        await asyncio.sleep(chance.random() * 0.5)
        fleet.signal(killed, signal.SIGKILL)
        await fleet.add(born, concurrency=2)
    await fleet.let_end()
    await fleet.all_ended()
    for thread_id in set(runs.values()):
        _assert_never_two_at_once(
            await fleet.sql(
                "SELECT effects.worker, run_id, kind FROM effects JOIN runs USING (run_id) WHERE thread_id = %s ORDER BY id",
                thread_id,
            )
        )


def _assert_never_two_at_once(traces: list[tuple[str, str, str]]) -> None:
    """Whoever has begun leaves all traces until the next one begins."""
    current: tuple[str, str] | None = None
    for worker, run_id, kind in traces:
        if kind == "begin":
            current = (worker, run_id)
        assert (worker, run_id) == current, (worker, run_id, kind, current)
