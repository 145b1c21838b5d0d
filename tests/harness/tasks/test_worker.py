from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from sqlalchemy import select, update

import deerflow.tasks.jobs as module
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import jobs as table
from deerflow.storage.tables import utc_now
from deerflow.tasks import jobs
from deerflow.tasks.jobs import MAX_ATTEMPTS, HopelessError, Job, JobWorker, KeptError, backoff

Start = Callable[..., JobWorker]


@pytest.fixture
async def start(database: Database) -> AsyncIterator[Start]:
    workers: list[JobWorker] = []

    def make(handler: Callable[[Job], Awaitable[None]], **options: object) -> JobWorker:
        worker = JobWorker(database, {"a": handler}, **options)  # pyright: ignore
        worker.start()
        workers.append(worker)
        return worker

    yield make
    for worker in workers:
        await worker.aclose(grace=0)


async def ask(database: Database, key: str = "k", **payload: object) -> None:
    await database.write(lambda c: jobs.enqueue(c, "a", key, payload))


async def gone(database: Database) -> None:
    async with asyncio.timeout(60):
        while await database.read(lambda c: jobs.next_due(c, ["a"])) is not None:
            await asyncio.sleep(0.01)


async def test_a_ring_wakes_the_worker_at_once(database: Database, start: Start) -> None:
    done: asyncio.Queue[Job] = asyncio.Queue()
    worker = start(done.put)
    await ask(database, n=1)
    worker.wake()
    async with asyncio.timeout(60):
        job = await done.get()
    assert (job.payload, job.attempts) == ({"n": 1}, 1)
    await gone(database)


async def test_jobs_that_were_asked_for_before_are_found_without_a_ring(database: Database, start: Start) -> None:
    await ask(database)
    done: asyncio.Queue[Job] = asyncio.Queue()
    start(done.put)
    async with asyncio.timeout(60):
        await done.get()


async def test_a_job_that_is_kept_says_why_and_is_done_again_when_it_is_asked_for_again(
    database: Database, start: Start
) -> None:
    tried: list[int] = []

    async def handler(job: Job) -> None:
        tried.append(job.payload["n"])
        if len(tried) == 1:
            raise KeptError("It is encrypted.")

    worker = start(handler)
    await ask(database, n=1)
    worker.wake()
    kept = lambda connection: jobs.next_due(connection, ["a"]) == jobs.NEVER  # noqa: E731
    async with asyncio.timeout(60):
        while not await database.read(kept):
            await asyncio.sleep(0.01)
    error = await database.read(lambda c: sql.execute(c, "SELECT error FROM jobs").fetchone())
    await ask(database, n=2)
    worker.wake()
    await gone(database)
    assert (tuple(error), tried) == (("It is encrypted.",), [1, 2])


async def test_two_workers_do_each_job_once(database: Database, start: Start) -> None:
    done: list[str] = []

    async def handle(job: Job) -> None:
        done.append(job.key)

    for n in range(30):
        await ask(database, f"k{n}")
    start(handle)
    start(handle)
    await gone(database)
    assert sorted(done) == sorted(f"k{n}" for n in range(30))


async def test_jobs_that_wait_for_a_slow_service_hold_up_no_others(database: Database) -> None:
    waiting: list[str] = []
    done, answer = asyncio.Event(), asyncio.Event()

    async def wait(job: Job) -> None:
        waiting.append(job.key)
        await answer.wait()

    async def end(job: Job) -> None:
        done.set()

    worker = JobWorker(database, {"slow": wait, "quick": end}, concurrency=2)
    for n in range(5):
        await database.write(lambda c: jobs.enqueue(c, "slow", f"k{n}", {}))  # noqa: B023
    worker.start()
    async with asyncio.timeout(60):
        while len(waiting) < 2:
            await asyncio.sleep(0.01)
        await database.write(lambda c: jobs.enqueue(c, "quick", "k", {}))
        worker.wake()
        await done.wait()
        assert len(waiting) == 2
        answer.set()
        while await database.read(lambda c: jobs.next_due(c, ["slow", "quick"])) is not None:
            await asyncio.sleep(0.01)
    await worker.aclose()
    assert sorted(waiting) == [f"k{n}" for n in range(5)]


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_is_set_does_not_begin_what_is_in_hand_again(
    database: Database, start: Start, hours: int
) -> None:
    set_by = timedelta()
    begun: list[str] = []
    go_on = asyncio.Event()

    async def handle(job: Job) -> None:
        begun.append(job.key)
        await go_on.wait()

    worker = start(handle, clock=lambda: utc_now() + set_by)
    await ask(database, "first")
    worker.wake()
    async with asyncio.timeout(60):
        while not begun:
            await asyncio.sleep(0.01)
        set_by = timedelta(hours=hours)
        due = utc_now() + set_by
        await database.write(lambda c: jobs.enqueue(c, "a", "second", {}, due_at=due))
        worker.wake()
        while len(begun) < 2:
            await asyncio.sleep(0.01)
    go_on.set()
    await gone(database)
    assert begun == ["first", "second"]


async def test_a_failed_job_is_done_again_after_a_while(database: Database, start: Start) -> None:
    ahead = timedelta()
    attempts: asyncio.Queue[int] = asyncio.Queue()

    async def handle(job: Job) -> None:
        attempts.put_nowait(job.attempts)
        if job.attempts < 3:
            raise OSError("not now")

    worker = start(handle, clock=lambda: utc_now() + ahead)
    await ask(database)
    worker.wake()
    async with asyncio.timeout(60):
        for expected in (1, 2, 3):
            assert await attempts.get() == expected
            noted = select(table.c.id).where(table.c.leased_until.is_(None))
            while expected < 3 and await database.read(lambda c: c.execute(noted).first()) is None:  # noqa: B023
                await asyncio.sleep(0.01)
            assert attempts.empty()
            ahead += backoff(expected)
            worker.wake()
    await gone(database)


@pytest.mark.parametrize("error", [HopelessError("never"), OSError("the last straw")])
async def test_what_cannot_succeed_is_dropped(database: Database, start: Start, error: Exception) -> None:
    async def handle(job: Job) -> None:
        raise error

    await ask(database)
    # As if it had been tried before: the worker's next attempt is the last one.
    await database.write(lambda c: c.execute(update(table).values(attempts=MAX_ATTEMPTS - 1)))
    start(handle)
    await gone(database)


async def test_a_job_that_kills_its_workers_is_not_tried_for_ever(database: Database, start: Start) -> None:
    async def handle(job: Job) -> None:
        pytest.fail("must not be tried again")

    await ask(database)
    await database.write(lambda c: c.execute(update(table).values(attempts=MAX_ATTEMPTS)))
    start(handle)
    await gone(database)


async def test_a_job_in_hand_is_given_back_when_the_worker_must_stop(database: Database, start: Start) -> None:
    begun = asyncio.Event()

    async def handle(job: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = start(handle)
    await ask(database)
    worker.wake()
    async with asyncio.timeout(60):
        await begun.wait()
        await worker.aclose(grace=0)
    now = utc_now()
    (job,) = await database.write(lambda c: jobs.lease(c, {"a": 1}, now=now, until=now + timedelta(minutes=1)))
    assert job.attempts == 1


async def test_closing_waits_for_what_is_nearly_done(database: Database, start: Start) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(job: Job) -> None:
        begun.set()
        await go_on.wait()

    worker = start(handle)
    await ask(database)
    worker.wake()
    async with asyncio.timeout(60):
        await begun.wait()
        closing = asyncio.create_task(worker.aclose(grace=60))
        go_on.set()
        await closing
    assert await database.read(lambda c: jobs.next_due(c, ["a"])) is None


async def test_a_long_job_keeps_its_lease_and_a_lost_lease_stops_it(database: Database, start: Start) -> None:
    begun: asyncio.Queue[Job] = asyncio.Queue()
    stopped = asyncio.Event()

    async def handle(job: Job) -> None:
        begun.put_nowait(job)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    worker = start(handle, lease=timedelta(seconds=0.3))
    await ask(database)
    worker.wake()
    async with asyncio.timeout(60):
        job = await begun.get()
        while await database.read(lambda c: c.execute(select(table.c.leased_until)).scalar_one()) <= job.leased_until:
            await asyncio.sleep(0.01)
        elsewhere = utc_now() + timedelta(hours=1)
        await database.write(lambda c: c.execute(update(table).values(leased_until=elsewhere)))
        await stopped.wait()
    await worker.aclose(grace=5)
    assert await database.read(lambda c: jobs.next_due(c, ["a"])) == elsewhere


async def test_a_database_that_is_gone_for_a_moment_does_not_end_the_worker(
    database: Database, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)
    fails = 3
    real = database.write

    async def write(*job: object) -> object:
        nonlocal fails
        if fails:
            fails -= 1
            raise OSError("connection refused")
        return await real(*job)  # pyright: ignore

    done: asyncio.Queue[Job] = asyncio.Queue()
    await ask(database)
    monkeypatch.setattr(database, "write", write)
    start(done.put)
    async with asyncio.timeout(60):
        await done.get()


def test_the_pause_between_attempts_grows_up_to_an_hour() -> None:
    pauses = [backoff(attempt).total_seconds() for attempt in range(1, 9)]
    assert pauses == sorted(pauses) and pauses[0] == 4 and pauses[-1] == 3600
