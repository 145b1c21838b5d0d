"""What only Slack has: links that are replaced, two events for one text, marked-up text, steps of an upload, scopes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request
from tests.contracts.channels.receiver import Receiver
from tests.support.channels.slack_double import ANN, BEN, CHANNEL, PRIVATE, ROBOT, TEAM, US, SlackDouble

from deerflow.features.channels.types import (
    Author,
    Button,
    FileRef,
    Inbound,
    Misconfigured,
    OutFile,
    Part,
    Place,
    Refused,
    Uncertain,
    Unreachable,
)
from deerflow_app.channels.adapters.slack import Slack
from deerflow_app.channels.adapters.slack_messages import shown


@pytest.fixture
async def double() -> AsyncIterator[SlackDouble]:
    async with SlackDouble() as entered:
        yield entered


@pytest.fixture
async def adapter(double: SlackDouble) -> AsyncIterator[Slack]:
    made = Slack(double.bot_token, double.app_token, base_url=double.api)
    await made.identify()
    yield made
    await made.aclose()


async def received(double: SlackDouble, adapter: Slack, channel: str = CHANNEL, **event: Any) -> list[Inbound]:
    """Return what arrives of one event."""
    async with Receiver(adapter) as receiver:
        await double.write(channel, **event)
        await double.write(text="last")
        await receiver.until(lambda: receiver.messages and receiver.messages[-1].text == "last")
    return receiver.messages[:-1]


async def test_the_next_link_stands_before_the_old_one_ends(double: SlackDouble, adapter: Slack):
    async with Receiver(adapter) as receiver:
        old = await double.refresh()
        await receiver.until(lambda: len(double.links) == 2 and receiver.connects == 2)
        assert old.is_open
        double.links.reverse()  # an event on the link that ends
        await double.write(text="on the old link")
        await receiver.until(lambda: len(receiver.messages) == 1 and not double.waiting)
        double.links.reverse()
        await old.close()
        await double.write(text="on the new link")
        await receiver.until(lambda: len(receiver.messages) == 2 and not double.waiting)

    assert receiver.ends == []


async def test_an_event_is_acknowledged_only_after_it_is_stored(double: SlackDouble, adapter: Slack):
    stored, may_store = asyncio.Event(), asyncio.Event()

    async def accept(events: Any, cursor: Any) -> None:
        stored.set()
        await may_store.wait()

    listening = asyncio.create_task(adapter.listen(accept, "", lambda: None))
    await double.write(text="x")
    async with asyncio.timeout(5):
        await stored.wait()
    await asyncio.sleep(0.05)
    assert double.acknowledged == []

    may_store.set()
    async with asyncio.timeout(5):
        while not double.acknowledged:
            await asyncio.sleep(0.01)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_what_brings_no_event_is_acknowledged_too(double: SlackDouble, adapter: Slack):
    async with Receiver(adapter) as receiver:
        await double.deliver("slash_commands", {"command": "/deer", "user_id": ANN})
        await double.deliver("events_api", {"type": "event_callback", "event": {"type": "message"}})
        await receiver.until(lambda: not double.waiting)


async def test_a_mention_comes_twice_under_one_id(double: SlackDouble, adapter: Slack):
    first, second = await received(double, adapter, text=f"<@{US}> hi")

    assert first == second and first.is_mention


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a &lt;@UBOT&gt; &amp;lt; b", "a <@UBOT> &lt; b"),
        (
            "see <https://x.org/?a=1&amp;b=2|the page> and <https://x.org>",
            "see the page (https://x.org/?a=1&b=2) and https://x.org",
        ),
        ("<@U2> in <#C2|general> and <!here>", "@U2 in #general and @here"),
        ("<!subteam^S1|@team> on <!date^1^{date}|1 May>", "@team on 1 May"),
        (f"<@{US}|deer> /new <@{US}>", "/new @UBOT"),
    ],
)
async def test_text_loses_slacks_marks(double: SlackDouble, adapter: Slack, text: str, expected: str):
    assert {message.text for message in await received(double, adapter, text=text)} == {expected}


@pytest.mark.parametrize("subtype", ["bot_message", "message_changed", "message_deleted", "channel_join"])
async def test_only_what_people_write_arrives(double: SlackDouble, adapter: Slack, subtype: str):
    assert await received(double, adapter, text="x", subtype=subtype) == []


async def test_our_own_messages_are_dropped(double: SlackDouble, adapter: Slack):
    assert await received(double, adapter, text="x", user=US) == []


async def test_a_shared_message_is_quoted(double: SlackDouble, adapter: Slack):
    (message,) = await received(
        double, adapter, text="look", attachments=[{"is_share": True, "text": "their &lt;words&gt;"}]
    )

    assert (message.text, message.quoted) == ("look", "their <words>")


async def test_threads_of_channels_and_of_private_chats(double: SlackDouble, adapter: Slack):
    (in_channel,) = await received(double, adapter, text="x")
    (in_private,) = await received(double, adapter, PRIVATE, text="x")
    (in_thread,) = await received(double, adapter, PRIVATE, text="x", thread_ts="1.000001")

    assert (in_channel.place.topic, in_private.place.topic, in_thread.place.topic) == (
        in_channel.wake["ts"],
        "",
        "1.000001",
    )


async def test_a_person_of_another_workspace_keeps_it(double: SlackDouble, adapter: Slack):
    (message,) = await received(double, adapter, text="x", user_team="T2")

    assert (message.author.workspace, message.message_id.split(":")[0]) == ("T2", TEAM)


async def test_a_persons_time_zone_is_that_of_their_profile(double: SlackDouble, adapter: Slack):
    double.zones[ANN] = "Asia/Tokyo"
    zones = [await adapter.time_zone(Author(person, TEAM)) for person in (ANN, BEN, "U9")]
    double.error = {"error": "missing_scope", "needed": "users:read", "provided": "chat:write"}

    assert [*zones, await adapter.time_zone(Author(ROBOT, TEAM))] == ["Asia/Tokyo", "", "", ""]


async def test_a_persons_time_zone_is_asked_once_an_hour(double: SlackDouble, adapter: Slack):
    double.zones[ANN] = "Asia/Tokyo"
    people = [Author(ANN, TEAM), Author("U9", TEAM)]
    first = [await adapter.time_zone(person) for person in people * 3]
    double.zones[ANN] = "Europe/Oslo"

    assert [*first, await adapter.time_zone(people[0])] == [*["Asia/Tokyo", ""] * 3, "Asia/Tokyo"]
    assert len(asked_for_zones(double)) == 2


async def test_an_old_time_zone_is_asked_again(double: SlackDouble):
    adapter = Slack(double.bot_token, double.app_token, base_url=double.api, zone_age=0.0)
    zones = list[str]()
    for zone in ("Asia/Tokyo", "Europe/Oslo"):
        double.zones[ANN] = zone
        zones.append(await adapter.time_zone(Author(ANN, TEAM)))
    await adapter.aclose()

    assert zones == ["Asia/Tokyo", "Europe/Oslo"]


async def test_a_time_zone_that_could_not_be_asked_is_asked_at_the_next_turn(double: SlackDouble, adapter: Slack):
    double.zones[ANN] = "Asia/Tokyo"
    double.error = {"error": "internal_error"}
    first = await adapter.time_zone(Author(ANN, TEAM))
    double.error = None

    assert (first, await adapter.time_zone(Author(ANN, TEAM))) == ("", "Asia/Tokyo")


async def test_time_zones_of_two_hundred_people_are_remembered(double: SlackDouble, adapter: Slack):
    await adapter.time_zone(Author(ANN, TEAM))
    for number in range(200):
        await adapter.time_zone(Author(f"P{number}", TEAM))
    count = len(asked_for_zones(double))
    for person in (ANN, "P199"):
        await adapter.time_zone(Author(person, TEAM))

    assert len(asked_for_zones(double)) == count + 1


def asked_for_zones(double: SlackDouble) -> list[Request]:
    return [request for request in double.requests if request.url.path.endswith("/users.info")]


async def test_a_missing_scope_is_named(double: SlackDouble, adapter: Slack):
    double.error = {"error": "missing_scope", "needed": "chat:write", "provided": "identify"}
    with pytest.raises(Misconfigured, match="chat:write"):
        await adapter.post(Place(CHANNEL), Part("x"), "k", {})


async def test_tokens_in_each_others_place_are_named(double: SlackDouble):
    adapter = Slack(double.bot_token, double.bot_token, base_url=double.api)
    with pytest.raises(Misconfigured, match="xapp-"):
        await adapter.listen(_unused, "", lambda: None)
    await adapter.aclose()


async def test_a_link_that_was_switched_off_is_no_fault_of_the_net(double: SlackDouble, adapter: Slack):
    async with Receiver(adapter) as receiver:
        await double.links[-1].send(json.dumps({"type": "disconnect", "reason": "link_disabled"}))
        await receiver.until(lambda: receiver.fatal)

    assert isinstance(receiver.fatal, Misconfigured)


@pytest.mark.parametrize(
    "url",
    [
        "https://slack.com.evil.org/f",
        "http://files.slack.com/f",
        "https://evilslack.com/f",
        "file:///etc/passwd",
        "http://[bad",
    ],
)
async def test_the_token_goes_to_slack_alone(adapter: Slack, url: str):
    with pytest.raises(Refused):
        _ = [piece async for piece in adapter.fetch(FileRef("a", {"id": "F1", "url": url}))]


async def test_a_page_in_place_of_a_file_is_a_missing_right(double: SlackDouble, adapter: Slack):
    double.bot_token = "xoxb-another"
    file = FileRef("a.bin", {"id": "F1", "url": f"{double.http}/files-pri/F1/a"})
    with pytest.raises(Refused, match="files:read"):
        _ = [piece async for piece in adapter.fetch(file)]


async def test_a_file_without_an_address_is_asked_for(double: SlackDouble, adapter: Slack):
    double.files["F1"] = b"there"
    file = FileRef("a.bin", {"id": "F1", "url": ""})

    assert b"".join([piece async for piece in adapter.fetch(file)]) == b"there"


async def test_an_upload_is_uncertain_in_its_last_step_only(double: SlackDouble, adapter: Slack):
    async def pieces() -> AsyncIterator[bytes]:
        yield b"12"

    short = OutFile("a.bin", 3, "text/plain", pieces)
    with pytest.raises(Unreachable):  # less came than was said, so Slack never saw an end
        await adapter.upload(Place(CHANNEL, "1.1"), short, "k", {})
    await adapter.upload(Place(CHANNEL, "1.1"), replace(short, size=2, caption="it"), "k", {})

    assert double.uploads == [("a.bin", b"12")]


async def test_what_was_missed_is_read_page_by_page(double: SlackDouble, adapter: Slack):
    double.page = 2
    (first,) = await received(double, adapter, PRIVATE, text="before")
    sent = [await double.write(text=f"{n}") for n in range(5)]
    await double.write(text="a robot", bot_id="B2")
    reply = await double.write(text="in a thread", thread_ts=sent[0]["ts"])

    found = await adapter.missed(first.place, first.sent_at)
    inside = await adapter.missed(replace(first.place, topic=sent[0]["ts"]), first.sent_at)

    assert [message.text for message in found] == ["last", "0", "1", "2", "3", "4"]  # type: ignore[union-attr]
    assert inside[-1].message_id == f"{TEAM}:{PRIVATE}:{reply['ts']}"  # type: ignore[union-attr]


async def test_an_edit_takes_the_buttons_away(double: SlackDouble, adapter: Slack):
    ref = await adapter.post(Place(CHANNEL), Part("May I?", (Button("yes", "Y" * 90, "primary"),)), "k", {})
    await adapter.edit(Place(CHANNEL), ref, Part("Allowed"), 2)

    (message,) = double.messages.values()
    assert [block["type"] for block in message["blocks"]] == ["section"]


async def test_a_code_block_that_is_cut_goes_on_as_one():
    text = "before\n```\n" + "\n".join(f"line {n}" for n in range(1000)) + "\n```\nafter"
    pieces = [block["text"]["text"] for block in shown(Part(text))["blocks"]]

    assert len(pieces) > 2 and all(len(piece) <= 3000 and piece.count("```") == 2 for piece in pieces)
    assert "".join(pieces).replace("```", "").split() == text.replace("```", "").split()


async def test_a_fault_inside_slack_may_have_done_something(double: SlackDouble, adapter: Slack):
    ref = await adapter.post(Place(CHANNEL), Part("x"), "k", {})
    double.error = {"error": "fatal_error"}

    with pytest.raises(Uncertain):
        await adapter.post(Place(CHANNEL), Part("x"), "k", {})
    with pytest.raises(Unreachable):
        await adapter.edit(Place(CHANNEL), ref, Part("y"), 2)


async def _unused(events: object, cursor: object) -> None:
    pass
