"""The promises of the event log: over one process, and two that share PostgreSQL."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc
import weakref
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, func, insert, select, update

from deerflow.events.log import EventLog, EventWriter, LostRunError, RunEvent
from deerflow.events.notify import Notifier
from deerflow.events.store import decode_row, read_page
from deerflow.storage.database import Database
from deerflow.storage.tables import run_events, threads, utc_now

GUARD = 60
TOKEN = [{"type": "AIMessageChunk", "id": "m", "content": "token"}, {"langgraph_node": "model"}]


@dataclass
class Site:
    """Where runs execute and where they are read: one process, or two."""

    log: EventLog
    elsewhere: EventLog
    database: Database

    async def claim(self, thread_id: str = "t", run_id: str = "r") -> EventWriter:
        return self.log.writer(thread_id, run_id, await claim(self.database, thread_id))


async def claim(database: Database, thread_id: str) -> int:
    """Make the thread if there is none, and move its epoch on, as the claim of a run does."""

    def job(connection: Any) -> int:
        now = utc_now()
        if connection.execute(select(threads.c.epoch).where(threads.c.thread_id == thread_id)).first() is None:
            row = {"thread_id": thread_id, "user_id": "u", "metadata": {}, "created_at": now, "updated_at": now}
            connection.execute(insert(threads).values(row))
        connection.execute(update(threads).where(threads.c.thread_id == thread_id).values(epoch=threads.c.epoch + 1))
        return connection.execute(select(threads.c.epoch).where(threads.c.thread_id == thread_id)).scalar_one()

    return await database.write(job)


@asynccontextmanager
async def site_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    if kind == "one process":
        database = Database(tmp_path / "deerflow.db")
        log = EventLog(database)
        yield Site(log, log, database)
        await log.aclose()
        await database.aclose()
        return
    url = request.getfixturevalue("migrated_url")
    databases = [Database(url), Database(url)]
    notifiers = [Notifier(database) for database in databases]
    logs = [EventLog(database, notifier) for database, notifier in zip(databases, notifiers, strict=True)]
    yield Site(logs[0], logs[1], databases[0])
    for closing in (*logs, *notifiers, *databases):
        await closing.aclose()


@pytest.fixture(params=["one process", "postgres"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_of(request.param, request, tmp_path) as made:
        yield made


@pytest.fixture
async def local(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_of("one process", request, tmp_path) as made:
        yield made


async def collect(log: EventLog, thread_id: str = "t", **options: Any) -> list[RunEvent]:
    """Everything up to the end."""
    async with asyncio.timeout(GUARD):
        return [event async for batch in log.read(thread_id, **options) for event in batch]


async def first(log: EventLog, count: int, thread_id: str = "t", **options: Any) -> list[RunEvent]:
    """The first ``count`` events, then leave."""
    events: list[RunEvent] = []
    async with asyncio.timeout(GUARD), aclosing(log.read(thread_id, **options)) as batches:
        async for batch in batches:
            events += batch
            if len(events) >= count:
                return events[:count]
    raise AssertionError(f"The log ended after {len(events)} events.")


def yes(connection: Any) -> bool:
    return True


async def over() -> bool:
    return True


def texts(events: list[RunEvent]) -> list[Any]:
    return [event.data for event in events if event.method == "custom"]


async def test_events_arrive_once_and_in_order_however_often_readers_come_and_go(site: Site) -> None:
    dice = random.Random(7)
    writer = await site.claim()

    async def restless(log: EventLog) -> list[Any]:
        seen, cursor = [], 0
        while True:
            stay = dice.randint(1, 40)
            async with aclosing(log.read("t", run_id="r", after=cursor)) as batches:
                async for batch in batches:
                    for event in batch:
                        assert event.seq > cursor
                        cursor = event.seq
                        if event.method == "end":
                            return seen
                        seen.append(event.data)
                    stay -= 1
                    if stay <= 0:
                        break
            await asyncio.sleep(dice.random() / 100)

    readers = [asyncio.create_task(restless(log)) for log in [site.log, site.elsewhere] * 4]
    for number in range(600):
        writer.append("custom", number)
        if dice.random() < 0.2:
            await asyncio.sleep(dice.random() / 100)
        if dice.random() < 0.02:
            await writer.flush()
    assert await writer.end({"status": "success"}, yes)
    async with asyncio.timeout(GUARD):
        assert all(seen == list(range(600)) for seen in await asyncio.gather(*readers))


async def test_a_reader_may_come_before_the_run(site: Site) -> None:
    reading = [asyncio.create_task(collect(log, run_id="r")) for log in (site.log, site.elsewhere)]
    await asyncio.sleep(0)
    writer = await site.claim()
    writer.append("custom", "hello")
    await writer.end({"status": "success"}, yes)
    assert [[event.method for event in events] for events in await asyncio.gather(*reading)] == [["custom", "end"]] * 2


async def test_a_reader_who_comes_late_misses_nothing(site: Site) -> None:
    writer = await site.claim()
    for number in range(10):
        writer.append("custom", number)
    assert texts(await first(site.log, 10, run_id="r")) == list(range(10))
    assert texts(await first(site.elsewhere, 10, run_id="r")) == list(range(10))
    positions = [event.seq for event in await first(site.elsewhere, 10, run_id="r")]
    writer.append("custom", 10)
    assert texts(await first(site.elsewhere, 4, run_id="r", after=positions[6])) == [7, 8, 9, 10]


async def test_reading_after_the_end_replays_and_returns(site: Site) -> None:
    writer = await site.claim()
    for number in range(3000):
        writer.append("messages", [{"type": "AIMessageChunk", "id": "m", "content": str(number)}, {}])
    assert await writer.end({"status": "success"}, yes)
    events = await collect(site.log, run_id="r")
    assert len(events) == 3001
    assert await collect(site.elsewhere, run_id="r") == events
    assert await collect(EventLog(site.database), run_id="r") == events
    assert await collect(EventLog(site.database), run_id="r", after=events[1500].seq) == events[1501:]


async def test_an_event_is_the_same_for_everyone(site: Site) -> None:
    odd = {"surrogate": "a\ud800b", "nan": float("nan"), "bytes": b"\xff", "big": 2**80, 7: "key", "set": {1}}
    writer = await site.claim()
    writer.append("custom", odd, ("subagent", "x"))
    writer.append("custom", "x" * 3_000_000)
    writer.append("custom", "a\u2028b\x85c\nd\re")
    await writer.end({"status": "success"}, yes)
    events = await collect(site.log, run_id="r")
    assert await collect(site.elsewhere, run_id="r") == events
    assert await collect(EventLog(site.database), run_id="r") == events
    assert events[0].data == {
        "surrogate": "a\ufffd\ufffd\ufffdb",
        "nan": None,
        "bytes": "/w==",
        "big": str(2**80),
        "7": "key",
        "set": [1],
    }
    assert events[0].namespace == ("subagent", "x")
    assert len(events[1].data) == 3_000_000
    assert events[2].data == "a\u2028b\x85c\nd\re"
    assert len(events[2].json.decode().splitlines()) == 1


async def test_a_run_that_ended_without_a_word_ends_its_readers(site: Site) -> None:
    await site.claim()
    assert await collect(site.elsewhere, run_id="another", ended=over) == []


async def test_notifying_a_thread_makes_readers_ask_whether_their_run_is_over(site: Site) -> None:
    asked, is_over = asyncio.Event(), False

    async def ended() -> bool:
        asked.set()
        return is_over

    reading = asyncio.create_task(collect(site.elsewhere, run_id="r", ended=ended, heartbeat=GUARD))
    await asked.wait()
    is_over = True
    await site.log.notify("t")
    assert await reading == []


async def test_what_is_written_while_a_run_is_found_to_be_over_is_not_missed(site: Site) -> None:
    writer = await site.claim()

    async def ended() -> bool:
        writer.append("custom", "last words")
        await writer.flush()
        return True

    # Another log object: for it the run is executed elsewhere, and it is not notified at all.
    assert texts(await collect(EventLog(site.database), run_id="r", ended=ended)) == ["last words"]


async def test_a_thread_is_followed_across_its_runs(site: Site) -> None:
    reading = [asyncio.create_task(first(log, 9)) for log in (site.log, site.elsewhere)]
    for run_id in ("a", "b", "c"):
        writer = await site.claim(run_id=run_id)
        writer.append("metadata", {"run_id": run_id})
        writer.append("custom", run_id)
        await writer.end({"status": "success"}, yes)
    for events in await asyncio.gather(*reading):
        assert [event.run_id for event in events] == ["a"] * 3 + ["b"] * 3 + ["c"] * 3
        assert sorted(events, key=lambda event: event.seq) == events


async def test_runs_of_a_thread_in_different_processes_are_one_log(site: Site) -> None:
    """Readers of a process that executes some of the runs itself must see the others', too."""
    reading = [asyncio.create_task(first(log, 40)) for log in (site.log, site.elsewhere)]
    for number in range(20):
        log = (site.log, site.elsewhere)[number % 2]
        writer = log.writer("t", f"r{number}", await claim(site.database, "t"))
        writer.append("custom", number)
        await writer.end({"status": "success"}, yes)
    for events in await asyncio.gather(*reading):
        assert texts(events) == list(range(20))


async def test_who_has_lost_the_thread_cannot_write(site: Site) -> None:
    old = await site.claim()
    old.append("custom", "durable")
    await old.flush()
    epoch = await claim(site.database, "t")
    old.append("custom", "too late")
    with pytest.raises(LostRunError):
        await old.flush()
    assert not await old.end({"status": "success"}, yes)
    await old.aclose()
    new = site.elsewhere.writer("t", "r", epoch)
    new.append("custom", "again")
    assert await new.end({"status": "success"}, yes)
    for log in (site.log, site.elsewhere, EventLog(site.database)):
        assert texts(await collect(log, run_id="r")) == ["durable", "again"]


async def test_a_lost_run_is_noticed_by_the_writing_in_the_background(site: Site) -> None:
    old = await site.claim()
    epoch = await claim(site.database, "t")
    old.append("custom", "zombie")
    new = site.elsewhere.writer("t", "r", epoch)
    reading = asyncio.create_task(collect(site.log, run_id="r"))
    new.append("custom", "living")
    await new.end({"status": "success"}, yes)
    assert texts(await reading)[-1] == "living"
    with pytest.raises(LostRunError):
        await old.flush()
    assert texts(await collect(EventLog(site.database), run_id="r")) == ["living"]


async def test_positions_grow_across_attempts(site: Site) -> None:
    before = (await site.claim()).append("custom", 1)
    assert (await site.claim()).append("custom", 2) > before < 2**53


async def test_the_end_and_what_goes_with_it_are_one(site: Site) -> None:
    writer = await site.claim()
    writer.append("custom", "one")

    def busy(connection: Any) -> bool:
        connection.execute(update(threads).values(title="half done"))
        return False

    assert not await writer.end({"status": "success"}, busy)
    titles = await site.database.read(lambda connection: connection.execute(select(threads.c.title)).scalars().all())
    assert list(titles) == [None]
    writer.append("custom", "two")  # A message came in between, so the run goes on.
    assert await writer.end({"status": "success"}, yes)
    events = await collect(EventLog(site.database), run_id="r")
    assert [event.method for event in events] == ["custom", "custom", "end"]


async def test_what_subagents_emit_while_an_end_is_refused_is_not_lost(site: Site) -> None:
    writer, loop = await site.claim(), asyncio.get_running_loop()

    def emits(connection: Any, goes_on: bool) -> bool:
        async def emit() -> None:
            writer.append("custom", "meanwhile")

        asyncio.run_coroutine_threadsafe(emit(), loop).result()
        return not goes_on

    writer.append("custom", "before")
    assert not await writer.end({"status": "success"}, lambda connection: emits(connection, True))
    writer.append("custom", "after")
    assert await writer.end({"status": "success"}, lambda connection: emits(connection, False))
    assert texts(await collect(EventLog(site.database), run_id="r")) == ["before", "meanwhile", "after"]


async def test_readers_see_the_end_only_when_it_is_durable(local: Site) -> None:
    writer = await local.claim()
    reading = asyncio.create_task(first(local.log, 1, run_id="r"))

    def fails(connection: Any) -> bool:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await writer.end({"status": "success"}, fails)
    assert not reading.done()
    await writer.end({"status": "error"}, yes)
    assert [event.data for event in await reading] == [{"status": "error"}]


async def test_a_caller_who_is_cancelled_leaves_no_doubt(site: Site) -> None:
    writer = await site.claim()
    for number in range(50):
        writer.append("custom", number)
        flushing = asyncio.create_task(writer.flush())
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.wait([flushing])
    assert await writer.end({"status": "success"}, yes)
    assert texts(await collect(EventLog(site.database), run_id="r")) == list(range(50))


async def test_a_commit_that_was_not_heard_of_is_not_repeated(local: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, write = await local.claim(), local.database.write

    async def unheard(job: Any) -> Any:
        await write(job)
        raise ConnectionError("The answer got lost.")

    for number in range(3):
        writer.append("custom", number)
        monkeypatch.setattr(local.database, "write", unheard)
        with pytest.raises(ConnectionError):
            await writer.flush()
        monkeypatch.setattr(local.database, "write", write)
    await writer.end({"status": "success"}, yes)
    assert texts(await collect(EventLog(local.database), run_id="r")) == [0, 1, 2]


async def test_events_are_written_without_being_asked(site: Site) -> None:
    writer = await site.claim()
    writer.append("custom", "soon")
    assert texts(await first(site.elsewhere, 1, run_id="r")) == ["soon"]
    async with asyncio.timeout(GUARD):
        while writer.unwritten_bytes:
            await asyncio.sleep(0.01)
    assert texts(await first(EventLog(site.database), 1, run_id="r")) == ["soon"]


async def test_closing_the_log_writes_what_is_left(local: Site) -> None:
    writer = await local.claim()
    writer.append("custom", "last")
    await local.log.aclose()
    assert texts(await first(EventLog(local.database), 1, run_id="r")) == ["last"]


async def test_a_run_can_go_on_with_another_writer(site: Site) -> None:
    writer = await site.claim()
    writer.append("custom", 1)
    await writer.aclose()
    await writer.aclose()
    reading = asyncio.create_task(collect(site.log, run_id="r"))
    again = site.elsewhere.writer("t", "r", await claim(site.database, "t"))
    again.append("custom", 2)
    await again.end({"status": "success"}, yes)
    assert texts(await reading) == [1, 2]


async def test_the_state_is_kept_by_reference_while_the_run_is_here(local: Site) -> None:
    assert local.log.latest_values("t") is None
    writer, state = await local.claim(), {"messages": []}
    assert local.log.latest_values("t") is None
    writer.values(state)
    assert local.log.latest_values("t") is state
    await writer.end({"status": "success"}, yes)
    assert local.log.latest_values("t") is None
    events = await collect(local.log, run_id="r")
    assert (events[0].method, events[0].data) == ("values", None)


async def test_deleting_a_thread_ends_its_readers_and_its_writer(site: Site) -> None:
    writer = await site.claim()
    writer.append("custom", 1)
    await writer.flush()
    reading = asyncio.create_task(collect(site.log))
    await first(site.log, 1)
    await site.database.write(lambda connection: connection.execute(threads.delete()) and None)
    await site.log.delete("t")
    assert texts(await reading) in ([], [1])
    with pytest.raises(LostRunError):
        await writer.flush()
    assert await collect(site.elsewhere, run_id="r", ended=over) == []


async def test_deleting_a_run_leaves_the_others(site: Site) -> None:
    for run_id in ("a", "b"):
        writer = await site.claim(run_id=run_id)
        writer.append("custom", run_id)
        await writer.end({"status": "success"}, yes)
    await site.log.delete("t", "a")
    assert texts(await first(site.log, 2)) == ["b"]
    assert texts(await first(EventLog(site.database), 2)) == ["b"]
    assert await collect(site.log, run_id="a", ended=over) == []


async def test_silence_is_told_by_empty_batches(local: Site) -> None:
    await local.claim()
    async with asyncio.timeout(GUARD), aclosing(local.log.read("t", run_id="r", heartbeat=0.01)) as batches:
        assert [await anext(batches) for _ in range(3)] == [[], [], []]


async def test_a_long_run_is_kept_in_few_rows(local: Site) -> None:
    writer = await local.claim()
    for _ in range(30):
        for _ in range(20):
            writer.append("messages", TOKEN)
        await writer.flush()
    await writer.end({"status": "success"}, yes)
    count, size = await local.database.read(
        lambda connection: connection.execute(
            select(func.count(), func.sum(func.length(run_events.c.data))).select_from(run_events)
        ).one()
    )
    assert count <= 2
    assert size < 20_000
    assert len(await collect(EventLog(local.database), run_id="r")) == 601


async def test_a_reader_far_behind_is_served_when_memory_has_forgotten(
    local: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deerflow.events.writer.RUN_BYTES", 20_000)
    writer = await local.claim()
    async with asyncio.timeout(GUARD), aclosing(local.log.read("t", run_id="r")) as batches:
        seen: list[RunEvent] = []
        for number in range(2000):
            writer.append("custom", number)
            if number % 100 == 99:
                await writer.flush()
            if number % 300 == 299:
                seen += await anext(batches)
        await writer.end({"status": "success"}, yes)
        async for batch in batches:
            seen += batch
    assert texts(seen) == list(range(2000))


async def test_a_thousand_readers_of_a_stalled_run_cost_little(local: Site) -> None:
    writer = await local.claim()
    writer.append("custom", "x" * 1_000_000)
    await writer.flush()
    await first(local.log, 1, run_id="r")
    tracemalloc.start()
    try:
        readers = [local.log.read("t", run_id="r") for _ in range(1000)]
        batches = await asyncio.gather(*(anext(reader) for reader in readers))
        waiting = [asyncio.create_task(anext(reader)) for reader in readers]
        await asyncio.sleep(0)
        assert all(len(batch) == 1 for batch in batches)
        assert tracemalloc.get_traced_memory()[0] < 30_000_000
    finally:
        tracemalloc.stop()
    await writer.end({"status": "success"}, yes)
    async with asyncio.timeout(GUARD):
        assert all(batch[0].method == "end" for batch in await asyncio.gather(*waiting))
    await asyncio.gather(*(reader.aclose() for reader in readers))
    await local.log.delete("t")
    assert not local.log._topics


async def test_a_page_that_is_read_while_its_rows_are_replaced_lacks_nothing(site: Site) -> None:
    writer, loop = await site.claim(), asyncio.get_running_loop()
    for number in range(20):
        writer.append("custom", number)
        await writer.flush()
    base, ends = writer.base, writer.end({"status": "success"}, yes)

    def job(connection: Any) -> list[RunEvent]:
        replacing: list[Any] = []

        def replace(*_: Any) -> None:
            if not replacing:  # the whole attempt as one row, in the place of twenty
                replacing.append(asyncio.run_coroutine_threadsafe(ends, loop))
                assert replacing[0].result(GUARD)

        event.listen(connection, "after_cursor_execute", replace)
        pages = read_page(connection, "t", "r", base + 11, None)
        assert replacing
        return [found for page in pages for found in decode_row(page) if found.seq > base + 11]

    assert texts(await site.database.read(job))[:5] == list(range(11, 16))


async def test_short_events_take_little_memory(local: Site) -> None:
    writer = await local.claim()
    tracemalloc.start()
    try:
        for number in range(1000):
            writer.append("custom", {"number": number})
        events = await first(local.log, 1000, run_id="r")
        assert sum(len(event.json) for event in events) < 20_000
        assert tracemalloc.get_traced_memory()[0] < 1_500_000
    finally:
        tracemalloc.stop()


async def test_an_ended_run_that_nobody_reads_is_not_kept(local: Site) -> None:
    writer = await local.claim()
    events = weakref.ref(local.log._topics["t"].writer)
    await writer.end({"status": "success"}, yes)
    await (await local.claim("other", "r2")).end({"status": "success"}, yes)  # the database's thread keeps its last job
    del writer
    gc.collect()
    assert events() is None


async def test_many_threads_are_written_together(site: Site) -> None:
    writers = [await site.claim(f"t{number}", f"r{number}") for number in range(40)]
    reading = [asyncio.create_task(collect(site.elsewhere, f"t{n}", run_id=f"r{n}")) for n in range(40)]
    for number in range(20):
        for writer in writers:
            writer.append("custom", number)
        await asyncio.sleep(0.005)
    await asyncio.gather(*(writer.end({"status": "success"}, yes) for writer in writers))
    async with asyncio.timeout(GUARD):
        assert all(texts(events) == list(range(20)) for events in await asyncio.gather(*reading))


async def test_a_locked_thread_does_not_hold_up_the_others(postgres_url: str) -> None:
    database = Database(postgres_url)
    log = EventLog(database, Notifier(database))
    slow = log.writer("slow", "slow", await claim(database, "slow"))
    quick = log.writer("quick", "quick", await claim(database, "quick"))
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        await connection.execute("UPDATE threads SET title = 'locked' WHERE thread_id = 'slow'")
        slow.append("custom", 1)
        quick.append("custom", 1)
        async with asyncio.timeout(GUARD):
            while quick.unwritten_bytes:
                await asyncio.sleep(0.01)
        assert slow.unwritten_bytes
    async with asyncio.timeout(GUARD):
        while slow.unwritten_bytes:
            await asyncio.sleep(0.01)
    await log.aclose()
    await database.aclose()
