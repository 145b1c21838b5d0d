"""Following a thread: nothing lost, nothing twice, whatever the client has seen already."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from deerflow.errors import NotFoundError
from deerflow.events.hub import Hub
from deerflow.events.log import EventLog
from deerflow.events.streams.agent_protocol import SLOTS
from deerflow.events.writer import EventWriter
from deerflow.identity import Principal
from deerflow.runs.protocol_stream import ProtocolStreams, Subscription
from deerflow.runs.service import RunService
from deerflow.storage.database import Database
from deerflow.storage.runs import Ending, MultitaskStrategy, NewRun, Run, RunStatus, RunStore, finish
from deerflow.storage.threads import ThreadRepository

ME = Principal("me", "user", "session")
EVERYTHING = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"]
NODE = {"langgraph_node": "model"}
THREAD = "t1"


class States:
    """A thread's state without a graph."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {"messages": [], "title": "Stored"}

    async def get(self, principal: Principal, thread_id: str) -> dict[str, Any]:
        return {"values": self.stored}


class World:
    """Rows and log of one thread, as the executor writes them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = RunStore(database)
        self.threads = ThreadRepository(database)
        self.log = EventLog(database)
        self.states = States()
        nobody = cast(Any, None)
        self.runs = RunService(
            database=database,
            runs=self.store,
            threads=self.threads,
            transcript=nobody,
            log=self.log,
            queue=nobody,
            executor=nobody,
            uploads_dir=lambda user, thread: Path(),
            graph=nobody,
            called=nobody,
            config=nobody,
            capabilities=nobody,
            resolve=nobody,
            observer=nobody,
        )
        self.hub = Hub()
        self.streams = ProtocolStreams(self.runs, self.log, cast(Any, self.states), self.hub)

    async def pending(self, thread_id: str = THREAD, **request: Any) -> Run:
        kwargs = {"request": {"assistant_id": "lead_agent", **request}}
        run_id = str(uuid.uuid4())
        new = NewRun(run_id, thread_id, ME.user_id, "lead_agent", kwargs, {}, MultitaskStrategy.ENQUEUE)
        return (await self.store.create(new)).run

    async def claimed(self, run: Run | None = None, **request: Any) -> tuple[Run, EventWriter]:
        run = run or await self.pending(**request)
        claimed = await self.store.claim(run.run_id, "worker")
        assert claimed is not None
        writer = self.log.writer(claimed.thread_id, claimed.run_id, claimed.epoch)
        writer.append(
            "metadata", {"run_id": claimed.run_id, "thread_id": claimed.thread_id, "attempt": claimed.attempt}
        )
        return claimed, writer

    async def end(self, run: Run, writer: EventWriter, status: RunStatus = RunStatus.SUCCESS) -> None:
        ending = Ending(status=status, checkpoint_after=f"after-{run.epoch}")
        assert await writer.end({"status": status.value}, lambda connection: finish(connection, run, ending))
        await writer.aclose()

    async def said(self, *texts: str, id_: str = "m1", status: RunStatus = RunStatus.SUCCESS) -> Run:
        """A run from its start to its end."""
        run, writer = await self.claimed()
        say(writer, *texts, id_=id_)
        await self.end(run, writer, status)
        return run

    async def follow(
        self, since: int = 0, channels: list[str] | None = None, heartbeat: float = 0.2
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        wanted = Subscription(channels=channels or EVERYTHING)
        return await self.streams.open(ME, THREAD, wanted, since=since, heartbeat=heartbeat)

    async def seen(self, since: int = 0, channels: list[str] | None = None) -> list[dict[str, Any]]:
        """What there is to tell now."""
        told: list[dict[str, Any]] = []
        async with aclosing(await self.follow(since, channels)) as events:
            async for batch in events:
                if not batch:
                    return told
                told += batch
        return told


@pytest.fixture
async def world(database: Database) -> AsyncGenerator[World, None]:
    made = World(database)
    await made.threads.create(ME, THREAD)
    yield made
    await made.log.aclose()


def say(writer: EventWriter, *texts: str, id_: str = "m1") -> None:
    for text in texts:
        writer.append("messages", [{"type": "AIMessageChunk", "id": id_, "content": text}, NODE])


def methods(events: list[dict[str, Any]]) -> list[str]:
    return [event["method"] for event in events]


def data_of(events: list[dict[str, Any]], method: str) -> list[Any]:
    return [event["params"]["data"] for event in events if event["method"] == method]


def runs_told(events: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(event["event_id"].split(":")[1] for event in events if event["method"] == "lifecycle"))


def text_of(events: list[dict[str, Any]]) -> str:
    deltas = (data for data in data_of(events, "messages") if data["event"] == "content-block-delta")
    return "".join(data["delta"]["text"] for data in deltas)


async def test_who_cuts_the_line_anywhere_and_goes_on_from_there_gets_everything_once(world: World) -> None:
    run, writer = await world.claimed()
    say(writer, "Hello ", "wide ", "world")
    await world.end(run, writer)
    everything = await world.seen()

    for index, event in enumerate(everything):
        rest = await world.seen(since=event["seq"])
        assert [later["event_id"] for later in rest] == [later["event_id"] for later in everything[index + 1 :]]
    assert text_of(everything) == "Hello wide world"


async def test_what_is_said_live_has_the_ids_that_it_has_in_a_replay(world: World) -> None:
    run, writer = await world.claimed()
    live: list[dict[str, Any]] = []
    async with aclosing(await world.follow()) as events:
        live += await anext(events)
        for text in ("a", "b"):
            say(writer, text)
            live += await anext(events)
        await world.end(run, writer)
        while not any(event["event_id"].startswith(f"synth:{run.run_id}") for event in live[1:]):
            live += await anext(events)

    assert [event["event_id"] for event in live] == [event["event_id"] for event in await world.seen()]


async def test_silence_is_told_by_empty_lists_even_while_others_get_events(world: World) -> None:
    _, writer = await world.claimed()
    async with aclosing(await world.follow(channels=["custom"])) as events:
        for _ in range(3):
            say(writer, "not for you")
            assert await anext(events) == []


async def test_without_a_position_the_newest_run_is_told(world: World) -> None:
    await world.said("older")
    newest = await world.said("newest", id_="m2")

    assert runs_told(await world.seen()) == [newest.run_id]


async def test_what_is_on_its_way_is_told_without_what_ended_before(world: World) -> None:
    await world.said("older")
    waiting = await world.pending()
    assert await world.seen() == []

    await world.claimed(waiting)
    assert runs_told(await world.seen()) == [waiting.run_id]


async def test_who_only_watches_does_not_hear_of_runs_that_are_over(world: World) -> None:
    await world.said("old")
    assert await world.seen(channels=["lifecycle", "input"]) == []

    run, _ = await world.claimed()
    assert runs_told(await world.seen(channels=["lifecycle", "input"])) == [run.run_id]


async def test_who_watches_a_thread_that_a_quick_run_has_just_made_hears_of_its_end(world: World) -> None:
    run, writer = await world.claimed(await world.pending(if_not_exists="create"))
    say(writer, "done already")
    await world.end(run, writer)

    events = await world.seen(channels=["lifecycle", "input"])

    assert runs_told(events) == [run.run_id] and methods(events)[-1] == "lifecycle"


async def test_once_its_maker_has_left_a_thread_others_who_watch_wait_for_a_run_of_their_own(world: World) -> None:
    run, writer = await world.claimed(await world.pending(if_not_exists="create"))
    async with aclosing(
        await world.follow(channels=["lifecycle"])
    ) as unread:  # the SDK gives up what is slow to open, and tries again
        await anext(unread)
        await world.end(run, writer)
        await anext(unread)
        assert runs_told(await world.seen(channels=["lifecycle"])) == [run.run_id]
    assert runs_told(await world.seen(channels=["lifecycle"])) == []


async def test_who_only_watches_hears_of_a_question_that_waits_for_an_answer(world: World) -> None:
    run, writer = await world.claimed()
    writer.append("updates", {"__interrupt__": [{"id": "i1", "value": "Sure?"}]})
    await world.end(run, writer, RunStatus.INTERRUPTED)

    events = await world.seen(channels=["lifecycle", "input"])

    assert methods(events) == ["lifecycle", "input.requested", "lifecycle"]


async def test_values_of_the_past_are_not_told(world: World) -> None:
    for id_ in ("m1", "m2"):
        run, writer = await world.claimed()
        writer.values({"messages": []})
        say(writer, "x", id_=id_)
        await world.end(run, writer)

    events = await world.seen()

    assert data_of(events, "values") == [world.states.stored]
    assert methods(events)[-3:] == ["checkpoints", "values", "lifecycle"]
    assert data_of(events, "checkpoints") == [{"id": "after-2"}]


async def test_live_values_are_those_of_the_run_and_only_told_when_more_than_messages_changed(world: World) -> None:
    run, writer = await world.claimed()
    await world.store.began(run, "before")
    told: list[Any] = []
    async with aclosing(await world.follow(channels=["values", "checkpoints"])) as events:
        for values in (
            {"messages": [1], "title": "A"},
            {"messages": [1, 2], "title": "A"},
            {"messages": [1, 2], "title": "B"},
        ):
            writer.values(values)
            told += await anext(events)

    assert data_of(told, "values") == [{"messages": [1], "title": "A"}, {"messages": [1, 2], "title": "B"}]
    assert data_of(told, "checkpoints") == [{"id": "before", "parent_id": "before"}]


async def test_a_run_that_forks_names_the_checkpoint_it_forks_from(world: World) -> None:
    run, writer = await world.claimed(checkpoint_id="forked-from")
    await world.store.began(run, "head")
    writer.values({"messages": []})

    assert data_of(await world.seen(), "checkpoints") == [{"id": "forked-from", "parent_id": "forked-from"}]


async def test_other_screens_learn_which_questions_a_run_answers(world: World) -> None:
    id_ = "0123456789abcdef0123456789abcdef"
    await world.claimed(command={"resume": {id_: "yes", "note": "no id"}})

    assert data_of(await world.seen(), "input.answered") == [{"interrupt_ids": [id_]}]


async def test_a_run_that_was_cancelled_before_its_turn_is_told_to_have_ended(world: World) -> None:
    async with aclosing(await world.follow()) as events:
        assert await anext(events) == []
        waiting = await world.pending()
        assert await anext(events) == []
        await world.store.request_cancel(waiting.run_id, "interrupt")
        (told,) = await anext(events)
        assert await anext(events) == []

    assert told["event_id"].startswith(f"synth:{waiting.run_id}:")
    assert told["params"]["data"]["event"] == "interrupted"


async def test_the_position_of_a_command_lies_between_the_past_and_what_it_starts(world: World) -> None:
    assert await world.streams.position(ME, THREAD) == 0
    await world.said("one")
    past = await world.seen()
    position = await world.streams.position(ME, THREAD)
    started = await world.said("two", id_="m2")

    assert max(event["seq"] for event in past) <= position < 2**53
    assert runs_told(await world.seen(since=position)) == [started.run_id]


async def test_the_position_during_a_run_does_not_skip_what_the_run_has_yet_to_say(world: World) -> None:
    run, writer = await world.claimed()
    say(writer, "one")
    position = await world.streams.position(ME, THREAD)

    assert position < run.epoch * 100_000_000 * SLOTS
    assert text_of(await world.seen(since=position)) == "one"


async def test_nobody_follows_a_thread_of_somebody_else(world: World) -> None:
    other = Principal("you", "admin", "session")
    with pytest.raises(NotFoundError):
        await world.streams.open(other, THREAD, Subscription(channels=["values"]))


async def test_following_ends_with_its_thread(world: World) -> None:
    await world.claimed()
    async with aclosing(await world.follow()) as events:
        await anext(events)
        await world.log.delete(THREAD)
        assert [batch async for batch in events if batch] == []


# before the thread is there ---------------------------------------------------------------------------------------------


async def test_who_comes_before_the_thread_is_told_its_first_run_from_the_start(world: World) -> None:
    wanted = Subscription(channels=["lifecycle"])
    async with aclosing(await world.streams.open(ME, "later", wanted, heartbeat=0.01, waits=True)) as events:
        assert await anext(events) == []
        await world.threads.create(ME, "later")
        run, writer = await world.claimed(thread_id="later")
        await world.end(run, writer)
        told: list[str] = []
        async for batch in events:
            told += [event["params"]["data"]["event"] for event in batch]
            if "completed" in told:
                break
    assert told == ["running", "completed"]


async def test_the_start_of_a_run_wakes_who_waits_for_its_thread(world: World) -> None:
    wanted = Subscription(channels=["lifecycle"])
    async with aclosing(await world.streams.open(ME, "later", wanted, heartbeat=600, waits=True)) as events:
        first = asyncio.ensure_future(anext(events))
        while not world.hub._subscribers:
            await asyncio.sleep(0)
        await world.threads.create(ME, "later")
        await world.claimed(thread_id="later")
        world.hub.publish(ME.user_id, {"type": "runs", "thread_id": "later"})
        async with asyncio.timeout(60):
            assert [event["params"]["data"]["event"] for event in await first] == ["running"]


async def test_a_foreign_thread_is_refused(world: World) -> None:
    someone = Principal("someone", "user", "session")
    await world.said("Secret.")
    with pytest.raises(NotFoundError):
        await world.streams.open(someone, THREAD, Subscription(channels=EVERYTHING), waits=True)
