"""What the queue in PostgreSQL promises beyond the others: many processes, and a database that is not always there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from tests.harness.tasks.queue_house import GUARD, Door, House, TableQueue, until

from deerflow.events.notify import Notifier
from deerflow.runs.postgres_queue import PostgresQueue
from deerflow.storage.database import Database
from deerflow.storage.postgres_lock import PostgresThreadLock


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


async def test_nothing_but_the_row_of_a_run_is_needed(shared: House):
    assert shared.rows is not None
    await shared.rows.add("before", "t")
    _, executor = await shared.worker()
    await until(lambda: executor.ended == ["before"])
    executor.gate("meanwhile")
    await shared.rows.add("meanwhile", "t")
    await until(lambda: executor.running == ["meanwhile"])
    async with await psycopg.AsyncConnection.connect(shared.url) as connection:
        assert await (await connection.execute("SELECT FROM jobs")).fetchall() == []


async def test_a_run_that_is_executed_is_left_to_its_worker(shared: House):
    queue, executor = await shared.worker()
    executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.running == ["r"])
    _, other = await shared.worker()
    for number in range(5):
        executor.gate(f"tick {number}")
        await queue.defer(f"tick {number}", f"t {number}")
        await until(lambda: f"tick {number}" in (*other.ended, *executor.running))  # noqa: B023
        await queue.defer("r", "r")
    assert other.begun.count("r") == 0


async def test_the_run_of_a_worker_that_lost_its_locks_is_taken_by_another_one(shared: House):
    """As after its death."""
    queue, executor = await shared.worker()
    executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.running == ["r"])
    assert isinstance(queue, TableQueue)
    await queue.aclose(grace=0)
    await queue.lock.aclose()
    _, other = await shared.worker()
    await until(lambda: other.ended == ["r"])


async def test_a_person_with_many_runs_does_not_keep_others_waiting(shared: House):
    assert shared.rows is not None
    for number in range(40):
        await shared.rows.add(f"many {number}", f"m {number}", user_id="eager")
    await shared.rows.add("one", "o", user_id="other")
    gateway = shared.queue()
    _, executor = await shared.worker(concurrency=2)
    await gateway.cancel("nothing")
    await until(lambda: "one" in executor.begun)
    assert executor.begun.index("one") < 4
    await shared.rows.add("late", "l", user_id="third")
    seen = len(executor.begun)
    await until(lambda: "late" in executor.begun)
    assert executor.begun.index("late") < seen + 4


async def test_a_run_that_begins_here_does_not_overtake_those_that_wait_for_room(shared: House):
    queue, executor = await shared.worker(concurrency=1)
    gate = executor.gate("first")
    await queue.defer("first", "first")
    await until(lambda: executor.running == ["first"])
    await queue.defer("second", "second")
    executor.gates["second"] = asyncio.Event()
    gate.set()
    await until(lambda: "first" in executor.ended)
    assert not queue.begin("new", "new", _nothing)
    await until(lambda: executor.running == ["second"])


async def test_a_run_that_returns_without_having_ended_is_left_alone_for_longer_each_time(shared: House):
    queue, executor = await shared.worker()
    executor.left.add("r")
    begun: list[float] = []
    await queue.defer("r", "r")
    for number in range(1, 4):
        await until(lambda: len(executor.ended) >= number)  # noqa: B023
        begun.append(asyncio.get_running_loop().time())
    first, second = begun[1] - begun[0], begun[2] - begun[1]
    assert first > 0.9 and second > 1.9
    await queue.defer("r", "r")
    await until(lambda: len(executor.ended) == 4)


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


async def test_a_ring_that_finds_no_database_is_no_error(caplog: pytest.LogCaptureFixture):
    nowhere = "postgresql://127.0.0.1:1/nowhere"
    database = Database(nowhere)
    queue = PostgresQueue(database, Notifier(database), PostgresThreadLock(nowhere))
    await queue.defer("r", "t")
    await queue.cancel("r")
    await queue.aclose(grace=0)
    await database.aclose()
    assert caplog.text.count("could not be notified (queue)") == 1 and "could not be notified (cancel)" in caplog.text


async def _nothing() -> None:
    raise AssertionError("begun")


async def _cut_connections(url: str, query: str = "%") -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE %s",
            [query],
        )
