"""A schedule whose thread is that of a chat brings its answers there."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from bench.scripted_openai import Delay, ScriptedOpenAI, Text
from tests.harness.features.channels.turns.chat_house import GROUP, PRIVATE, House
from tests.harness.features.channels.turns.test_turns import slow

from deerflow.features.schedules.service import CronRequest
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.storage import sql
from deerflow.storage.tables import utc_now


async def due(house: House, thread_id: str | None) -> None:
    """Let a schedule of the thread begin a run now."""
    said = {"messages": [{"role": "user", "content": "Is it green?"}]}
    await house.runtime.crons.create(
        LOCAL_PRINCIPAL, CronRequest(schedule="0 5 1 1 *", assistant_id="lead_agent", input=said), thread_id=thread_id
    )
    past = utc_now() - timedelta(minutes=1)
    await house.runtime.database.write(sql.change, "UPDATE crons SET next_run_at = ?", past)
    await house.runtime._scheduler.look()


async def test_a_scheduled_run_is_shown_where_its_chat_is_and_in_the_next_process_too(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Hello."), Delay(1, slow("Green")), Text("Again."))
    await house.say("hi", place=GROUP)
    await house.shows("Hello.")
    await house.quiet()
    (thread_id,) = await house.threads()
    await due(house, thread_id)
    first = await house.shows("Working")
    await house.die()
    again: House = await open_house(house.platform, runtime=house.runtime)
    shown = await again.shows("Green....................")
    await again.quiet()
    assert (shown.place, shown.id) == (GROUP, first.id) and len(endpoint.requests) == 2
    await again.say("and now?", place=GROUP)
    await again.shows("Again.")
    assert len(await again.threads()) == 1


async def test_a_scheduled_run_of_another_thread_is_not_shown(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Hello."), Text("Secret."))
    await house.say("hi", place=PRIVATE)
    await house.shows("Hello.")
    await due(house, None)
    while len(endpoint.requests) < 2:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert "Secret." not in str(house.platform.texts())
