"""What every queue of runs promises."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.harness.tasks.queue_house import GUARD, House, until
from tests.support.wall_clock import set_clock

from deerflow.tasks.queue import LocalQueue


@pytest.fixture(params=["local", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "local" else request.getfixturevalue("migrated_url")


@pytest.fixture
async def house(url: str, tmp_path: Path) -> AsyncIterator[House]:
    house = House(url, tmp_path)
    yield house
    await house.aclose()


def _id() -> str:
    return str(uuid.uuid4())


async def test_every_run_is_executed(house: House):
    queue, executor = await house.worker()
    runs = [_id() for _ in range(30)]
    await asyncio.gather(*(queue.defer(run_id, "t") for run_id in runs))
    await until(lambda: set(executor.ended) == set(runs))


async def test_what_is_rung_before_the_start_is_executed_after_it(house: House):
    queue = house.queue()
    executor = house.executor(queue)
    await queue.defer("r", "t")
    await queue.start(executor.execute, executor.interrupt, concurrency=1)
    await until(lambda: executor.ended)


async def test_two_rings_do_no_harm(house: House):
    queue, executor = await house.worker()
    gate = executor.gate("r")
    for _ in range(5):
        await queue.defer("r", "r")
    await until(lambda: executor.begun)
    gate.set()
    await queue.defer("last", "t")
    await until(lambda: "last" in executor.ended and not executor.running)


async def test_a_run_that_is_rung_while_it_is_executed_is_executed_again(house: House):
    queue, executor = await house.worker()
    gate = executor.gate("r")
    await queue.defer("r", "r")
    await until(lambda: executor.begun)
    await queue.defer("r", "r")
    gate.set()
    await until(lambda: executor.ended == ["r", "r"])


async def test_no_more_runs_at_a_time_than_asked_for(house: House):
    queue, executor = await house.worker(concurrency=3)
    runs = [_id() for _ in range(7)]
    gate = executor.gate(*runs)
    for run_id in runs:
        await queue.defer(run_id, run_id)
    await until(lambda: len(executor.running) == 3)
    gate.set()
    await until(lambda: len(executor.ended) == 7)
    assert executor.most == 3


async def test_a_run_waits_for_its_moment_and_holds_up_no_other(house: House):
    queue, executor = await house.worker(concurrency=1)
    at = datetime.now(UTC) + timedelta(seconds=1)
    await queue.defer("later", "t", at=at)
    await queue.defer("now", "t")
    await until(lambda: executor.begun == ["now"])
    await until(lambda: executor.begun == ["now", "later"])
    assert datetime.now(UTC) >= at


async def test_a_run_that_is_due_later_can_be_rung_now_as_well(house: House):
    queue, executor = await house.worker()
    await queue.defer("r", "t", at=datetime.now(UTC) + timedelta(hours=1))
    await queue.defer("r", "t")
    await until(lambda: executor.ended == ["r"])


async def test_a_moment_in_the_past_is_now(house: House):
    queue, executor = await house.worker()
    await queue.defer("r", "t", at=datetime.now(UTC) - timedelta(days=400))
    await until(lambda: executor.ended == ["r"])


async def test_a_cancellation_reaches_the_execution_and_no_other(house: House):
    queue, executor = await house.worker()
    executor.gate("a", "b")
    for run_id in ("a", "b"):
        await queue.defer(run_id, run_id)
    await until(lambda: len(executor.running) == 2)
    await queue.cancel("a")
    await until(lambda: executor.interrupted)
    await queue.cancel("not here")
    await queue.cancel("b")
    await until(lambda: executor.interrupted == ["a", "b"])
    assert sorted(executor.running) == ["a", "b"]


async def test_a_run_that_could_not_be_executed_is_tried_again(house: House):
    queue, executor = await house.worker()
    executor.fails["r"] = 1
    await queue.defer("r", "t")
    await until(lambda: executor.ended)
    assert executor.begun == ["r", "r"]


async def test_rings_for_a_run_that_cannot_be_executed_begin_no_further_series_of_attempts():
    queue, tried = LocalQueue(), 0

    async def fail(run_id: str) -> None:
        nonlocal tried
        tried += 1
        raise OSError("no space left")

    await queue.start(fail, lambda run_id: None, concurrency=1)
    for number in range(1, 6):
        await queue.defer("r", "t")
        await until(lambda: tried >= number and not queue._running)  # noqa: B023
    assert len(queue._timers) == 1
    await queue.aclose(grace=0)


async def test_a_clock_that_is_set_back_does_not_put_off_another_attempt(monkeypatch: pytest.MonkeyPatch):
    queue, tried = LocalQueue(), 0

    async def fail_once(run_id: str) -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise OSError("not now")

    await queue.start(fail_once, lambda run_id: None, concurrency=1)
    await queue.defer("r", "t")
    await until(lambda: tried == 1 and not queue._running)
    set_clock(monkeypatch, timedelta(hours=-1))
    await until(lambda: tried == 2)
    await queue.aclose(grace=0)


async def test_closing_waits_for_runs_that_end_by_themselves(house: House):
    queue, executor = await house.worker()
    gate = executor.gate("r")
    await queue.defer("r", "t")
    await until(lambda: executor.begun)
    closing = asyncio.create_task(queue.aclose(grace=GUARD))
    await asyncio.sleep(0.05)
    assert not closing.done()
    gate.set()
    await closing
    assert executor.ended == ["r"] and not executor.cancelled


async def test_closing_takes_no_more_runs(house: House):
    queue, executor = await house.worker(concurrency=1)
    gate = executor.gate("first")
    await queue.defer("first", "first")
    await until(lambda: executor.begun)
    await queue.defer("second", "second")
    closing = asyncio.create_task(queue.aclose(grace=GUARD))
    await asyncio.sleep(0.05)
    gate.set()
    await closing
    assert executor.begun == ["first"]


async def test_closing_cancels_the_late_and_waits_for_their_unwinding(house: House):
    queue, executor = await house.worker()
    executor.gate("a", "b")
    for run_id in ("a", "b"):
        await queue.defer(run_id, run_id)
    await until(lambda: len(executor.running) == 2)
    await queue.aclose(grace=0.05)
    assert sorted(executor.cancelled) == ["a", "b"]
    assert not executor.running and not executor.ended


async def test_closing_twice_or_without_a_start_is_fine(house: House):
    queue = house.queue()
    await queue.aclose(grace=0)
    queue, _ = await house.worker()
    await queue.aclose(grace=0)
    await queue.aclose(grace=0)
