"""Responses are kept: they can be read, stopped and deleted later, from elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from bench.scripted_openai import Delay, HttpError, ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway, WithRuntime
from tests.app.gateway.openai.conftest import threads


async def until(client: openai.AsyncOpenAI, response_id: str, *statuses: str) -> Any:
    async with asyncio.timeout(30):
        while (found := await client.responses.retrieve(response_id)).status not in statuses:
            assert found.output == [] and found.usage is None
            await asyncio.sleep(0.02)
    return found


async def asked(scripted: ScriptedOpenAI, times: int) -> None:
    async with asyncio.timeout(30):
        while len(scripted.requests) < times:
            await asyncio.sleep(0.02)


async def test_a_response_in_the_background_is_read_later(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(Delay(0.3, ToolCalls(("bash", {"command": "echo 1"}), text="Let me see.")), Text("It is one."))
    said = [
        {"role": "user", "content": "Count"},
        {"role": "assistant", "content": "What?"},
        {"role": "user", "content": [{"type": "input_text", "text": "This"}]},
    ]
    begun = await client.responses.create(
        model="lead_agent", input=said, instructions="Be brief.", background=True, metadata={"mine": "1"}
    )
    assert begun.status in ("queued", "in_progress") and begun.background is True and begun.output_text == ""
    read = await until(client, begun.id, "completed")
    assert read.output_text == "Let me see.\n\nIt is one." and read.usage.total_tokens > 0
    assert (read.id, read.model, read.instructions) == (begun.id, "lead_agent", "Be brief.")
    assert read.metadata == {"mine": "1"} and read.created_at == begun.created_at

    items = [item async for item in client.responses.input_items.list(begun.id, order="asc")]
    assert [(item.role, item.content[0].text) for item in items] == [
        ("user", "Count"),
        ("assistant", "What?"),
        ("user", "This"),
    ]
    newest = await client.responses.input_items.list(begun.id, limit=1)
    assert newest.data == items[2:] and newest.has_more is True
    rest = await client.responses.input_items.list(begun.id, after=newest.data[0].id)
    assert rest.data == items[1::-1] and rest.has_more is False

    events = [event async for event in await client.responses.retrieve(begun.id, stream=True)]
    assert events[-1].response.output_text == read.output_text
    later = [event async for event in await client.responses.retrieve(begun.id, stream=True, starting_after=5)]
    assert [event.sequence_number for event in later] == list(range(6, len(events)))

    await client.responses.delete(begun.id)
    for gone in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            await gone(begun.id)
    assert len(await threads(gateway)) == 1


async def test_a_response_is_stopped_and_says_so(client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    scripted.script(Delay(60, Text("Never.")))
    begun = await client.responses.create(model="lead_agent", input="Wait", background=True)
    await asked(scripted, 1)
    assert (await client.responses.cancel(begun.id)).status == "cancelled"
    assert (await client.responses.cancel(begun.id)).status == "cancelled", "twice is once"
    assert (await client.responses.retrieve(begun.id)).status == "cancelled"

    scripted.script(Delay(60, Text("Never.")))
    begun = await client.responses.create(model="lead_agent", input="Wait", background=True)
    await asked(scripted, 2)
    await client.responses.delete(begun.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(begun.id)

    scripted.script(*[HttpError(401)] * 3)
    begun = await client.responses.create(model="lead_agent", input="Fail", background=True)
    failed = await until(client, begun.id, "failed")
    assert failed.error.code == "server_error" and failed.error.message


async def test_leaving_a_stream_in_the_background_does_not_stop_it(
    client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(Delay(0, Text("one two three four five six"), between=0.05))
    stream = await client.responses.create(model="lead_agent", input="Talk", background=True, stream=True)
    seen = []
    async for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    again = await client.responses.retrieve(seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number)
    events = [*seen, *[event async for event in again]]
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert said == events[-1].response.output_text == "one two three four five six"
    assert events[-1].type == "response.completed"


async def test_a_response_outlives_its_gateway(with_runtime: WithRuntime, scripted: ScriptedOpenAI):
    scripted.script(Text("Kept."))
    async with with_runtime(memory={"enabled": False}) as first:
        token = await token_of(first)
        client = client_of(first, token)
        kept = await client.responses.create(model="lead_agent", input="Keep")
        scripted.script(Delay(0.5, Text("At last.")), Text("At last."))
        begun = await client.responses.create(model="lead_agent", input="Go on", background=True)
    async with with_runtime(memory={"enabled": False}) as again:
        client = client_of(again, token)
        assert (await client.responses.retrieve(kept.id)).output_text == "Kept."
        assert (await until(client, begun.id, "completed")).output_text == "At last."


async def test_a_response_is_read_and_stopped_at_another_gateway(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI, migrated_url: str
):
    shared = {"memory": {"enabled": False}, "database": {"backend": "postgres", "postgres_url": migrated_url}}
    async with with_runtime(**shared) as first, with_runtime(**shared) as second:
        await first.populate()
        token = await token_of(first)
        one, two = client_of(first, token), client_of(second, token)
        scripted.script(Text("Across."))
        begun = await one.responses.create(model="lead_agent", input="Hi", background=True)
        assert (await until(two, begun.id, "completed")).output_text == "Across."
        scripted.script(Delay(60, Text("Never.")))
        begun = await one.responses.create(model="lead_agent", input="Wait", background=True)
        await asked(scripted, 2)
        assert (await two.responses.cancel(begun.id)).status == "cancelled"
        assert (await one.responses.retrieve(begun.id)).status == "cancelled"


async def token_of(gateway: Gateway) -> str:
    made = await gateway.user.post("/api/v1/auth/tokens", json={"name": "t", "scopes": ["read", "write"]})
    return made.json()["token"]


def client_of(gateway: Gateway, token: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=token, max_retries=0)


async def test_a_response_whose_events_are_forgotten_is_read_from_its_thread(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(ToolCalls(("bash", {"command": "echo 1"}), text="Let me see."), Text("It is one."))
    made = await client.responses.create(model="lead_agent", input="Count", conversation="old")
    await gateway.runtime.event_log.delete("old", made.id.removeprefix("resp_"))
    found = await client.responses.retrieve(made.id)
    assert (found.status, found.output_text) == ("completed", made.output_text)
    assert found.usage.total_tokens == made.usage.total_tokens


async def test_responses_of_others_are_not_there(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(Text("Mine."))
    mine = await client.responses.create(model="lead_agent", input="Hi")
    made = await gateway.admin.post("/api/v1/auth/tokens", json={"name": "t", "scopes": ["read", "write"]})
    other = client.with_options(api_key=made.json()["token"])
    for there in (other.responses.retrieve, other.responses.cancel, other.responses.delete):
        with pytest.raises(openai.NotFoundError):
            await there(mine.id)
    with pytest.raises(openai.NotFoundError):
        await other.responses.input_items.list(mine.id)
    assert (await client.responses.retrieve(mine.id)).output_text == "Mine."
