from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from langgraph.checkpoint.base import id as checkpoint_ids
from langgraph.types import Command, StateUpdate
from sqlalchemy import select, text, update
from tests.support.thread_world import ALICE, BOB, ThreadWorld, texts

from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.storage.database import Database
from deerflow.storage.tables import metadata, threads, utc_now
from deerflow.storage.threads import ThreadFilter, begin_deletion


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[ThreadWorld]:
    made = await asyncio.to_thread(ThreadWorld, database, tmp_path / "home")  # imports the driver
    yield made
    await made.aclose()


async def test_a_thread_has_the_shape_that_sdks_read(world: ThreadWorld) -> None:
    made = await world.threads.create(ALICE, metadata={"agent_name": "coder"})

    assert made["status"] == "idle" and made["values"] == {} and made["interrupts"] == {}
    assert made["metadata"] == {"agent_name": "coder"}
    assert made["created_at"].endswith("+00:00")
    assert await world.threads.get(ALICE, made["thread_id"]) == made


async def test_one_thread_has_its_values_and_lists_have_titles(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await world.threads.states.update(ALICE, "t1", {"title": "Greeting"})

    one = await world.threads.get(ALICE, "t1")
    found, total = await world.threads.search(ALICE)

    assert texts(one["values"]["messages"]) == ["hello", "", "hello", "answer to hello"]
    assert one["values"]["title"] == "Greeting"
    assert [thread["values"] for thread in found] == [{"title": "Greeting"}] and total == 1
    assert await world.threads.count(ALICE, ThreadFilter(title="Greeting")) == 1


async def test_a_thread_tells_what_it_waits_for(world: ThreadWorld) -> None:
    await world.thread("t1", "please ask")

    [(_, [asked])] = (await world.threads.get(ALICE, "t1"))["interrupts"].items()

    assert asked["value"] == {"question": "sure?"} and asked["id"]


async def test_no_host_path_and_no_picture_leaves_the_server(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    config = {"configurable": {"thread_id": "t1"}}
    hidden = {
        "thread_data": {"workspace_path": "/host/secret"},
        "sandbox": {"sandbox_id": "x"},
        "viewed_images": {"/mnt/user-data/a.png": {"mime_type": "image/png", "base64": "AAAA"}},
    }
    await world.graph.aupdate_state(config, hidden, as_node="model")

    states = await world.threads.states.history(ALICE, "t1", limit=100)
    shown = [(await world.threads.get(ALICE, "t1"))["values"], *(state["values"] for state in states)]

    assert not any("/host" in str(values) or "AAAA" in str(values) for values in shown)
    assert shown[0]["viewed_images"] == {"/mnt/user-data/a.png": {"mime_type": "image/png"}}


async def test_others_threads_do_not_exist(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    service = world.threads
    for attempt in (
        service.get(BOB, "t1"),
        service.update(BOB, "t1", metadata={}),
        service.delete(BOB, "t1"),
        service.copy(BOB, "t1"),
        service.states.get(BOB, "t1"),
        service.states.history(BOB, "t1"),
        service.states.update(BOB, "t1", {"title": "x"}),
        service.states.annotate(BOB, "t1", {"a": 1}),
        service.transcript.messages(BOB, "t1"),
        service.transcript.turns(BOB, "t1"),
        service.transcript.token_usage(BOB, "t1"),
        service.transcript.export(BOB, "t1", "md"),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert await service.prune(BOB, ["t1"]) == 0
    with pytest.raises(ConflictError):
        await service.create(BOB, "t1")


async def _rows_of(database: Database, thread_id: str) -> list[str]:
    """Tables that know the thread."""

    def look(connection):  # type: ignore[no-untyped-def]
        known = [table for table in metadata.sorted_tables if "thread_id" in table.c]
        found = [
            table.name
            for table in known
            if connection.execute(select(table).where(table.c.thread_id == thread_id)).first()
        ]
        for name in ("checkpoints", "message_search"):
            statement = text(f"SELECT 1 FROM {name} WHERE thread_id = :id")
            found += [name] * bool(connection.execute(statement, {"id": thread_id}).first())
        return found

    return await database.read(look)


async def test_nothing_is_left_of_a_deleted_thread(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await world.thread("t2", "hello")
    await world.threads.states.update(ALICE, "t1", {"title": "Greeting"})
    file = (await asyncio.to_thread(world.paths.ensure_thread_dirs, "t1", "alice")) / "user-data/outputs/a.txt"
    file.write_text("x")
    writer = world.event_log.writer("t1", "r", 0)
    writer.append("custom", {"a": 1})
    await writer.flush()

    await world.threads.delete(ALICE, "t1")

    assert await _rows_of(world.database, "t1") == []
    assert not world.paths.thread_dir("t1", "alice").exists()
    assert world.destroyed == ["alice:t1"]
    assert len((await world.threads.get(ALICE, "t2"))["values"]["messages"]) == 4
    with pytest.raises(NotFoundError):
        await world.threads.delete(ALICE, "t1")


async def test_the_owners_windows_learn_what_becomes_of_a_thread(world: ThreadWorld) -> None:
    def news() -> list[tuple[str, str]]:
        heard, world.changed = world.changed, []
        return heard

    await world.thread("t1", "a picnic")
    assert news() == [(ALICE.user_id, "t1")]
    await world.threads.update(ALICE, "t1", metadata={"archived": True})
    assert news() == [(ALICE.user_id, "t1")]
    await world.threads.dismiss(ALICE, "t1")
    assert news() == [(ALICE.user_id, "t1")]
    await world.threads.states.update(ALICE, "t1", {"title": "Picnic"})
    assert news() == [(ALICE.user_id, "t1")]
    copied = (await world.threads.copy(ALICE, "t1"))["thread_id"]
    assert (ALICE.user_id, copied) in news()
    await world.threads.delete(ALICE, "t1")
    assert news() == [(ALICE.user_id, "t1")]
    with pytest.raises(NotFoundError):
        await world.threads.delete(ALICE, "t1")
    assert news() == []


async def test_deleting_stops_what_runs_and_what_waits(world: ThreadWorld) -> None:
    await world.thread("t1")
    await world.add_run("t1", "first", status="running")
    await world.add_run("t1", "second", status="pending", position=2)

    await world.threads.delete(ALICE, "t1")

    assert sorted(world.stopped) == ["first", "second"]


async def test_of_two_deletions_at_once_one_finds_nothing(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")

    outcomes = await asyncio.gather(
        world.threads.delete(ALICE, "t1"), world.threads.delete(ALICE, "t1"), return_exceptions=True
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "NotFoundError"]


async def test_a_deletion_that_was_cut_off_is_finished_later(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await world.database.write(lambda connection: begin_deletion(connection, "alice", "t1"))

    assert await world.threads.finish_deletions() == 1

    assert await _rows_of(world.database, "t1") == []
    assert (await world.threads.create(ALICE, "t1"))["values"] == {}


async def test_threads_whose_time_is_over_are_deleted(world: ThreadWorld) -> None:
    await world.threads.create(ALICE, "t1", ttl=timedelta(minutes=1))
    await world.threads.create(ALICE, "t2", ttl=timedelta(minutes=60))
    past = update(threads).where(threads.c.thread_id == "t1").values(expires_at=utc_now() - timedelta(seconds=1))
    await world.database.write(lambda connection: connection.execute(past) and None)

    assert await world.threads.finish_deletions() == 1
    assert [thread["thread_id"] for thread in (await world.threads.search(ALICE))[0]] == ["t2"]


async def test_a_copy_goes_its_own_way(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two")
    await world.threads.states.update(ALICE, "t1", {"title": "Numbers"})
    outputs = (await asyncio.to_thread(world.paths.ensure_thread_dirs, "t1", "alice")) / "user-data/outputs"
    (outputs / "deep").mkdir()
    (outputs / "deep/a.txt").write_text("x")
    (outputs / "link").symlink_to("/etc/passwd")
    os.mkfifo(outputs / "pipe")

    copied = await world.threads.copy(ALICE, "t1")
    await world.turn(copied["thread_id"], "three")

    target = world.paths.outputs(copied["thread_id"], "alice")
    assert (target / "deep/a.txt").read_text() == "x"
    assert (target / "link").is_symlink() and not (target / "pipe").exists()
    assert copied["values"]["title"] == "Numbers"
    assert len((await world.threads.get(ALICE, "t1"))["values"]["messages"]) == 8
    assert len((await world.threads.get(ALICE, copied["thread_id"]))["values"]["messages"]) == 12
    assert len(await world.threads.transcript.turns(ALICE, copied["thread_id"])) == 3
    hits = await world.threads.messages.search(ALICE, "answer two")
    assert {hit.thread_id for hit in hits} == {copied["thread_id"]}
    history = await world.threads.states.history(ALICE, copied["thread_id"], limit=100)
    assert len(history) > len(await world.threads.states.history(ALICE, "t1", limit=100))


async def test_a_question_that_waits_can_be_answered_in_the_copy(world: ThreadWorld) -> None:
    await world.thread("t1", "please ask")
    waits = update(threads).where(threads.c.thread_id == "t1").values(status="interrupted", waits_since=utc_now())
    await world.database.write(lambda connection: connection.execute(waits) and None)

    copied = await world.threads.copy(ALICE, "t1")
    assert copied["status"] == "interrupted" and copied["interrupts"]
    config = {"configurable": {"thread_id": copied["thread_id"]}}
    await world.graph.ainvoke(Command(resume="yes"), config)

    assert texts((await world.threads.get(ALICE, copied["thread_id"]))["values"]["messages"])[-1] == "answer to yes"
    assert (await world.threads.get(ALICE, "t1"))["interrupts"]


async def test_a_busy_thread_is_not_copied(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await world.add_run("t1", "active", status="running")

    with pytest.raises(ConflictError):
        await world.threads.copy(ALICE, "t1")


async def test_pruning_keeps_what_was_said(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two")
    before = (await world.threads.get(ALICE, "t1"))["values"]

    assert await world.threads.prune(ALICE, ["t1", "t1", "missing"], "keep_latest") == 1

    assert (await world.threads.get(ALICE, "t1"))["values"] == before
    assert len(await world.threads.states.history(ALICE, "t1", limit=100)) == 1
    await world.turn("t1", "three")
    assert len((await world.threads.get(ALICE, "t1"))["values"]["messages"]) == 12


async def test_pruning_leaves_a_question_that_waits(world: ThreadWorld) -> None:
    await world.thread("t1", "please ask")

    assert await world.threads.prune(ALICE, ["t1"], "keep_latest") == 0
    assert (await world.threads.get(ALICE, "t1"))["interrupts"]


async def test_pruning_can_delete(world: ThreadWorld) -> None:
    await world.thread("t1", "one")
    await world.thread("t2")

    assert await world.threads.prune(ALICE, ["t1", "t2", "t3"]) == 2
    assert await world.threads.count(ALICE) == 0


async def test_a_thread_can_begin_with_steps_of_another_one(world: ThreadWorld) -> None:
    steps = [
        [StateUpdate({"messages": [{"role": "user", "content": "hi"}], "title": "Old"}, "__start__")],
        [StateUpdate({"messages": [{"role": "assistant", "content": "hello"}]}, "model")],
    ]

    made = await world.threads.create(ALICE, supersteps=steps)

    assert texts(made["values"]["messages"]) == ["hi", "hello"]
    assert made["values"]["title"] == "Old"


async def test_steps_that_do_not_fit_leave_no_thread(world: ThreadWorld) -> None:
    for node, values in (("nowhere", {"title": "x"}), ("model", {"nonsense": 1})):
        with pytest.raises(InvalidRequestError):
            await world.threads.create(ALICE, "t1", supersteps=[[StateUpdate(values, node)]])
    assert await world.threads.count(ALICE) == 0


async def test_a_thread_goes_on_though_the_clock_was_set_back_between_two_starts(
    world: ThreadWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.thread("t1", "one")
    for days in (3, 0, -3):  # as another process names its checkpoints, which knows of none before
        monkeypatch.setattr(checkpoint_ids, "_last_v6_timestamp", None)
        monkeypatch.setattr(checkpoint_ids, "time", SimpleNamespace(time_ns=lambda days=days: _now(days)))
        await world.turn("t1", f"{days} days")
    said = texts((await world.threads.get(ALICE, "t1"))["values"]["messages"])
    assert said[3::4] == ["answer to one", "answer to 3 days", "answer to 0 days", "answer to -3 days"]


def _now(days: int) -> int:
    return time.time_ns() + days * 86_400 * 10**9
