"""DingTalk beyond the contract: strangers, quotes, cards and their states, limits, tokens and permissions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contracts.channels.receiver import Receiver
from tests.support.channels.dingtalk_double import ANN, CORP, GROUP, DingTalkDouble

from deerflow.features.channels.types import Button, Later, Misconfigured, OutFile, Part, Place, Refused
from deerflow_app.channels.adapters.dingtalk import DingTalk

PRIVATE, TEAM = Place(ANN, is_private=True), Place(GROUP)


@pytest.fixture
async def double() -> AsyncIterator[DingTalkDouble]:
    async with DingTalkDouble() as entered:
        yield entered


@pytest.fixture
async def adapter(double: DingTalkDouble) -> AsyncIterator[DingTalk]:
    made = DingTalk("client-1", "client-secret", card_template_id="template.schema", api=double.http, oapi=double.http)
    yield made
    await made.aclose()


@pytest.fixture
async def plain(double: DingTalkDouble) -> AsyncIterator[DingTalk]:
    made = DingTalk("client-1", "client-secret", api=double.http, oapi=double.http)
    yield made
    await made.aclose()


def out_file(name: str, mime: str) -> OutFile:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"data"

    return OutFile(name, 4, mime, pieces)


async def test_both_topics_are_subscribed(double: DingTalkDouble, adapter: DingTalk):
    async with Receiver(adapter):
        pass

    topics = [one["topic"] for one in double.opened[0]["subscriptions"]]
    assert topics == ["/v1.0/im/bot/messages/get", "/v1.0/card/instances/callback"]


async def test_a_stranger_to_the_company_is_left_out_and_acknowledged(double: DingTalkDouble, adapter: DingTalk):
    async with Receiver(adapter) as receiver:
        await double.write("let me in", senderStaffId=None)
        message = await receiver.message(await double.write("hi"))
        await double.until_acknowledged(double.delivered[0])

    assert [one.text for one in receiver.messages] == ["hi"]
    assert (message.author.id, message.author.workspace, message.author.name) == (ANN, CORP, "Ann")


async def test_a_private_chat_is_a_person_and_a_group_is_a_conversation(double: DingTalkDouble, adapter: DingTalk):
    group = {"conversationType": "2", "conversationId": GROUP, "conversationTitle": "Herd\n1", "isInAtList": True}
    async with Receiver(adapter) as receiver:
        private = await receiver.message(await double.write("a"))
        public = await receiver.message(await double.write("b", **group))

    assert private.place == PRIVATE and not private.is_mention
    assert public.place == Place(GROUP, name="Herd 1") and public.is_mention


async def test_a_ping_comes_back_with_what_it_brought(double: DingTalkDouble, adapter: DingTalk):
    async with Receiver(adapter):
        answer = await double.until_acknowledged(await double.deliver("ping", {"opaque": "xyz"}, "SYSTEM"))

    assert json.loads(answer["data"]) == {"opaque": "xyz"}


async def test_a_disconnect_ends_the_link_and_what_came_before_it_is_kept(double: DingTalkDouble, adapter: DingTalk):
    async with Receiver(adapter) as receiver:
        first = await double.write("before")
        bye = await double.deliver("disconnect", {"reason": "connection is expired"}, "SYSTEM")
        double.waiting.pop(bye, None)
        await receiver.message(first)
        await receiver.until(lambda: receiver.connects == 2)

    assert receiver.ends == [None]


async def test_a_quote_is_outside_text(double: DingTalkDouble, adapter: DingTalk):
    quote = {"isReplyMsg": True, "repliedMsg": {"msgId": "m0", "msgType": "text", "content": {"text": "obey me"}}}
    async with Receiver(adapter) as receiver:
        sent = await double.write(text={"content": "why?", **quote}, originalMsgId="m0")
        message = await receiver.message(sent)

    assert (message.text, message.quoted, message.reply_to) == ("why?", "obey me", "m0")


@pytest.mark.parametrize(
    ("kind", "content", "text", "files"),
    [
        ("picture", {"downloadCode": "c"}, "", ["image.png"]),
        ("file", {"downloadCode": "c", "fileName": "a.pdf"}, "", ["a.pdf"]),
        ("video", {"downloadCode": "c"}, "", ["video.mp4"]),
        ("audio", {"downloadCode": "c", "recognition": "hello"}, "hello", []),
        ("audio", {"downloadCode": "c"}, "", ["voice.amr"]),
        ("richText", {"richText": [{"text": "see "}, {"type": "picture", "downloadCode": "c"}]}, "see", ["image.png"]),
        ("interactiveCard", {}, "[interactiveCard]", []),
    ],
)
async def test_every_kind_of_message_is_read(
    double: DingTalkDouble, adapter: DingTalk, kind: str, content: dict[str, Any], text: str, files: list[str]
):
    double.files["c"] = b"bytes"
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await double.write(msgtype=kind, content=content))

    assert (message.text, [file.name for file in message.files]) == (text, files)
    for file in message.files:
        assert b"".join([piece async for piece in adapter.fetch(file)]) == b"bytes"


async def test_a_card_is_written_asks_and_is_done(double: DingTalkDouble, adapter: DingTalk):
    ref = await adapter.post(TEAM, Part("…", is_final=False), "k1", {})
    card = double.cards["k1"]
    assert (card.space, card.values["flowStatus"]) == (f"IM_GROUP.{GROUP}", "2")
    ref = await adapter.edit(TEAM, ref, Part("a", is_final=False), 1)
    ref = await adapter.edit(TEAM, ref, Part("May I?", (Button("yes", "Yes"),), is_final=False), 2)
    assert (card.values["flowStatus"], double.keys(card)) == ("3", ("yes",))
    ref = await adapter.edit(TEAM, ref, Part("b", is_final=False), 3)
    assert (card.values["content"], card.values["flowStatus"], double.keys(card)) == ("b", "2", ())
    await adapter.edit(TEAM, ref, Part("done"), 4)

    assert (card.values["content"], card.values["flowStatus"]) == ("done", "3")


async def test_the_same_key_is_the_same_card(double: DingTalkDouble, adapter: DingTalk):
    for _ in range(2):
        await adapter.post(PRIVATE, Part("a"), "k1", {})

    assert len(double.cards) == 1


async def test_a_card_that_was_not_delivered_is_refused(double: DingTalkDouble, adapter: DingTalk):
    double.undeliverable[f"IM_GROUP.{GROUP}"] = []
    with pytest.raises(Refused, match="space is gone"):
        await adapter.post(TEAM, Part("a"), "k1", {})


async def test_a_click_is_its_presser_in_the_card_s_place(double: DingTalkDouble, adapter: DingTalk):
    async with Receiver(adapter) as receiver:
        await adapter.post(TEAM, Part("May I?", (Button("yes", "Yes"),)), "k1", {})
        await double.press("k1", "yes", "staff2")
        click = await receiver.click()
        await adapter.answered(click, "Only Ann may.")

    assert (click.author.id, click.author.workspace, click.place) == ("staff2", CORP, TEAM)
    assert double.sent == [("sampleText", {"content": "Only Ann may."}, "staff2")]


async def test_without_a_template_a_message_cannot_be_edited(double: DingTalkDouble, plain: DingTalk):
    ref = await plain.post(TEAM, Part("## Title\ntext"), "k1", {})

    assert double.sent == [("sampleMarkdown", {"title": "Title", "text": "## Title\ntext"}, GROUP)]
    assert not plain.caps.edits and not plain.caps.buttons
    with pytest.raises(Refused, match="card_template_id"):
        await plain.edit(TEAM, ref, Part("b"), 1)


async def test_the_limit_counts_bytes_of_what_people_write(double: DingTalkDouble, plain: DingTalk):
    await plain.post(PRIVATE, Part("鹿" * 4900), "k1", {})

    assert double.sent[0][1]["text"] == "鹿" * 4900


async def test_a_person_who_cannot_be_reached_is_refused_or_later(double: DingTalkDouble, plain: DingTalk):
    double.undeliverable["invalidStaffIdList"] = [ANN]
    with pytest.raises(Refused):
        await plain.post(PRIVATE, Part("a"), "k1", {})
    double.undeliverable = {"flowControlledStaffIdList": [ANN]}
    with pytest.raises(Later):
        await plain.post(PRIVATE, Part("a"), "k1", {})


async def test_pictures_and_files_are_sent_as_such(double: DingTalkDouble, adapter: DingTalk):
    await adapter.upload(PRIVATE, out_file("a.png", "image/png"), "k1", {})
    await adapter.upload(TEAM, out_file("b.PDF", "application/pdf"), "k2", {})

    assert double.sent == [
        ("sampleImageMsg", {"photoURL": "@media0"}, ANN),
        ("sampleFile", {"mediaId": "@media1", "fileName": "b.PDF", "fileType": "pdf"}, GROUP),
    ]


async def test_a_token_that_ended_early_is_renewed_once(double: DingTalkDouble, adapter: DingTalk):
    await adapter.identify()
    double.is_expired = True
    await adapter.post(PRIVATE, Part("a"), "k1", {})
    assert len(double.cards) == 1 and len(double.tokens) == 2

    double.is_expired = True
    await adapter.upload(PRIVATE, out_file("a.txt", "text/plain"), "k2", {})
    assert len(double.sent) == 1 and len(double.tokens) == 3


async def test_a_missing_permission_is_named(double: DingTalkDouble, adapter: DingTalk, plain: DingTalk):
    double.scopes = set()
    with pytest.raises(Misconfigured, match=r"Card\.Instance\.Write"):
        await adapter.post(PRIVATE, Part("a"), "k1", {})
    with pytest.raises(Misconfigured, match="qyapi_robot_sendmsg"):
        await plain.post(PRIVATE, Part("a"), "k1", {})
