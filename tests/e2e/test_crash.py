"""Nothing is lost and nothing is done twice when processes are killed, at random moments and at delicate ones.

``python -m tests.e2e.crash`` does the first with as many kills as you like.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.crash import Ordeal
from tests.e2e.crash_client import Body, Client, Followed, text_of
from tests.e2e.crash_endpoint import CallsEndpoint, line, task
from tests.e2e.crash_world import World, until, world
from tests.servers import PostgresServer
from tests.support.gateway_process import GatewayProcess

KILLS = {"embedded": 4, "scaled": 3}
STEERING = "In French, please."
CALLS = 10
MANY = 40
"""More than are done before somebody stops it."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[CallsEndpoint]:
    with CallsEndpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module", params=["embedded", "scaled"])
def victim(
    request: pytest.FixtureRequest,
    endpoint: CallsEndpoint,
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    root = tmp_path_factory.mktemp(request.param)
    if request.param == "embedded":
        with world(root, endpoint, None) as made:
            yield made
    else:
        with postgres.fresh_database() as url, world(root, endpoint, url) as made:
            yield made


@pytest.mark.timeout(900)
async def test_runs_come_to_their_right_end_however_often_processes_are_killed(victim: World):
    kills = KILLS["scaled" if len(victim.processes) > 1 else "embedded"]
    found = await Ordeal(victim, kills=kills, seed=7, at_once=2, calls=CALLS).suffer()
    assert found.failures == []
    assert found.attempts > found.runs


# one power failure, at moments that matter ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aftermath:
    """What had been asked for when everything was killed, and followed to its end afterwards."""

    world: World
    first: Followed
    second: Followed
    """Had waited for the first one's end."""
    steered: Followed
    cancelled: Followed
    deleted: list[str]
    """Threads: one that was idle, one with a run."""


@pytest.fixture(scope="module")
def aftermath(victim: World) -> Aftermath:
    return asyncio.run(_power_failure(victim))


async def _power_failure(victim: World) -> Aftermath:
    client = Client(victim.gateway.url)
    try:
        idle, busy, steered, cancelled, queued = [await client.new_thread() for _ in range(5)]
        await client.follow(await client.start_run(idle, "Hello!"))
        runs = {each: await client.start_run(each, task(MANY)) for each in (busy, cancelled, steered)}
        first = await client.start_run(queued, task(CALLS))
        second = await client.start_run(queued, "Thank you!", multitask_strategy="enqueue")
        await until(lambda: all(victim.lines(thread_id) for thread_id in runs))
        steering = {"message": {"role": "user", "content": STEERING}}
        (await client.request("POST", f"/api/threads/{steered}/steer", steering)).raise_for_status()
        cancellation = f"/api/threads/{cancelled}/runs/{runs[cancelled].run_id}/cancel"
        deletions = [
            asyncio.create_task(client.once("DELETE", f"/api/threads/{thread_id}")) for thread_id in (idle, busy)
        ]
        (await client.request("POST", cancellation)).raise_for_status()
        for name in victim.processes:
            victim.kill(name)
        await asyncio.gather(*deletions)
        for name in victim.processes:
            victim.launch(name)
        for name in victim.processes:
            await victim.ready(name, client)
        for followed in (first, second, runs[steered], runs[cancelled]):
            await client.follow(followed)
        return Aftermath(victim, first, second, runs[steered], runs[cancelled], [idle, busy])
    finally:
        await client.aclose()


@pytest.fixture
async def client(victim: World) -> AsyncIterator[Client]:
    made = Client(victim.gateway.url)
    yield made
    await made.aclose()


async def test_what_was_queued_behind_a_killed_run_is_executed_after_it(aftermath: Aftermath, client: Client):
    assert (await client.run(aftermath.first))["status"] == "success"
    assert (await client.run(aftermath.second))["status"] == "success"
    said = [text_of(message) for message in await _people_in(client, aftermath.first)]
    assert said == [task(CALLS), "Thank you!"]
    assert await _goes_on(client, aftermath.first)


async def test_a_message_for_a_run_that_was_killed_then_is_taken_up_once(aftermath: Aftermath, client: Client):
    assert (await client.run(aftermath.steered))["status"] == "success"
    said = [text_of(message) for message in await _people_in(client, aftermath.steered)]
    assert said == [task(MANY), STEERING]
    assert await _goes_on(client, aftermath.steered)


async def test_a_run_that_was_to_stop_is_not_gone_on_with(aftermath: Aftermath, client: Client):
    thread_id = aftermath.cancelled.thread_id
    assert (await client.run(aftermath.cancelled))["status"] == "interrupted"
    assert line(MANY) not in aftermath.world.lines(thread_id)
    state = await client.json(f"/api/threads/{thread_id}/state")
    assert state["next"] == [] and state["tasks"] == []
    messages = state["values"]["messages"]
    called = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert called == [message["tool_call_id"] for message in messages if message["type"] == "tool"]
    assert await _goes_on(client, aftermath.cancelled)


@pytest.mark.parametrize("which", [0, 1], ids=["idle", "busy"])
async def test_a_thread_whose_deletion_was_cut_off_is_gone_or_can_be_deleted_again(
    aftermath: Aftermath, client: Client, which: int
):
    thread_id = aftermath.deleted[which]
    answer = await client.request("GET", f"/api/threads/{thread_id}")
    if answer.status_code != 404:
        (await client.request("DELETE", f"/api/threads/{thread_id}")).raise_for_status()
        assert (await client.request("GET", f"/api/threads/{thread_id}")).status_code == 404
    await until(lambda: not aftermath.world.thread_dir(thread_id).exists())


def test_no_process_of_a_killed_one_is_left(aftermath: Aftermath):
    """Neither a command nor the sandbox it ran in."""
    aftermath.world.close()
    asyncio.run(until(lambda: not aftermath.world.left_behind()))


async def _people_in(client: Client, followed: Followed) -> list[Body]:
    return [message for message in await client.messages(followed.thread_id) if message["type"] == "human"]


async def _goes_on(client: Client, followed: Followed) -> bool:
    following = await client.follow(await client.start_run(followed.thread_id, "And now?"))
    return (await client.run(following))["status"] == "success"


def test_a_first_start_that_is_killed_while_it_makes_the_tables_is_made_good_by_the_next(tmp_path: Path):
    with GatewayProcess(tmp_path) as gateway:
        gateway.launch()
        asyncio.run(until(lambda: any(gateway.home.glob("data/*.db"))))
        gateway.kill()
        gateway.start()
        with gateway.client() as client:
            assert client.post("/api/threads", json={}).status_code == 200
