"""What the queue in PostgreSQL promises beyond the others: many processes, and a database that is not always there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from tests.harness.tasks.queue_house import GUARD, Door, House, until

from deerflow.events.notify import Notifier
from deerflow.runs import postgres_queue
from deerflow.runs.postgres_queue import PostgresQueue
from deerflow.storage.database import Database


@pytest.fixture
async def shared(migrated_url: str, tmp_path: Path) -> AsyncIterator[House]:
    house = House(migrated_url, tmp_path)
    yield house
    await house.aclose()


def _id() -> str:
    return str(uuid.uuid4())


async def test_a_process_that_only_rings_reaches_workers(shared: House):
    gateway = shared.queue()
    _, executor = await shared.worker()
    executor.gate("r")
    await gateway.defer("r", "r")
    await until(lambda: executor.running)
    await gateway.cancel("r")
    await until(lambda: executor.interrupted == ["r"])


async def test_workers_share_the_runs_and_none_is_executed_twice_at_once(shared: House):
    first, one = await shared.worker(concurrency=2)
    _, other = await shared.worker(concurrency=2)
    runs = [_id() for _ in range(4)]
    gate = one.gate(*runs)
    other.gates = one.gates
    for run_id in runs * 2:
        await first.defer(run_id, run_id)
    await until(lambda: len(one.running) + len(other.running) == 4)
    assert sorted(one.running + other.running) == sorted(runs)
    gate.set()
    await until(lambda: set(one.ended + other.ended) == set(runs))


async def test_a_run_of_a_worker_that_closes_goes_to_another_one(shared: House):
    queue, executor = await shared.worker()
    executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.running)
    await queue.aclose(grace=0)
    _, other = await shared.worker()
    await until(lambda: other.ended == ["r"])


async def test_jobs_are_deleted_when_their_runs_have_been_executed(shared: House):
    queue, executor = await shared.worker()
    await queue.defer("r", "t")
    await until(lambda: executor.ended)
    async with asyncio.timeout(GUARD):
        while await _jobs(shared.url):
            await asyncio.sleep(0.01)


async def test_a_run_without_a_job_is_found(shared: House):
    shared.lost = [("lost", "t")]
    _, executor = await shared.worker()
    await until(lambda: "lost" in executor.ended)


async def test_a_run_with_a_job_is_not_rung_by_the_sweep(shared: House):
    queue, executor = await shared.worker()
    gate = executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.running)
    shared.lost = [("r", "r"), ("other", "other")]
    await until(lambda: executor.ended.count("other") >= 2)
    assert [job for job in await _jobs(shared.url) if job != ("other",)] == [("r",)]
    shared.lost = []
    gate.set()
    await until(lambda: executor.ended.count("r") == 1)


async def test_a_job_whose_thread_nobody_holds_is_taken_by_another_worker(shared: House):
    """As after the death of its worker, whose session and locks are gone."""
    queue = shared.queue()
    held = asyncio.Event()

    async def forget(run_id: str) -> None:
        held.set()
        await asyncio.sleep(600)

    await queue.start(forget, lambda run_id: None, concurrency=1)
    await queue.defer("r", "r")
    await held.wait()
    _, other = await shared.worker()
    await until(lambda: other.ended == ["r"])


async def test_workers_and_gateways_come_back_after_their_connections_were_cut(shared: House):
    gateway = shared.queue()
    await gateway.defer("before", "before")
    _, executor = await shared.worker()
    executor.gate("r")
    await gateway.defer("r", "r")
    await until(lambda: executor.running == ["r"])
    await _cut_connections(shared.url)
    await until(lambda: executor.cancelled == ["r"])
    executor.gates.clear()
    await gateway.defer("after", "after")
    await until(lambda: {"before", "after", "r"} <= set(executor.ended))
    executor.gate("again")
    await gateway.defer("again", "again")
    await until(lambda: executor.running == ["again"])
    await gateway.cancel("again")
    await until(lambda: "again" in executor.interrupted)


async def test_a_cancellation_that_nobody_heard_is_seen_when_the_connection_is_back(shared: House):
    queue, executor = await shared.worker()
    executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.running)
    await _cut_connections(shared.url, "LISTEN deerflow%")
    await until(lambda: executor.interrupted == ["r"])
    assert executor.running == ["r"]


async def test_a_lost_lock_stops_the_execution_which_is_tried_again(shared: House):
    queue, executor = await shared.worker()
    executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.running)
    executor.gates.clear()
    await _cut_connections(shared.url, "%pg_try_advisory_lock%")
    await until(lambda: executor.ended == ["r"])
    assert executor.cancelled == ["r"]


async def test_nothing_is_lost_while_the_database_is_away(shared: House):
    door = Door(shared.url)
    shared.url = await door.open()
    queue, executor = await shared.worker()
    executor.gate("running")
    await queue.defer("running", "running")
    await until(lambda: executor.running == ["running"])
    await door.close()
    await until(lambda: executor.cancelled == ["running"])
    executor.gates.clear()
    ringing = asyncio.create_task(queue.defer("meanwhile", "meanwhile"))
    await asyncio.sleep(0.5)
    await door.open()
    await ringing
    await until(lambda: {"running", "meanwhile"} <= set(executor.ended))
    await shared.aclose()
    await door.close()


async def test_closing_ends_while_the_database_is_away(shared: House):
    door = Door(shared.url)
    shared.url = await door.open()
    queue, executor = await shared.worker()
    executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.running == ["r"])
    await door.close()
    async with asyncio.timeout(GUARD):
        await queue.aclose(grace=0)
    assert executor.cancelled == ["r"]


async def test_a_ring_that_finds_no_database_is_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(postgres_queue, "PATIENCE", 0.1)
    database = Database("postgresql://127.0.0.1:1/nowhere")
    queue = PostgresQueue(database, Notifier(database), _nothing)
    await queue.defer("r", "t")
    await queue.cancel("r")
    await queue.aclose(grace=0)
    await database.aclose()
    assert caplog.text.count("run r,") == 1 and "to stop run r:" in caplog.text


async def _nothing() -> list[tuple[str, str]]:
    return []


async def _jobs(url: str) -> list[tuple[str, ...]]:
    """The runs that have one."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        found = await connection.execute("SELECT key FROM jobs WHERE kind = 'run'")
        return await found.fetchall()


async def _cut_connections(url: str, query: str = "%") -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE %s",
            [query],
        )
