"""What a process that dies between two steps leaves, and where conversations go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.harness.features.channels.turns.chat_house import CAPS, GROUP, PRIVATE, House, Platform
from tests.harness.features.channels.turns.test_turns import slow
from tests.harness.runs.run_house import say, thread

from deerflow.features.channels.outbox import OutboxRow, Target
from deerflow.features.channels.types import Author, Place
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.storage import sql
from deerflow.storage.tables import channel_outbox, utc_now

LOOK = ToolCalls(("ls", {"path": "/mnt/user-data", "description": "look"}))


async def test_an_answer_without_a_placeholder_comes_after_a_restart_too(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house(Platform(replace(CAPS, edits=False)))
    await house.bind()
    endpoint.script(slow("Whole"))
    await house.say("x")
    while not endpoint.requests:
        await asyncio.sleep(0.01)
    await house.die()
    again: House = await open_house(house.platform, runtime=house.runtime)
    await again.shows("Whole....................")
    await again.quiet()
    assert len(house.platform.messages) == 2 and len(endpoint.requests) == 1


async def test_a_message_that_was_handed_over_is_not_handed_over_again(
    open_house: Any, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Delay(2, LOOK), slow("Both heard"))
    await house.say("first")
    await house.shows("Working")
    reached = asyncio.Event()

    async def killed(*_: Any, **__: Any) -> Any:
        reached.set()
        await asyncio.Event().wait()

    turns: Any = house.channels.turns
    steer = turns._runs.steer

    async def handed_over_and_killed(*args: Any) -> Any:
        await steer(*args)
        return await killed()

    monkeypatch.setattr(turns._runs, "steer", handed_over_and_killed)
    second = await house.say("and in French")
    await reached.wait()
    await house.die()
    again: House = await open_house(house.platform, runtime=house.runtime)
    await again.shows("Both heard....................")
    await again.quiet()
    said = [message["content"] for message in endpoint.requests[-1]["messages"] if message["role"] == "user"]
    assert sum("and in French" in str(text) for text in said) == 1 and len(endpoint.requests) == 2
    assert await again.scalar("SELECT state FROM channel_inbox WHERE message_id = ?", second) in ("answered", "steered")


async def test_a_run_with_a_chosen_id_is_started_once(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    runs, where = house.runtime.runs, await thread(house.runtime)
    endpoint.script(Text("Once."), Text("Twice."))
    first = await runs.start(LOCAL_PRINCIPAL, say("go"), thread_id=where, run_id="chosen")
    second = await runs.start(LOCAL_PRINCIPAL, say("go"), thread_id=where, run_id="chosen")
    await runs.wait(LOCAL_PRINCIPAL, "chosen")
    assert first.run_id == second.run_id == "chosen" and len(endpoint.requests) == 1


async def test_replies_in_a_group_stay_in_the_thread_that_a_message_began(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house(kind="telegram")
    await house.bind()
    endpoint.script(*(Text(f"Answer {number}.") for number in range(4)))
    first = await house.say("one", place=GROUP)
    answer = await house.shows("Answer 0.")
    await house.quiet()
    await house.say("two", place=GROUP, reply_to=answer.id)
    await house.shows("Answer 1.")
    await house.quiet()
    await house.say("three", place=GROUP, reply_to=first)
    await house.shows("Answer 2.")
    await house.quiet()
    assert len(await house.threads()) == 1
    await house.say("four", place=GROUP)
    await house.shows("Answer 3.")
    assert len(await house.threads()) == 2


async def test_what_came_too_late_is_answered_on_demand(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Late, but here."))
    await house.say("old", sent_at=utc_now() - timedelta(hours=2))
    await house.quiet()
    assert not endpoint.requests
    await house.say("run")
    await house.shows("Late, but here.")


async def test_an_answer_that_cannot_be_sent_is_named_in_another_chat_of_the_person(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    await house.bind(Author("ann2"))
    await house.say("/status", Author("ann2"), Place("p-ann2", is_private=True))
    endpoint.script(Text("Lost."))
    await house.say("hello", place=GROUP)
    await house.shows("Lost.")
    await house.quiet()
    database = house.runtime.database

    def given_up(connection: Any) -> None:
        tail = "WHERE chat = 'g1' ORDER BY id DESC"
        row = sql.first(connection, OutboxRow, channel_outbox, tail)
        assert row is not None and isinstance(row.target, Target)
        house.channels.reception.undelivered(connection, row)

    await database.write(given_up)
    await database.write(given_up)
    house.channels.engine.outbox.wake(house.id)
    notice = await house.shows("could not be sent to Team")
    await house.quiet()
    assert notice.place.chat == "p-ann2"
    assert len([text for text in house.platform.texts() if "could not be sent" in text]) == 1


async def test_a_restarted_channel_has_the_settings_of_now(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    from deerflow.features.channels.config import channels_config, connections_config

    house: House = await open_house()
    await house.bind()
    service: Any = house.channels.service

    async def configs() -> Any:
        return channels_config({"slack": {"enabled": True, "allowed_users": ["carol"]}}), connections_config({})

    service._configs = configs
    await service.restart(LOCAL_PRINCIPAL, house.id)
    await house.say("hello", place=PRIVATE)
    async with asyncio.timeout(30):
        while await house.scalar("SELECT why FROM channel_inbox ORDER BY id DESC") != "not on the allow-list":
            await asyncio.sleep(0.02)
    assert not endpoint.requests
