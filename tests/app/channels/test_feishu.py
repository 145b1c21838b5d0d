"""Feishu beyond the contract: mentions, topics, rich text, cards that stream, toasts, tokens and permissions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contracts.channels.receiver import Receiver
from tests.support.channels.feishu_double import ANN, BOT, CHAT, GROUP, TENANT, FeishuDouble

from deerflow.features.channels.types import Button, Later, Misconfigured, OutFile, Part, Place, Refused, Signal
from deerflow_app.channels.adapters import feishu
from deerflow_app.channels.adapters.feishu import Feishu

PRIVATE = Place(CHAT, is_private=True)


@pytest.fixture
async def double() -> AsyncIterator[FeishuDouble]:
    async with FeishuDouble() as entered:
        yield entered


@pytest.fixture
async def adapter(double: FeishuDouble) -> AsyncIterator[Feishu]:
    made = Feishu("cli_1", "app-secret", domain=double.http)
    await made.identify()
    yield made
    await made.aclose()


@pytest.fixture
async def streaming(double: FeishuDouble) -> AsyncIterator[Feishu]:
    made = Feishu("cli_1", "app-secret", domain=double.http, streaming=True)
    yield made
    await made.aclose()


def mention(number: int, person: str, name: str) -> dict[str, Any]:
    return {"key": f"@_user_{number}", "id": {"open_id": person}, "name": name}


async def test_mentions_become_names_and_ours_is_dropped(double: FeishuDouble, adapter: Feishu):
    mentions = [mention(1, BOT, "Deer"), mention(10, "ou_bob", "Bob\nsays"), mention(2, "ou_eve", "Eve")]
    async with Receiver(adapter) as receiver:
        sent = await double.write(
            {"text": "@_user_1 /ask @_user_10 and @_user_2, not @_all"}, chat_type="group", mentions=mentions
        )
        message = await receiver.message(sent)

    assert message.is_mention
    assert message.text == "/ask @Bob says and @Eve, not @all"


async def test_a_mention_of_another_is_none_of_us(double: FeishuDouble, adapter: Feishu):
    async with Receiver(adapter) as receiver:
        sent = await double.write({"text": "@_user_1 hi"}, chat_type="group", mentions=[mention(1, "ou_bob", "Deer")])

        assert not (await receiver.message(sent)).is_mention


async def test_a_message_in_a_group_begins_a_topic_that_answers_continue(double: FeishuDouble, adapter: Feishu):
    async with Receiver(adapter) as receiver:
        first = await receiver.message(await double.write({"text": "a"}, chat_type="group", chat_id=GROUP))
        ref = await adapter.post(first.place, Part("b"), "k1", {})
        thread = {"root_id": first.message_id, "parent_id": ref["id"], "thread_id": "omt_1"}
        second = await receiver.message(await double.write({"text": "c"}, chat_type="group", chat_id=GROUP, **thread))

    assert (double.messages[0].parent, double.messages[0].in_thread) == (first.message_id, True)
    assert second.place == first.place and second.reply_to == ref["id"]


async def test_a_private_chat_is_one_conversation_unless_a_topic_is_opened(double: FeishuDouble, adapter: Feishu):
    async with Receiver(adapter) as receiver:
        first = await receiver.message(await double.write({"text": "a"}))
        quoting = await receiver.message(await double.write({"text": "b"}, root_id="om_x", parent_id="om_x"))
        topic = await receiver.message(await double.write({"text": "c"}, root_id="om_x", thread_id="omt_1"))

    assert first.place == quoting.place == PRIVATE
    assert topic.place == Place(CHAT, "om_x", is_private=True)


async def test_a_person_is_the_union_id_or_the_open_id_in_a_tenant(double: FeishuDouble, adapter: Feishu):
    async with Receiver(adapter) as receiver:
        known = await receiver.message(await double.write({"text": "a"}))
        other = await receiver.message(await double.write({"text": "a"}, ids={"open_id": "ou_1"}))
        await double.write({"text": "a"}, ids={})
        await receiver.message(await double.write({"text": "after"}))

    assert (known.author.id, known.author.workspace) == (ANN, "")
    assert (other.author.id, other.author.workspace) == ("ou_1", TENANT)
    assert len(receiver.messages) == 3


async def test_rich_text_is_read_with_its_links_code_and_pictures(double: FeishuDouble, adapter: Feishu):
    double.files["img1"] = b"pixels"
    paragraphs = [
        [{"tag": "at", "user_id": "@_user_1", "user_name": "Deer"}, {"tag": "text", "text": " see "}],
        [{"tag": "a", "text": "this", "href": "https://x.org"}, {"tag": "emotion", "emoji_type": "SMILE"}],
        [{"tag": "img", "image_key": "img1"}],
        [{"tag": "code_block", "language": "PYTHON", "text": "a = 1"}],
    ]
    async with Receiver(adapter) as receiver:
        content = {"title": "Title", "content": paragraphs}
        message = await receiver.message(await double.write(content, "post", mentions=[mention(1, BOT, "Deer")]))

    assert message.text == "Title\n see \n[this](https://x.org):SMILE:\n\n```python\na = 1\n```"
    assert message.is_mention
    assert b"".join([piece async for piece in adapter.fetch(message.files[0])]) == b"pixels"


@pytest.mark.parametrize(
    ("kind", "content", "name", "is_voice"),
    [
        ("image", {"image_key": "k"}, "image.png", False),
        ("file", {"file_key": "k", "file_name": "a.pdf"}, "a.pdf", False),
        ("audio", {"file_key": "k", "duration": 2000}, "voice.opus", True),
        ("media", {"file_key": "k", "image_key": "i", "file_name": "b.mp4"}, "b.mp4", False),
    ],
)
async def test_files_alone_arrive(
    double: FeishuDouble, adapter: Feishu, kind: str, content: dict[str, Any], name: str, is_voice: bool
):
    double.files["k"] = b"1"
    async with Receiver(adapter) as receiver:
        message = await receiver.message(await double.write(content, kind))

    assert (message.text, message.files[0].name, message.files[0].is_voice) == ("", name, is_voice)
    assert b"".join([piece async for piece in adapter.fetch(message.files[0])]) == b"1"


async def test_what_has_no_text_is_said(double: FeishuDouble, adapter: Feishu):
    async with Receiver(adapter) as receiver:
        assert (await receiver.message(await double.write({"file_key": "s"}, "sticker"))).text == "[sticker]"


async def test_an_event_in_parts_is_one_message(double: FeishuDouble, adapter: Feishu):
    double.parts = 4
    async with Receiver(adapter) as receiver:
        assert (await receiver.message(await double.write({"text": "ü" * 9000}))).text == "ü" * 9000


async def test_an_event_is_acknowledged_only_after_it_was_accepted(double: FeishuDouble, adapter: Feishu):
    stored = asyncio.Event()

    async def accept(events: Any, cursor: Any) -> None:
        assert not double.acknowledged
        await stored.wait()

    listening = asyncio.create_task(adapter.listen(accept, "", lambda: None))
    while not double.links:
        await asyncio.sleep(0.01)
    await double.write({"text": "hi"})
    delivery = next(iter(double.waiting))
    await asyncio.sleep(0.2)
    assert not double.acknowledged
    stored.set()
    assert await double.until_acknowledged(delivery) == {"code": 200}
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_a_late_notice_comes_as_a_message(double: FeishuDouble, adapter: Feishu, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feishu, "_TOAST_WAIT", 0.05)
    async with Receiver(adapter) as receiver:
        await adapter.post(PRIVATE, Part("May I?", (Button("yes", "Yes"),)), "k1", {})
        delivery = await double.press(double.messages[0], "yes")
        click = await receiver.click()
        assert await double.until_acknowledged(delivery) == {"code": 200}
        await adapter.answered(click, "Only Ann may.")

    assert double.toasts() == []
    assert (double.messages[-1].to, double.messages[-1].content) == ("ou_ann", {"text": "Only Ann may."})


async def test_the_same_key_is_the_same_message(double: FeishuDouble, adapter: Feishu):
    first = await adapter.post(PRIVATE, Part("a"), "k1", {})

    assert await adapter.post(PRIVATE, Part("a"), "k1", {}) == first
    assert len(double.messages) == 1


async def test_a_card_streams_and_its_stream_ends_before_buttons(double: FeishuDouble, streaming: Feishu):
    ref = await streaming.post(PRIVATE, Part("…", is_final=False), "k1", {})
    for seq, text in enumerate(("a", "ab", "ab")):
        ref = await streaming.edit(PRIVATE, ref, Part(text, is_final=False), seq)
    card = double.cards[ref["id"]]
    assert card.card["config"]["streaming_mode"]

    ref = await streaming.edit(PRIVATE, ref, Part("May I?", (Button("yes", "Yes"),), is_final=False), 3)
    assert not card.card["config"]["streaming_mode"]
    assert list(double.buttons(double.messages[0])) == ["yes"]
    ref = await streaming.edit(PRIVATE, ref, Part("more", is_final=False), 4)
    await streaming.edit(PRIVATE, ref, Part("done"), 5)

    assert double.text(double.messages[0]) == "done"
    assert card.changes == ["content"] * 3 + ["settings", "card", "card", "card"]


async def test_a_card_that_is_posted_twice_by_its_key_is_the_one_that_streams(double: FeishuDouble, streaming: Feishu):
    await streaming.post(PRIVATE, Part("…", is_final=False), "k1", {})
    ref = await streaming.post(PRIVATE, Part("…", is_final=False), "k1", {})
    await streaming.edit(PRIVATE, ref, Part("a", is_final=False), 1)

    assert [double.text(message) for message in double.messages] == ["a"]


async def test_an_edit_that_was_overtaken_changes_nothing(double: FeishuDouble, streaming: Feishu):
    ref = await streaming.post(PRIVATE, Part("…", is_final=False), "k1", {})
    await streaming.edit(PRIVATE, ref, Part("new", is_final=False), 5)
    await streaming.edit(PRIVATE, ref, Part("old", is_final=False), 4)

    assert double.text(double.messages[0]) == "new"


async def test_a_stream_that_feishu_closed_is_edited_as_a_card(double: FeishuDouble, streaming: Feishu):
    ref = await streaming.post(PRIVATE, Part("…", is_final=False), "k1", {})
    double.cards[ref["id"]].is_closed = True
    ref = await streaming.edit(PRIVATE, ref, Part("late", is_final=False), 1)

    assert double.text(double.messages[0]) == "late" and not ref["is_streaming"]


async def test_a_click_on_a_streamed_card_names_the_card(double: FeishuDouble, streaming: Feishu):
    place = Place(CHAT, "om_root", is_private=True)
    async with Receiver(streaming) as receiver:
        ref = await streaming.post(place, Part("…", is_final=False), "k1", {})
        ref = await streaming.edit(place, ref, Part("May I?", (Button("yes", "Yes"),), is_final=False), 1)
        await double.press(double.messages[0], "yes")
        click = await receiver.click()

    assert click.ref == ref
    assert (click.place.topic, click.place.is_private) == ("om_root", True)


async def test_a_token_that_ended_early_is_renewed_once(double: FeishuDouble, adapter: Feishu):
    double.is_expired = True
    await adapter.post(PRIVATE, Part("a"), "k1", {})

    assert len(double.messages) == 1 and len(double.tokens) == 2


async def test_a_token_is_used_while_it_is_valid(double: FeishuDouble, adapter: Feishu):
    for number in range(3):
        await adapter.post(PRIVATE, Part("a"), f"k{number}", {})
    assert len(double.tokens) == 1

    double.lifetime = 60  # less than what is kept in reserve
    double.is_expired = True
    for number in range(3, 6):
        await adapter.post(PRIVATE, Part("a"), f"k{number}", {})
    assert len(double.tokens) == 4


async def test_a_missing_permission_is_named(double: FeishuDouble, adapter: Feishu):
    double.scopes = set()
    with pytest.raises(Misconfigured, match="im:message:send_as_bot"):
        await adapter.post(PRIVATE, Part("a"), "k1", {})


@pytest.mark.parametrize(("code", "everywhere"), [(99991400, True), (11232, True), (230020, False)])
async def test_a_limit_is_a_pause_of_the_chat_or_of_all(
    double: FeishuDouble, adapter: Feishu, monkeypatch: pytest.MonkeyPatch, code: int, everywhere: bool
):
    monkeypatch.setattr(double, "_post", lambda *_: double._refused(code, "too fast"))
    with pytest.raises(Later) as caught:
        await adapter.post(PRIVATE, Part("a"), "k1", {})

    assert caught.value.everywhere is everywhere and caught.value.after > 0


async def test_pictures_are_sent_as_pictures_and_documents_with_their_type(double: FeishuDouble, adapter: Feishu):
    async def pieces() -> AsyncIterator[bytes]:
        yield b"data"

    await adapter.upload(PRIVATE, OutFile("a.png", 4, "image/png", pieces), "k1", {})
    await adapter.upload(PRIVATE, OutFile("b.docx", 4, "application/msword", pieces), "k2", {})

    assert [one.kind for one in double.messages] == ["image", "file"]
    assert [name for name, _ in double.kept.values()] == ["a.png", "b.docx"]


async def test_signals_are_reactions(double: FeishuDouble, adapter: Feishu):
    await adapter.signal(PRIVATE, "om_1", Signal.SEEN, {})

    assert double.reactions == [("om_1", "OK")]


async def test_the_link_to_a_chat_follows_the_domain():
    for domain, applink in (("feishu.cn", "applink.feishu.cn"), ("larksuite.com", "applink.larksuite.com")):
        assert (
            Feishu("cli_1", "s", domain=f"https://open.{domain}").link
            == f"https://{applink}/client/bot/open?appId=cli_1"
        )


async def test_pings_go_out_while_the_link_stands(double: FeishuDouble, adapter: Feishu):
    async with Receiver(adapter) as receiver:
        await receiver.until(lambda: double.pings >= 3)

    assert receiver.connects == 1


async def test_a_refusal_says_why(double: FeishuDouble, adapter: Feishu):
    with pytest.raises(Refused, match="invalid request parameter"):
        await adapter.edit(PRIVATE, {"id": "om_gone"}, Part("a"), 1)
