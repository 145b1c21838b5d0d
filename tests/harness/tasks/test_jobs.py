from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now
from deerflow.tasks import jobs
from deerflow.tasks.jobs import Job

NOW = utc_now()
LATER = NOW + timedelta(minutes=1)
KINDS = ("a", "b")


async def ask(database: Database, key: str = "k", *, kind: str = "a", due_at: Any = NOW, **payload: Any) -> None:
    await database.write(lambda c: jobs.enqueue(c, kind, key, payload, due_at=due_at))


async def take(database: Database, *, now: Any = NOW, until: Any = LATER, limit: int = 10) -> list[Job]:
    return await database.write(lambda c: jobs.lease(c, dict.fromkeys(KINDS, limit), now=now, until=until))


async def test_a_job_that_is_due_is_taken_by_one_worker(database: Database) -> None:
    for n in range(20):
        await ask(database, f"k{n}", n=n)
    taken = await asyncio.gather(*(take(database, limit=4) for _ in range(8)))
    rest = await take(database, limit=100)
    keys = [job.key for batch in taken for job in batch] + [job.key for job in rest]
    assert sorted(keys) == sorted(f"k{n}" for n in range(20))


async def test_a_job_waits_until_it_is_due(database: Database) -> None:
    await ask(database, due_at=LATER)
    assert await take(database) == []
    assert [job.key for job in await take(database, now=LATER)] == ["k"]


async def test_a_second_job_of_a_key_replaces_the_first_and_puts_it_off(database: Database) -> None:
    await ask(database, n=1)
    await ask(database, due_at=LATER, n=2)
    await ask(database, "k", kind="b", n=3)
    soon = NOW + timedelta(seconds=30)
    assert [job.payload for job in await take(database, until=soon)] == [{"n": 3}]
    await database.write(lambda c: jobs.enqueue(c, "b", "k", {}, due_at=LATER + timedelta(days=1)))
    assert [job.payload for job in await take(database, now=LATER)] == [{"n": 2}]


async def test_a_job_that_is_done_is_gone(database: Database) -> None:
    await ask(database)
    (job,) = await take(database)
    await database.write(lambda c: jobs.complete(c, job))
    assert await take(database, now=LATER + timedelta(days=1)) == []


async def test_a_job_replaced_while_it_is_done_is_done_again_but_not_at_the_same_time(database: Database) -> None:
    await ask(database, n=1)
    (job,) = await take(database)
    await ask(database, n=2)
    assert await take(database) == []
    await database.write(lambda c: jobs.complete(c, job))
    (again,) = await take(database)
    assert (again.payload, again.attempts) == ({"n": 2}, 1)


async def test_the_job_of_a_dead_worker_is_taken_by_another_one_and_its_owner_changes_nothing_more(
    database: Database,
) -> None:
    await ask(database)
    (dead,) = await take(database)
    (heir,) = await take(database, now=LATER, until=LATER + timedelta(minutes=1))
    assert heir.attempts == 2
    await database.write(lambda c: jobs.complete(c, dead))
    await database.write(lambda c: jobs.fail(c, dead, "late", retry_at=NOW))
    assert await database.write(lambda c: jobs.extend(c, dead, LATER)) is None
    assert await take(database, now=LATER) == []
    extended = await database.write(lambda c: jobs.extend(c, heir, LATER + timedelta(minutes=5)))
    assert extended is not None
    await database.write(lambda c: jobs.complete(c, extended))
    assert await database.read(lambda c: jobs.next_due(c, KINDS)) is None


async def test_a_failed_job_comes_back_and_counts_its_attempts(database: Database) -> None:
    await ask(database)
    (job,) = await take(database)
    await database.write(lambda c: jobs.fail(c, job, "no", retry_at=LATER))
    assert await take(database) == []
    assert [again.attempts for again in await take(database, now=LATER)] == [2]


async def test_a_job_that_is_given_back_counts_no_attempt(database: Database) -> None:
    await ask(database)
    (job,) = await take(database)
    await database.write(lambda c: jobs.release(c, job))
    assert [again.attempts for again in await take(database)] == [1]


async def test_a_job_is_asked_for_with_the_transaction_or_not_at_all(database: Database) -> None:
    def fails(connection: Any) -> None:
        jobs.enqueue(connection, "a", "k", {})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await database.write(fails)
    assert await database.read(lambda c: jobs.next_due(c, KINDS)) is None


async def test_the_next_moment_is_that_of_the_first_job_due_or_freed(database: Database) -> None:
    next_due = lambda: database.read(lambda c: jobs.next_due(c, KINDS))  # noqa: E731
    assert await next_due() is None
    await ask(database, due_at=LATER)
    assert await next_due() == LATER
    await ask(database, "other", kind="c")
    assert await next_due() == LATER
    await take(database, now=LATER, until=LATER + timedelta(minutes=3))
    assert await next_due() == LATER + timedelta(minutes=3)
