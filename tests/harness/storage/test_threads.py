from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.provenance import UNJUDGED, Source, has_rows
from deerflow.storage.tables import runs, threads, utc_now
from deerflow.storage.threads import (
    ThreadFilter,
    ThreadRepository,
    begin_deletion,
    changeable_thread,
    end_deletion,
    expired,
    find,
    set_status,
    set_title,
    unfinished_deletions,
)

ALICE, BOB = Principal("alice"), Principal("bob")


@pytest.fixture
def repository(database: Database) -> ThreadRepository:
    return ThreadRepository(database)


async def _add_run(database: Database, thread_id: str, status: str) -> None:
    now = utc_now()
    row = {"run_id": f"run-{thread_id}", "thread_id": thread_id, "user_id": "alice", "status": status}
    row |= {"multitask_strategy": "reject", "kwargs": {}, "metadata": {}, "created_at": now, "updated_at": now}
    await database.write(lambda connection: connection.execute(insert(runs).values(**row, position=1)) and None)


async def test_a_new_thread_is_idle_and_aware_of_its_times(repository: ThreadRepository) -> None:
    thread = await repository.create(ALICE, "t1", metadata={"a": 1}, assistant_id="lead_agent")

    assert (thread.status, thread.metadata, thread.assistant_id, thread.title) == ("idle", {"a": 1}, "lead_agent", None)
    assert thread.created_at.utcoffset() == timedelta(0)
    assert await repository.get(ALICE, "t1") == thread


async def test_creating_ones_own_thread_again_gives_it_back(repository: ThreadRepository) -> None:
    first = await repository.create(ALICE, "t1", metadata={"a": 1})

    assert await repository.create(ALICE, "t1", metadata={"a": 2}) == first
    with pytest.raises(ConflictError):
        await repository.create(ALICE, "t1", if_exists="raise")


async def test_a_taken_id_does_not_tell_whose_it_is(repository: ThreadRepository) -> None:
    await repository.create(ALICE, "t1")

    with pytest.raises(ConflictError) as foreign:
        await repository.create(BOB, "t1")
    with pytest.raises(ConflictError) as own:
        await repository.create(ALICE, "t1", if_exists="raise")

    assert str(foreign.value) == str(own.value)


async def test_only_one_of_many_at_once_makes_it(repository: ThreadRepository) -> None:
    tries = [repository.create(ALICE, "t1", metadata={"n": number}, if_exists="raise") for number in range(8)]

    outcomes = await asyncio.gather(*tries, return_exceptions=True)

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConflictError"] * 7 + ["Thread"]


async def test_a_foreign_thread_looks_like_none(repository: ThreadRepository) -> None:
    await repository.create(ALICE, "t1")
    messages = []
    for thread_id in ("t1", "t2"):
        for attempt in (repository.get(BOB, thread_id), repository.update(BOB, thread_id, metadata={"x": 1})):
            with pytest.raises(NotFoundError) as raised:
                await attempt
            messages.append(str(raised.value).replace(thread_id, ""))

    assert len(set(messages)) == 1
    assert await repository.search(BOB) == ([], 0)


async def test_metadata_is_merged_key_by_key(repository: ThreadRepository) -> None:
    await repository.create(ALICE, "t1", metadata={"a": {"x": 1}, "b": 1})

    updated = await repository.update(ALICE, "t1", metadata={"a": {"y": 2}, "pinned": True})

    assert updated.metadata == {"a": {"y": 2}, "b": 1, "pinned": True}


async def test_many_updates_at_once_lose_nothing(repository: ThreadRepository) -> None:
    await repository.create(ALICE, "t1")

    await asyncio.gather(*(repository.update(ALICE, "t1", metadata={f"k{n}": n}) for n in range(10)))

    assert (await repository.get(ALICE, "t1")).metadata == {f"k{n}": n for n in range(10)}


async def test_the_owner_cannot_be_named_in_metadata(repository: ThreadRepository) -> None:
    created = await repository.create(ALICE, "t1", metadata={"user_id": "bob", "owner_id": "bob", "a": 1})
    updated = await repository.update(ALICE, "t1", metadata={"user_id": "bob"})

    assert created.metadata == updated.metadata == {"a": 1}


UNSTORABLE: list[dict[str, Any]] = [{"a": "\x00"}, {"a": "\ud800"}, {"a": 2**70}, {"a\x00": 1}]


async def test_metadata_that_cannot_be_stored_is_refused(repository: ThreadRepository) -> None:
    for metadata in UNSTORABLE:
        with pytest.raises(InvalidRequestError):
            await repository.create(ALICE, "t1", metadata=metadata)


HAVE = {
    "agent": "coder",
    "pinned": True,
    "n": 1,
    "half": 0.5,
    "none": None,
    "tags": ["a", "b", {"k": "v", "l": 1}],
    "deep": {"er": {"est": "x"}, "list": [1, [2, 3]]},
    'quo"te.$[0]': "odd",
    "键": "值",
    "1": "digit",
}


CONTAINED = [
    ({}, True),
    ({"agent": "coder"}, True),
    ({"agent": "coder", "n": 1}, True),
    ({"agent": "coder", "n": 2}, False),
    ({"agent": "Coder"}, False),
    ({"missing": None}, False),
    ({"none": None}, True),
    ({"pinned": True}, True),
    ({"pinned": False}, False),
    ({"pinned": 1}, False),
    ({"n": True}, False),
    ({"n": "1"}, False),
    ({"n": 1.0}, True),
    ({"half": 0.5}, True),
    ({"tags": ["b"]}, True),
    ({"tags": ["b", "a"]}, True),
    ({"tags": ["c"]}, False),
    ({"tags": [{"k": "v"}]}, True),
    ({"tags": []}, True),
    ({"agent": []}, False),
    ({"agent": {}}, False),
    ({"deep": {"er": {}}}, True),
    ({"deep": {"er": {"est": "x"}}}, True),
    ({"deep": {"er": {"est": "y"}}}, False),
    ({"deep": {"list": [[3]]}}, True),
    ({"deep": {"list": [3]}}, False),
    ({'quo"te.$[0]': "odd"}, True),
    ({"键": "值"}, True),
    ({"1": "digit"}, True),
    ({"agent": "x' OR 1=1 --"}, False),
]


async def test_metadata_is_searched_by_what_it_contains(repository: ThreadRepository) -> None:
    await repository.create(ALICE, "t1", metadata=HAVE)
    await repository.create(ALICE, "t2", metadata={"agent": 7, "tags": "b", "deep": "er", "1": 0})

    for wanted, holds in CONTAINED:
        found, total = await repository.search(ALICE, ThreadFilter(metadata=wanted))
        assert ("t1" in [thread.thread_id for thread in found]) is holds, wanted
        assert total == len(found) == await repository.count(ALICE, ThreadFilter(metadata=wanted)), wanted
        assert not wanted or total == holds, wanted


async def test_threads_of_an_assistant_are_found_whether_their_metadata_say_so_or_not(
    repository: ThreadRepository,
) -> None:
    await repository.create(ALICE, "ran", assistant_id="one", metadata={"mark": 1})
    await repository.create(ALICE, "other", assistant_id="two")
    await repository.create(ALICE, "noted", metadata={"graph_id": "lead_agent", "mark": 1})
    await repository.create(ALICE, "empty")

    async def ids(metadata: dict[str, Any], **assistants: str | None) -> set[str]:
        found, _ = await repository.search(ALICE, ThreadFilter(metadata, assistants=assistants))
        return {thread.thread_id for thread in found}

    assert await ids({"graph_id": "lead_agent"}, graph_id=None) == {"ran", "other", "noted"}
    assert await ids({"graph_id": "lead_agent", "mark": 1}, graph_id=None) == {"ran", "noted"}
    assert await ids({"assistant_id": "one"}, assistant_id="one") == {"ran"}
    assert await ids({"graph_id": "x"}, graph_id="two") == {"other"}


async def test_search_filters_sorts_and_pages(database: Database, repository: ThreadRepository) -> None:
    for number in range(5):
        await repository.create(ALICE, f"t{number}", title=f"Title {number}")
    await database.write(lambda connection: set_status(connection, "t1", "busy"))

    async def ids(wanted: ThreadFilter = ThreadFilter(), **options: Any) -> list[str]:
        return [thread.thread_id for thread in (await repository.search(ALICE, wanted, ListPage(**options)))[0]]

    assert await ids() == ["t1", "t4", "t3", "t2", "t0"]
    assert await ids(sort_by="created_at", descending=False) == ["t0", "t1", "t2", "t3", "t4"]
    assert await ids(sort_by="thread_id", limit=2, offset=1) == ["t3", "t2"]
    assert await ids(sort_by="status", descending=False, limit=1) == ["t1"]
    assert await ids(ThreadFilter(status="busy")) == ["t1"]
    assert await ids(ThreadFilter(ids=["t0", "t3", "foreign"])) == ["t3", "t0"]
    assert await ids(ThreadFilter(ids=[])) == []
    assert await ids(ThreadFilter(title="Title 2")) == ["t2"]
    assert (await repository.search(ALICE, page=ListPage(limit=2, offset=4)))[1] == 5


async def test_metadata_does_not_make_a_thread_newer(repository: ThreadRepository) -> None:
    await repository.create(ALICE, "old")
    await repository.create(ALICE, "new")

    await repository.update(ALICE, "old", metadata={"pinned": True})

    assert [thread.thread_id for thread in (await repository.search(ALICE))[0]] == ["new", "old"]


async def test_a_title_is_one_line_and_a_late_one_does_not_replace_it(
    database: Database, repository: ThreadRepository
) -> None:
    await repository.create(ALICE, "t1")
    await repository.set_title(ALICE, "t1", "  My\n\x00 plan\t" + "x" * 1000)

    late = await database.write(lambda connection: set_title(connection, "t1", "Auto", only_if_missing=True))

    title = (await repository.get(ALICE, "t1")).title or ""
    assert not late
    assert title.startswith("My plan xxx") and len(title) == 500
    with pytest.raises(NotFoundError):
        await repository.set_title(BOB, "t1", "Mine")


async def test_deletion_waits_for_active_runs(database: Database, repository: ThreadRepository) -> None:
    await repository.create(ALICE, "t1")
    await _add_run(database, "t1", "running")

    assert not await database.write(lambda connection: begin_deletion(connection, "alice", "t1"))
    assert await repository.get(ALICE, "t1")


async def test_a_thread_being_deleted_is_gone_and_its_id_is_not_free(
    database: Database, repository: ThreadRepository
) -> None:
    await repository.create(ALICE, "t1", title="Plan")
    await _add_run(database, "t1", "success")

    with pytest.raises(NotFoundError):
        await database.write(lambda connection: begin_deletion(connection, "bob", "t1"))
    assert await database.write(lambda connection: begin_deletion(connection, "alice", "t1"))

    with pytest.raises(NotFoundError):
        await repository.get(ALICE, "t1")
    with pytest.raises(NotFoundError):
        await database.write(lambda connection: changeable_thread(connection, ALICE, "t1"))
    with pytest.raises(ConflictError):
        await repository.create(ALICE, "t1")
    assert await database.read(lambda connection: connection.execute(runs.select()).all()) == []
    assert await database.read(unfinished_deletions) == [("t1", "alice")]

    await database.write(lambda connection: end_deletion(connection, "t1"))

    assert await database.read(lambda connection: find(connection, "t1")) is None
    assert (await repository.create(ALICE, "t1")).title is None


async def test_the_end_of_a_deletion_never_hits_a_living_thread(
    database: Database, repository: ThreadRepository
) -> None:
    await repository.create(ALICE, "t1")

    await database.write(lambda connection: end_deletion(connection, "t1"))

    assert await repository.get(ALICE, "t1")


async def test_expired_threads_are_found(database: Database, repository: ThreadRepository) -> None:
    await repository.create(ALICE, "kept", expires_at=utc_now() + timedelta(hours=1))
    await repository.create(ALICE, "for-ever")
    await repository.create(ALICE, "over")
    past = update(threads).where(threads.c.thread_id == "over").values(expires_at=utc_now() - timedelta(seconds=1))
    await database.write(lambda connection: connection.execute(past) and None)

    assert await database.read(expired) == [("over", "alice")]


async def test_a_person_trusts_what_a_source_of_their_thread_has_brought_so_far(
    database: Database, repository: ThreadRepository
) -> None:
    await repository.create(ALICE, "t1")
    brought = [Source("server", "shop", "v1"), Source("server", "shop", "v2"), Source("upload", "a.pdf")]
    await repository.add_sources("t1", brought)
    await repository.create(ALICE, "t2")
    await repository.add_sources("t2", [Source(UNJUDGED, "before")])
    assert await repository.sources(ALICE, "t2") == []
    for who, name in ((BOB, "shop"), (ALICE, "other")):
        with pytest.raises(NotFoundError):
            await repository.trust(who, "t1", "server", name)
    with pytest.raises(NotFoundError):
        await repository.trust(ALICE, "t2", UNJUDGED, "before")
    with pytest.raises(NotFoundError):
        await repository.sources(BOB, "t1")

    await repository.trust(ALICE, "t1", "server", "shop")
    await repository.add_sources("t1", [Source("server", "shop", "v3")])

    trusted = {(source.name, source.digest): source.trusted for source in await repository.sources(ALICE, "t1")}
    assert trusted == {("shop", "v1"): True, ("shop", "v2"): True, ("shop", "v3"): False, ("a.pdf", ""): False}
    await repository.trust(ALICE, "t1", "server", "shop")
    await repository.trust(ALICE, "t1", "upload", "a.pdf")
    assert not await database.read(has_rows, "t1")
    await repository.add_sources("t1", [Source("server", "shop", "v3")])
    assert not await database.read(has_rows, "t1")
    await repository.add_sources("t1", [Source("upload", "a.pdf")])
    assert await database.read(has_rows, "t1"), "a file of the same name may hold something else"
