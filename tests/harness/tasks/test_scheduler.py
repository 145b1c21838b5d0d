from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, insert, select

from deerflow.capability import Capabilities
from deerflow.config import Paths
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError, UnavailableError
from deerflow.features.assistants.agents import AgentService
from deerflow.features.assistants.service import LEAD_AGENT_ID, AssistantService
from deerflow.features.schedules.rows import CRONS, CronQuery
from deerflow.features.schedules.scheduler import CRON, LOOK_AGAIN, Scheduler
from deerflow.features.schedules.service import CronChanges, CronRequest, CronService
from deerflow.features.webhooks import WebhookPolicy, Webhooks
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.tables import jobs as job_table
from deerflow.storage.tables import runs, threads, utc_now
from deerflow.tasks import jobs
from deerflow.tasks.jobs import HopelessError, JobWorker

ALICE, BOB = Principal("alice"), Principal("bob")
START = datetime(2026, 5, 4, 8, 30, tzinfo=UTC)


class World:
    """A clock, and what was started."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = START
        self.started: list[tuple[str, dict[str, Any], str | None]] = []
        self.woken = 0
        assistants = _assistants(database)
        self.crons = CronService(database, assistants, self.wake, clock=self.clock, capabilities=_webhooks())
        self.scheduler = self.another_scheduler()

    def clock(self) -> datetime:
        return self.now

    def wake(self) -> None:
        self.woken += 1

    def another_scheduler(self) -> Scheduler:
        return Scheduler(self.database, self.start, lambda: None, clock=self.clock)

    async def start(self, principal: Principal, body: dict[str, Any], thread_id: str | None) -> None:
        self.started.append((principal.user_id, body, thread_id))

    async def fire(self) -> list[str]:
        """Start what ticks have asked for; the dates it was due."""
        before = len(self.started)
        until = utc_now() + timedelta(minutes=1)
        taken = await self.database.write(lambda c: jobs.lease(c, {CRON: 1000}, now=utc_now(), until=until))
        for job in taken:
            await self.scheduler.fire(job)
            await self.database.write(lambda c: jobs.complete(c, job))  # noqa: B023
        return sorted(body["metadata"]["cron_run_date"][11:16] for _, body, _ in self.started[before:])

    async def at(self, time: str) -> list[str]:
        hour, minute = time.split(":")
        self.now = self.now.replace(hour=int(hour), minute=int(minute))
        await self.scheduler.tick()
        return await self.fire()


def _webhooks() -> Capabilities:
    return Capabilities(Webhooks(WebhookPolicy(), _nothing))


def _assistants(database: Database) -> AssistantService:
    return AssistantService(database, _nothing, _nothing, AgentService(database, Paths("/nowhere"), _nothing, _nothing))


async def _nothing(*args: Any) -> Any:
    return None


@pytest.fixture
async def world(database: Database) -> World:
    return World(database)


async def thread(database: Database, thread_id: str, user_id: str = "alice") -> str:
    now = utc_now()
    row = {"thread_id": thread_id, "user_id": user_id, "metadata": {}, "created_at": now, "updated_at": now}
    await database.write(lambda c: c.execute(insert(threads), [row]))
    return thread_id


def hourly(**more: Any) -> CronRequest:
    return CronRequest(schedule="0 * * * *", input={"messages": []}, **more)


async def test_a_cron_fires_when_its_time_has_come_and_goes_on(world: World) -> None:
    cron = await world.crons.create(ALICE, hourly(metadata={"why": "news"}, webhook="https://example.org/x"))
    assert await world.at("08:59") == []
    assert await world.at("09:00") == ["09:00"]
    assert await world.at("09:30") == []
    assert await world.at("10:00") == ["10:00"]
    user, body, thread_id = world.started[0]
    assert (user, thread_id) == ("alice", None)
    assert body == {
        "assistant_id": LEAD_AGENT_ID,
        "context": {"time_zone": "UTC"},
        "input": {"messages": []},
        "webhook": "https://example.org/x",
        "on_completion": "delete",
        "metadata": {"why": "news", "cron_id": cron.cron_id, "cron_run_date": "2026-05-04T09:00:00+00:00"},
    }


async def test_a_run_has_the_date_of_its_schedule_unless_it_names_a_zone(world: World) -> None:
    await world.crons.create(ALICE, hourly(timezone="Asia/Tokyo"))
    await world.crons.create(ALICE, hourly(timezone="Asia/Tokyo", context={"time_zone": "Asia/Seoul", "mode": "pro"}))
    await world.at("09:00")
    contexts = [body["context"] for _, body, _ in world.started]
    assert sorted(contexts, key=len) == [{"time_zone": "Asia/Tokyo"}, {"time_zone": "Asia/Seoul", "mode": "pro"}]


async def test_each_time_fires_once_although_many_processes_look(world: World) -> None:
    for _ in range(3):
        await world.crons.create(ALICE, hourly())
    world.now = START.replace(hour=9, minute=0)
    await asyncio.gather(*(world.another_scheduler().tick() for _ in range(6)))
    assert await world.fire() == ["09:00"] * 3


async def test_what_was_missed_is_started_once(world: World) -> None:
    await world.crons.create(ALICE, hourly())
    assert await world.at("15:20") == ["09:00"]
    assert await world.at("15:50") == []
    assert await world.at("16:00") == ["16:00"]


async def test_a_clock_that_is_set_back_starts_nothing_twice(world: World) -> None:
    await world.crons.create(ALICE, hourly())
    assert await world.at("09:00") == ["09:00"]
    assert await world.at("08:30") == []
    assert await world.at("09:00") == []
    assert await world.at("10:00") == ["10:00"]


async def test_no_run_starts_after_the_end(world: World) -> None:
    cron = await world.crons.create(ALICE, hourly(end_time=START.replace(hour=10, minute=0)))
    assert await world.at("09:00") == ["09:00"]
    assert await world.at("10:00") == ["10:00"]
    assert await world.at("11:00") == []
    assert (await world.crons.get(ALICE, cron.cron_id)).next_run_at is None


async def test_what_was_missed_before_the_end_is_not_made_up_for_after_it(world: World) -> None:
    await world.crons.create(ALICE, hourly(end_time=START.replace(hour=10, minute=0)))
    assert await world.at("12:00") == []


async def test_a_cron_that_is_off_rests_until_it_is_on_again(world: World) -> None:
    cron = await world.crons.create(ALICE, hourly(enabled=False))
    assert cron.next_run_at is None
    assert await world.at("09:00") == []
    on = await world.crons.update(ALICE, cron.cron_id, CronChanges(enabled=True))
    assert on.next_run_at == START.replace(hour=10, minute=0)
    assert await world.at("10:00") == ["10:00"]
    await world.crons.update(ALICE, cron.cron_id, CronChanges(enabled=False))
    assert await world.at("11:00") == []


async def test_a_changed_schedule_counts_from_now(world: World) -> None:
    cron = await world.crons.create(ALICE, hourly(timezone="Europe/Berlin"))
    changed = await world.crons.update(ALICE, cron.cron_id, CronChanges(schedule="0 12 * * *"))
    assert changed.next_run_at == START.replace(hour=10, minute=0)
    assert changed.timezone == "Europe/Berlin"
    utc = await world.crons.update(ALICE, cron.cron_id, CronChanges(timezone=None, input={"messages": ["new"]}))
    assert utc.next_run_at == START.replace(hour=12, minute=0)
    assert utc.payload["input"] == {"messages": ["new"]}
    assert world.woken == 3


async def test_a_change_of_something_else_leaves_the_next_time(world: World) -> None:
    cron = await world.crons.create(ALICE, hourly())
    changed = await world.crons.update(ALICE, cron.cron_id, CronChanges(metadata={"a": 1}))
    assert (changed.next_run_at, changed.metadata) == (cron.next_run_at, {"a": 1})


async def test_runs_of_a_thread_go_to_the_thread(world: World, database: Database) -> None:
    await thread(database, "t1")
    await world.crons.create(ALICE, hourly(), thread_id="t1")
    await world.at("09:00")
    _, body, thread_id = world.started[0]
    assert thread_id == "t1" and "on_completion" not in body


async def test_a_thread_of_someone_else_is_not_there(world: World, database: Database) -> None:
    await thread(database, "t1", "bob")
    for missing in ("t1", "t2"):
        with pytest.raises(NotFoundError):
            await world.crons.create(ALICE, hourly(), thread_id=missing)


async def test_a_cron_whose_thread_is_gone_is_turned_off(world: World, database: Database) -> None:
    await thread(database, "t1")
    cron = await world.crons.create(ALICE, hourly(), thread_id="t1")
    await database.write(lambda c: c.execute(delete(threads)))

    async def gone(*args: Any) -> None:
        raise NotFoundError("There is no thread t1.")

    world.scheduler = Scheduler(database, gone, lambda: None, clock=world.clock)
    with pytest.raises(HopelessError):
        await world.at("09:00")
    assert not (await world.crons.get(ALICE, cron.cron_id)).enabled


async def test_a_run_that_cannot_start_is_tried_again_if_that_may_help(world: World, database: Database) -> None:
    fails_with: list[Exception] = []

    async def fails(*args: Any) -> None:
        raise fails_with[-1]

    world.scheduler = Scheduler(database, fails, lambda: None, clock=world.clock)
    body = {"metadata": {}}
    job = jobs.Job(1, CRON, "k", {"user_id": "alice", "cron_id": "c", "thread_id": None, "body": body}, 1, utc_now())
    for error in (UnavailableError("full"), OSError("down")):
        fails_with.append(error)
        with pytest.raises(type(error)):
            await world.scheduler.fire(job)
    for error in (ConflictError("busy"), InvalidRequestError("?")):
        fails_with.append(error)
        with pytest.raises(HopelessError):
            await world.scheduler.fire(job)


async def test_a_run_that_was_started_before_the_process_died_is_not_started_again(
    world: World, database: Database
) -> None:
    await thread(database, "t1")
    await world.crons.create(ALICE, hourly(), thread_id="t1")
    world.now = START.replace(hour=9, minute=0)
    await world.scheduler.tick()
    row = (await database.read(lambda c: c.execute(select(job_table).where(job_table.c.kind == CRON)).one()))._asdict()
    metadata = row["payload"]["body"]["metadata"]
    run = {
        "run_id": "r1", "thread_id": "t1", "user_id": "alice", "multitask_strategy": "enqueue", "kwargs": {},
        "metadata": metadata, "created_at": utc_now(), "updated_at": utc_now(), "position": 1,
    }  # fmt: skip
    await database.write(lambda c: c.execute(insert(runs), [run]))
    job = jobs.Job(row["id"], CRON, row["key"], row["payload"], attempts=2, leased_until=utc_now())
    await world.scheduler.fire(job)
    assert world.started == []
    metadata["cron_run_date"] = "2026-05-04T10:00:00+00:00"
    await world.scheduler.fire(job)
    assert len(world.started) == 1


UNFIT: list[dict[str, Any]] = [
    {"schedule": "61 * * * *"},
    {"schedule": "* * * * * *"},
    {"timezone": "Mars/Olympus"},
    {"assistant_id": "nobody"},
    {"after_seconds": 3},
    {"on_completion": "keep"},
    {"webhook": "file:///etc/passwd"},
]


async def test_a_cron_that_cannot_be_is_refused(world: World) -> None:
    for unfit in UNFIT:
        with pytest.raises(InvalidRequestError):
            await world.crons.create(ALICE, CronRequest(**({"schedule": "0 * * * *"} | unfit)))
    assert (await world.crons.search(ALICE, CronQuery()))[1] == 0


async def test_a_change_that_cannot_be_changes_nothing(world: World) -> None:
    cron = await world.crons.create(ALICE, hourly())
    for unfit in ({"schedule": "61 * * * *"}, {"timezone": "?"}, {"webhook": "ftp://x"}, {"stream_mode": "sound"}):
        with pytest.raises(InvalidRequestError):
            await world.crons.update(ALICE, cron.cron_id, CronChanges(**unfit))
    assert await world.crons.get(ALICE, cron.cron_id) == cron


async def test_a_user_never_sees_or_changes_crons_of_another_one(world: World) -> None:
    cron = await world.crons.create(ALICE, hourly())
    with pytest.raises(NotFoundError):
        await world.crons.get(BOB, cron.cron_id)
    with pytest.raises(NotFoundError):
        await world.crons.update(BOB, cron.cron_id, CronChanges(enabled=False))
    with pytest.raises(NotFoundError):
        await world.crons.delete(BOB, cron.cron_id)
    assert await world.crons.search(BOB, CronQuery()) == ([], 0)
    assert await world.crons.get(ALICE, cron.cron_id) == cron


async def test_crons_are_found_by_what_they_are_and_in_order(world: World, database: Database) -> None:
    await thread(database, "t1")
    late = await world.crons.create(ALICE, CronRequest(schedule="0 23 * * *", metadata={"team": {"name": "a"}}))
    world.now += timedelta(seconds=1)
    off = await world.crons.create(ALICE, hourly(enabled=False))
    world.now += timedelta(seconds=1)
    soon = await world.crons.create(ALICE, hourly(), thread_id="t1")

    async def ids(query: CronQuery, **options: Any) -> list[str]:
        return [cron.cron_id for cron in (await world.crons.search(ALICE, query, ListPage(**options)))[0]]

    assert await ids(CronQuery()) == [soon.cron_id, off.cron_id, late.cron_id]
    by_next = {"sort_by": "next_run_date", "descending": False}
    assert await ids(CronQuery(), **by_next) == [soon.cron_id, late.cron_id, off.cron_id]
    assert await ids(CronQuery(), limit=1, offset=1) == [off.cron_id]
    assert await ids(CronQuery(thread_id="t1")) == [soon.cron_id]
    assert await ids(CronQuery(enabled=False)) == [off.cron_id]
    assert await ids(CronQuery(metadata={"team": {"name": "a"}})) == [late.cron_id]
    assert await ids(CronQuery(assistant_id=LEAD_AGENT_ID, enabled=True)) == [soon.cron_id, late.cron_id]
    with pytest.raises(InvalidRequestError):
        await ids(CronQuery(), sort_by="payload")


async def test_the_task_that_looks_at_crons_comes_again_when_one_is_due_and_after_a_failure(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def due_at() -> list[datetime]:
        query = select(job_table.c.due_at).where(job_table.c.kind == CRONS)
        return await database.read(lambda c: list(c.execute(query).scalars()))

    await world.scheduler.look()
    assert await due_at() == []
    await world.crons.create(ALICE, hourly())
    assert await due_at() == [START.replace(hour=9, minute=0)]
    world.now = START.replace(hour=9, minute=30)
    await world.scheduler.look()
    assert await due_at() == [START.replace(hour=10, minute=0)]

    async def fails() -> None:
        raise OSError("down")

    monkeypatch.setattr(world.scheduler, "tick", fails)
    await world.scheduler.look()
    assert await due_at() == [world.now + LOOK_AGAIN]


@asynccontextmanager
async def running(world: World) -> AsyncIterator[asyncio.Queue[str]]:
    """Scheduler and worker at work in this process."""
    fired: asyncio.Queue[str] = asyncio.Queue()

    async def start(principal: Principal, body: dict[str, Any], thread_id: str | None) -> None:
        fired.put_nowait(body["metadata"]["cron_run_date"])

    worker: JobWorker
    scheduler = Scheduler(world.database, start, lambda: worker.wake(), clock=world.clock)
    worker = JobWorker(world.database, {CRON: scheduler.fire, CRONS: scheduler.look})
    worker.start()
    world.crons = CronService(world.database, _assistants(world.database), worker.wake, clock=world.clock)
    try:
        yield fired
    finally:
        await worker.aclose(grace=5)


async def test_a_running_scheduler_notices_new_crons_and_the_time_that_passes(world: World) -> None:
    async with running(world) as fired, asyncio.timeout(60):
        world.now = START.replace(hour=8, minute=59, second=59, microsecond=900_000)
        cron = await world.crons.create(ALICE, hourly())
        world.now = START.replace(hour=9, minute=0)
        assert await fired.get() == "2026-05-04T09:00:00+00:00"
        world.now = START.replace(hour=10, minute=0)
        await world.crons.update(ALICE, cron.cron_id, CronChanges(metadata={"looked": True}))
        assert await fired.get() == "2026-05-04T10:00:00+00:00"
