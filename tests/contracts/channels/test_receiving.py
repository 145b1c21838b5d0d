"""The contract of adapters: what people write arrives, once it is stored it is acknowledged, and nothing is lost between."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.contracts.channels.case import Case, Said
from tests.contracts.channels.conftest import Chat
from tests.contracts.channels.receiver import Receiver
from tests.contracts.channels.registry import on

from deerflow.features.channels.types import Adapter, Button, Click, Part, Place, Refused, Signal

HOSTILE = "../../etc/\r\npasswd\" x; filename=y'<b>\u202e.txt"


def where(place: Place) -> tuple[str, str, bool]:
    return place.chat, place.topic, place.is_private


@on()
async def test_the_bot_knows_itself(case: Case, adapter: Adapter):
    me = await adapter.identify()

    assert me.id and me.name


@on()
async def test_a_text_arrives_with_its_place_author_and_time(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await case.say(Said("Grüße, 鹿 & <b> 🦌", name="Ann")))

    assert message.text == "Grüße, 鹿 & <b> 🦌"
    assert message.place.is_private and message.place.chat
    assert message.author.id and not message.author.is_bot
    assert abs(datetime.now(UTC) - message.sent_at) < timedelta(hours=1)
    json.dumps([dict(message.wake), [dict(file.key) for file in message.files]])


@on("has_groups")
async def test_a_mention_at_the_start_is_taken_off(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        said = Said("🦌 /new look at this", is_private=False, mentions_us=True)
        message = await receiver.message(await case.say(said))

    assert message.is_mention and not message.place.is_private
    assert message.text == said.text


@on("has_groups", "hears_all")
async def test_talk_among_others_is_no_mention(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await case.say(Said("not for the bot", is_private=False)))

    assert not message.is_mention


@on("has_groups", "has_topics")
async def test_two_topics_of_a_group_are_two_places(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        ids = [await case.say(Said("x", is_private=False, topic=topic, mentions_us=True)) for topic in ("a", "b", "a")]
        places = [(await receiver.message(one)).place for one in ids]

    assert all(place.topic for place in places)
    assert where(places[0]) == where(places[2]) != where(places[1]) and places[0].chat == places[1].chat


@on("has_replies")
async def test_a_reply_names_the_message_it_replies_to(chat: Chat):
    ref = await chat.post(Part("an answer"))
    message = await chat.receiver.message(await chat.case.say(Said("why?", replies_to=ref)))

    assert message.reply_to == ref["id"]
    assert message.is_mention


@on("has_groups")
async def test_a_bot_is_known_as_one(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        robot = await case.say(Said("beep", is_private=False, mentions_us=True, is_bot=True))
        await receiver.message(await case.say(Said("after")))

    assert all(message.author.is_bot for message in receiver.messages if message.message_id == robot)


@on()
async def test_a_file_arrives_with_its_bytes(case: Case, adapter: Adapter):
    content = bytes(range(256)) * 700
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await case.say(Said("here", files=[("a b.bin", content)])))

    (file,) = message.files
    assert (file.name, message.text) == ("a b.bin", "here")
    assert b"".join([piece async for piece in adapter.fetch(file)]) == content


@on()
@pytest.mark.parametrize("says_size", [True, False])
async def test_a_file_larger_than_the_limit_is_refused(case: Case, adapter: Adapter, says_size: bool):
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await case.say(Said("x", files=[("a.bin", b"x" * 1001)])))
    (file,) = message.files
    file = replace(file, size=1001 if says_size else None)

    adapter.caps = replace(adapter.caps, file_in=1001)
    assert len(b"".join([piece async for piece in adapter.fetch(file)])) == 1001
    adapter.caps = replace(adapter.caps, file_in=1000)
    with pytest.raises(Refused, match="1,000"):
        _ = [piece async for piece in adapter.fetch(file)]


@on()
async def test_hostile_names_arrive_as_text(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await case.say(Said("x", files=[(HOSTILE, b"1")], name=HOSTILE)))

    assert message.files[0].name == HOSTILE


@on()
async def test_a_text_that_no_database_takes_arrives_as_one_that_it_does(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await case.say(Said("a\x00b\ud800c")))

    assert message.text == "a\ufffdb\ufffdc"


@on("redelivers")
async def test_what_was_not_stored_is_delivered_again(case: Case, adapter: Adapter):
    async with Receiver(adapter, refusals=2) as receiver:
        sent = [await case.say(Said(f"{n}")) for n in range(3)]
        for one in sent:
            await receiver.message(one)


@on()
async def test_a_second_delivery_has_the_same_id(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        first = await receiver.message(await case.say(Said("once")))
        await case.repeat()
        last = await case.say(Said("after"))
        await receiver.message(last)

    assert {message.message_id for message in receiver.messages} == {first.message_id, last}


@on("has_cursor")
async def test_a_first_connection_stores_its_cursor_before_any_message(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        await receiver.until(lambda: receiver.cursor)
    missed = await case.say(Said("while away"))

    async with Receiver(adapter, receiver.cursor) as again:
        await again.message(missed)


@on("has_cursor")
async def test_after_a_restart_nothing_stored_comes_again(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        before = await case.say(Said("before"))
        await receiver.message(before)
    after = await case.say(Said("after"))

    async with Receiver(adapter, receiver.cursor) as again:
        await again.message(after)
    assert [message.message_id for message in again.messages] == [after]


@on("has_history")
async def test_what_came_during_a_gap_is_not_lost(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        first = await receiver.message(await case.say(Said("before")))
    missed = await case.say(Said("in the gap"))

    if adapter.caps.replays:
        async with Receiver(adapter, receiver.cursor) as again:
            found = await again.message(missed)
    else:
        (found,) = await adapter.missed(first.place, first.sent_at)
    assert (found.message_id, found.text) == (missed, "in the gap")
    assert (where(found.place), found.author.id) == (where(first.place), first.author.id)


@on()
async def test_an_event_of_an_unknown_shape_stops_nothing(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        await case.babble()
        await receiver.message(await case.say(Said("after")))

    assert receiver.ends == []


@on()
async def test_bytes_may_come_in_any_pieces(case: Case, adapter: Adapter):
    case.double.server.is_dribbling = True
    async with Receiver(adapter) as receiver:
        sent = [await case.say(Said(f"🦌 {n} " + "ü" * 200)) for n in range(5)]
        for one in sent:
            assert (await receiver.message(one)).text.endswith("ü" * 200)


@on()
async def test_a_burst_keeps_its_order(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        sent = [await case.say(Said(f"{n}")) for n in range(150)]
        await receiver.message(sent[-1])

    assert [message.message_id for message in receiver.messages] == sent


@on()
async def test_a_silent_link_is_found_dead(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        await case.silence()
        await receiver.until(lambda: receiver.ends)
        await receiver.until(lambda: receiver.connects > 1)
        await receiver.message(await case.say(Said("after")))


@on()
async def test_a_cut_link_ends(case: Case, adapter: Adapter):
    async with Receiver(adapter) as receiver:
        await case.cut()
        await receiver.until(lambda: receiver.connects > 1)
        await receiver.message(await case.say(Said("after")))


@on("has_clicks")
async def test_a_click_brings_its_key_and_its_message(chat: Chat):
    key = "k" * 62 + "-_"
    ref = await chat.post(Part("May I?", (Button(key, "Yes, ✓ & <b>"), Button("no", "No", "danger"))))
    assert chat.case.shown()[-1].keys == (key, "no")

    await chat.case.press(ref, key)
    click = await chat.receiver.click()
    await chat.adapter.answered(click, "Only the owner may.")
    await chat.adapter.edit(click.place, click.ref, Part("Allowed by Ann"), 2)

    assert (click.key, click.author.id, where(click.place)) == (key, chat.asked.author.id, where(chat.asked.place))
    assert chat.case.notices() == ["Only the owner may."]
    assert chat.case.shown()[-1].text == "Allowed by Ann" and not chat.case.shown()[-1].keys


@on("has_clicks", "has_edits")
@pytest.mark.parametrize("buttons", [(), (Button("yes", "Yes"), Button("no", "No"))])
async def test_the_buttons_of_an_edit_are_there_and_no_others(chat: Chat, buttons: tuple[Button, ...]):
    ref = await chat.post(Part("Working", (Button("stop", "Stop", "danger"),), is_final=False))
    await chat.adapter.edit(chat.asked.place, ref, Part("May I?", buttons), 2)

    shown = chat.case.shown()[-1]
    assert [key for one in chat.case.shown() for key in one.keys] == [one.key for one in buttons]
    if buttons:
        await chat.case.press(shown.ref, "yes")
        assert (await chat.receiver.click()).key == "yes"


@on("has_clicks")
async def test_two_clicks_are_two_and_one_click_is_one(chat: Chat):
    ref = await chat.post(Part("May I?", (Button("yes", "Yes"),)))
    for _ in range(2):
        await chat.case.press(ref, "yes")
    await chat.receiver.message(await chat.case.say(Said("after")))

    clicks = [event for event in chat.receiver.events if isinstance(event, Click)]
    assert len({click.click_id for click in clicks}) == len(clicks) == 2


@on("has_signals")
async def test_signals_are_shown(chat: Chat):
    for signal in (one for one in Signal if one in chat.adapter.caps.signals):
        await chat.adapter.signal(chat.asked.place, chat.asked.message_id, signal, chat.asked.wake)

    assert chat.case.signals() > 0


@on()
async def test_a_place_is_enough_to_speak_first(chat: Chat):
    stored = Place(**asdict(chat.asked.place))
    await asyncio.sleep(0)
    await chat.adapter.post(stored, Part("a reminder"), "k-9", {})

    assert chat.case.shown()[-1].text == "a reminder"
