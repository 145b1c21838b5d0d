from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import insert

from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import runs, threads, utc_now
from deerflow.threads.feedback import FeedbackRepository

ALICE, BOB = Principal("alice"), Principal("bob")


@pytest.fixture
async def feedback(database: Database) -> FeedbackRepository:
    now = utc_now()
    times: dict[str, Any] = {"created_at": now, "updated_at": now, "metadata": {}}
    run = {"user_id": "alice", "multitask_strategy": "enqueue", "kwargs": {}, **times}

    def rows(connection: Any) -> None:
        connection.execute(insert(threads), [{"thread_id": t, "user_id": "alice", **times} for t in ("t1", "t2")])
        connection.execute(insert(runs), [{"run_id": f"r{n}", "thread_id": "t1", "position": n, **run} for n in (1, 2)])

    await database.write(rows)
    return FeedbackRepository(database)


async def test_feedback_given_twice_is_changed_not_doubled(feedback: FeedbackRepository) -> None:
    first = await feedback.put(ALICE, "t1", "r1", rating=1, message_id="m1")
    second = await feedback.put(ALICE, "t1", "r1", rating=-1, comment="on reflection")
    assert second.feedback_id == first.feedback_id
    assert (second.rating, second.comment, second.message_id) == (-1, "on reflection", "m1")
    assert await feedback.list(ALICE, "r1", thread_id="t1") == [second]
    assert dict(await feedback.of_thread(ALICE, "t1")) == {"r1": second}


async def test_many_clicks_at_once_are_one_feedback(feedback: FeedbackRepository) -> None:
    await asyncio.gather(*(feedback.put(ALICE, "t1", "r1", rating=1) for _ in range(10)))
    assert len(await feedback.list(ALICE, "r1")) == 1


async def test_a_run_of_someone_else_or_of_another_thread_is_not_there(feedback: FeedbackRepository) -> None:
    await feedback.put(ALICE, "t1", "r1", rating=1)
    for principal, thread, run in ((BOB, "t1", "r1"), (ALICE, "t2", "r1"), (ALICE, "t1", "r9")):
        with pytest.raises(NotFoundError):
            await feedback.put(principal, thread, run, rating=1)
        with pytest.raises(NotFoundError):
            await feedback.list(principal, run, thread_id=thread)
        with pytest.raises(NotFoundError):
            await feedback.delete(principal, thread, run)
    assert dict(await feedback.of_thread(BOB, "t1")) == {}


async def test_feedback_can_be_withdrawn_once(feedback: FeedbackRepository) -> None:
    given = await feedback.put(ALICE, "t1", "r1", rating=1)
    with pytest.raises(NotFoundError):
        await feedback.delete(ALICE, "t1", "r1", feedback_id="other")
    await feedback.delete(ALICE, "t1", "r1", feedback_id=given.feedback_id)
    with pytest.raises(NotFoundError):
        await feedback.delete(ALICE, "t1", "r1")
