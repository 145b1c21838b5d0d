from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from tests.contracts.channels.receiver import Receiver
from tests.support.channels.double import Fault, Operation
from tests.support.channels.wecom_double import ANN, WeComDouble

from deerflow.features.channels.types import (
    Button,
    Displaced,
    Inbound,
    Later,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
    Uncertain,
)
from deerflow_app.channels.adapters.wecom import PIECE, WeCom

DRAFT = Part("half", is_final=False)


@dataclass
class World:
    double: WeComDouble
    adapter: WeCom
    receiver: Receiver
    asked: Inbound

    @property
    def place(self) -> Place:
        return self.asked.place

    @property
    def shown(self) -> list[str]:
        return [bubble.text for bubble in self.double.bubbles]

    async def begin(self) -> Ref:
        return await self.adapter.post(self.place, Part("…", is_final=False), "k1", self.asked.wake)


def _adapter(double: WeComDouble) -> WeCom:
    return WeCom(double.bot_id, double.secret, url=double.ws, ping_every=0.1, patience=0.3)


def _text(content: str, **more: object) -> dict[str, object]:
    return {"msgtype": "text", "text": {"content": content}, **more}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with WeComDouble() as double:
        adapter = _adapter(double)
        async with Receiver(adapter) as receiver:
            asked = await receiver.message((await double.write(_text("hello")))["msgid"])
            yield World(double, adapter, receiver, asked)
        await adapter.aclose()


async def test_a_placeholder_without_a_text_says_that_we_work(world: World):
    ref = await world.begin()
    assert world.shown == ["Working on it..."]

    await world.adapter.edit(world.place, ref, Part("42"), 2)
    assert world.shown == ["42"]


async def test_a_stream_that_has_expired_can_no_longer_be_changed(world: World):
    ref = await world.begin()
    world.double.ended.add(ref["stream"])
    for part in (DRAFT, Part("42")):
        with pytest.raises(Refused, match="no longer"):
            await world.adapter.edit(world.place, ref, part, 2)

    await world.adapter.post(world.place, Part("42"), "k2", world.asked.wake)
    assert world.shown == ["Working on it...", "42"]


async def test_an_edit_that_is_not_acknowledged_may_have_been_done(world: World):
    ref = await world.begin()
    world.double.fail(Operation.EDIT, Fault.CUT_AFTER)
    with pytest.raises(Uncertain):
        await world.adapter.edit(world.place, ref, Part("42"), 2)
    assert world.shown == ["42"]

    with pytest.raises(Refused):
        await world.adapter.edit(world.place, ref, Part("42"), 3)


async def test_an_edit_that_was_cut_before_is_made_on_the_next_link(world: World):
    ref = await world.begin()
    world.double.fail(Operation.EDIT, Fault.CUT_BEFORE)
    with pytest.raises(Uncertain):
        await world.adapter.edit(world.place, ref, Part("42"), 2)

    ref = await world.adapter.edit(world.place, ref, Part("42"), 3)
    assert await world.adapter.edit(world.place, ref, Part("42"), 4) == ref
    with pytest.raises(Refused):
        await world.adapter.edit(world.place, ref, Part("43"), 5)
    assert world.shown == ["42"]


async def test_a_new_process_changes_the_stream_of_the_old_one(world: World):
    ref = await world.begin()
    again = _adapter(world.double)
    async with Receiver(again):
        await again.edit(world.place, ref, Part("42"), 2)
    await again.aclose()

    assert world.shown == ["42"]


async def test_a_callback_that_is_too_old_is_answered_with_a_message_of_its_own(world: World):
    world.double.expired.add(world.asked.wake["req_id"])
    await world.adapter.post(world.place, Part("42"), "k1", world.asked.wake)
    await world.adapter.post(world.place, Part("43"), "k2", {})

    sent = [frame["body"] for frame in world.double.frames if frame["cmd"] == "aibot_send_msg"]
    assert world.shown == ["42", "43"]
    assert all((body["chatid"], body["chat_type"]) == (ANN, 1) for body in sent)


async def test_a_message_that_is_not_acknowledged_is_the_same_message_when_it_is_sent_again(world: World):
    world.double.fail(Operation.POST, Fault.GARBAGE)
    with pytest.raises(Uncertain):
        await world.adapter.post(world.place, DRAFT, "k1", world.asked.wake)
    for text in ("half", "whole"):
        await world.adapter.post(world.place, Part(text, is_final=False), "k1", world.asked.wake)

    assert world.shown == ["whole"]


async def test_a_callback_that_stays_silent_twice_is_left(world: World):
    for fault in (Fault.GARBAGE, Fault.GARBAGE):
        world.double.fail(Operation.POST, fault)
        with pytest.raises(Uncertain):
            await world.adapter.post(world.place, Part("42"), "k1", world.asked.wake)
    await world.adapter.post(world.place, Part("42"), "k1", world.asked.wake)

    assert world.double.frames[-1]["cmd"] == "aibot_send_msg"


async def test_one_of_two_programs_with_the_same_bot_leaves(world: World):
    other = _adapter(world.double)
    async with Receiver(other) as receiver:
        await world.receiver.until(lambda: world.receiver.fatal)
        await receiver.message((await world.double.write(_text("to the newer one")))["msgid"])
    await other.aclose()

    assert isinstance(world.receiver.fatal, Displaced)
    assert "Another program" in str(world.receiver.fatal)


async def test_to_ask_who_we_are_does_not_end_our_link(world: World):
    await world.adapter.identify()
    await world.receiver.message((await world.double.write(_text("still here")))["msgid"])

    assert world.receiver.connects == 1


async def test_a_click_of_the_wrong_person_changes_the_card_for_them_alone(world: World):
    part = Part("May I run it?", (Button("yes", "Yes", "primary"), Button("no", "No", "danger")))
    ref = await world.adapter.post(world.place, part, "k1", world.asked.wake)
    await world.double.press(ref["task"], "yes", author="bob")
    click = await world.receiver.click()
    await world.adapter.answered(click, "Only the owner may.")

    assert (click.author.id, world.double.notices) == ("bob", ["Only the owner may."])
    assert world.double.frames[-1]["body"]["userids"] == ["bob"]
    assert world.double.bubbles[-1].keys == ("yes", "no")


async def test_a_decision_takes_the_place_of_its_buttons_just_after_the_click(world: World):
    part = Part("May I run it?", (Button("yes", "Yes"),))
    refs = [await world.adapter.post(world.place, part, key, world.asked.wake) for key in ("k1", "k2")]
    await world.double.press(refs[0]["task"], "yes")
    await world.adapter.answered(await world.receiver.click(), "")
    await world.adapter.edit(world.place, refs[0], Part("Allowed by Ann"), 2)
    with pytest.raises(Refused):
        await world.adapter.edit(world.place, refs[1], Part("Expired"), 2)

    assert world.shown == ["May I run it?", "Allowed by Ann", "May I run it?", "May I run it?"]
    assert [bubble.keys for bubble in world.double.bubbles] == [(), (), (), ("yes",)]


async def test_a_card_that_was_not_taken_comes_later_and_its_text_does_not_come_again(world: World):
    ref, part = await world.begin(), Part("May I run it?", (Button("yes", "Yes"),))
    world.double.fail(Operation.POST, Fault.LATER)
    with pytest.raises(Later):
        await world.adapter.edit(world.place, ref, part, 2)
    with pytest.raises(Refused):
        await world.adapter.edit(world.place, ref, Part("Decided elsewhere"), 3)
    await world.adapter.edit(world.place, ref, part, 4)

    assert [(bubble.text, bubble.keys) for bubble in world.double.bubbles] == [(part.text, ()), (part.text, ("yes",))]


async def test_a_click_on_what_a_decided_card_keeps_says_nothing(world: World):
    await world.double.press("k1", "done")
    await world.receiver.message((await world.double.write(_text("after")))["msgid"])

    assert all(isinstance(event, Inbound) for event in world.receiver.events)


@pytest.mark.parametrize(("mime", "kind"), [("image/png", "image"), ("text/csv", "file")])
async def test_a_file_goes_out_in_pieces(world: World, mime: str, kind: str):
    content = bytes(range(256)) * 5000

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 100_000):
            yield content[start : start + 100_000]

    await world.adapter.upload(
        world.place, OutFile("a b.png", len(content), mime, pieces, "a caption"), "k1", world.asked.wake
    )

    sizes = [len(frame["body"]["base64_data"]) * 3 // 4 for frame in world.double.frames if "chunk" in frame["cmd"]]
    assert world.double.received == [("a b.png", content)]
    assert world.shown == ["a caption"]
    assert len(sizes) == 3 and all(size <= PIECE + 2 for size in sizes)
    assert world.double.frames[-1]["body"]["msgtype"] == kind


async def test_voice_pictures_and_quotes_arrive(world: World):
    picture = {"msgtype": "image", "image": world.double.keep("x.jpg", b"JPEG")}
    quote = {"quote": _text("what Bob said")}
    mixed = {"msgtype": "mixed", "mixed": {"msg_item": [_text("see"), picture, _text("this")]}, **quote}
    said = [await world.double.write(one) for one in (mixed, {"msgtype": "voice", "voice": {"content": "spoken"}})]
    first, second = [await world.receiver.message(one["msgid"]) for one in said]

    assert (first.text, first.quoted, second.text) == ("see\nthis", "what Bob said", "spoken")
    assert [file.name for file in first.files] == ["image.jpg"]
    assert b"".join([piece async for piece in world.adapter.fetch(first.files[0])]) == b"JPEG"


async def test_in_a_group_only_the_mention_at_the_start_is_taken_off(world: World):
    said = await world.double.write(_text("@Deer ask @Bob about it"), is_private=False, author="bob")
    message = await world.receiver.message(said["msgid"])

    assert (message.text, message.is_mention, message.place.is_private) == ("ask @Bob about it", True, False)


async def test_two_answers_to_one_callback_wait_for_each_other(world: World):
    parts = [world.adapter.post(world.place, Part(str(number)), f"k{number}", world.asked.wake) for number in range(5)]
    await asyncio.gather(*parts)

    assert sorted(world.shown) == ["0", "1", "2", "3", "4"]
