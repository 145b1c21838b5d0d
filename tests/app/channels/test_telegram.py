"""What only Telegram has: UTF-16 offsets, forwarded and quoted text, topics, its Stop, and ids that start anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from tests.contracts.channels.receiver import Receiver
from tests.support.channels.telegram_double import ANN, GROUP, US, TelegramDouble

from deerflow.features.channels.render import parts
from deerflow.features.channels.types import STOP, Click, Inbound, Misconfigured, OutFile, Part, Place, SignedOut
from deerflow_app.channels.adapters.telegram import Telegram

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
async def double() -> AsyncIterator[TelegramDouble]:
    async with TelegramDouble() as entered:
        yield entered


@pytest.fixture
async def adapter(double: TelegramDouble) -> AsyncIterator[Telegram]:
    made = Telegram(double.token, base_url=double.http, poll=1.0)
    yield made
    await made.aclose()


async def received(double: TelegramDouble, adapter: Telegram, **message: Any) -> Inbound:
    double.write(GROUP, **message)
    async with Receiver(adapter) as receiver:
        await receiver.until(lambda: receiver.messages)
    return receiver.messages[0]


def entity(kind: str, text: str, part: str, **more: Any) -> Mapping[str, Any]:
    """Return an entity with its place in UTF-16 units."""
    start = text.index(part)
    return {"type": kind, "offset": units(text[:start]), "length": units(part), **more}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("text", "kind", "part", "expected", "is_mention"),
    [
        ("@DEER_bot hi", "mention", "@DEER_bot", "hi", True),
        ("🦌🦌 thanks @deer_bot, go on", "mention", "@deer_bot", "🦌🦌 thanks @deer_bot, go on", True),
        ("  @deer_bot 🦌 /new", "mention", "@deer_bot", "🦌 /new", True),
        ("/new@deer_bot a plan", "bot_command", "/new@deer_bot", "/new a plan", True),
        ("/new@other_bot a plan", "bot_command", "/new@other_bot", "/new@other_bot a plan", False),
        ("@deer_bottle hi", "mention", "@deer_bottle", "@deer_bottle hi", False),
    ],
)
async def test_mentions_are_found_where_telegram_counts_them(
    double: TelegramDouble, adapter: Telegram, text: str, kind: str, part: str, expected: str, is_mention: bool
):
    message = await received(double, adapter, text=text, entities=[entity(kind, text, part)])

    assert (message.text, message.is_mention) == (expected, is_mention)


async def test_a_mention_by_name_alone_counts(double: TelegramDouble, adapter: Telegram):
    text = "Deer, look"
    message = await received(double, adapter, text=text, entities=[entity("text_mention", text, "Deer", user=US)])

    assert message.is_mention


async def test_a_forwarded_text_is_not_the_persons(double: TelegramDouble, adapter: Telegram):
    origin = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
    message = await received(double, adapter, text="/connect 123", forward_origin=origin)

    assert (message.text, message.quoted) == ("", "/connect 123")


async def test_what_a_reply_answers_is_quoted_unless_it_is_ours(double: TelegramDouble, adapter: Telegram):
    other = {"message_id": 3, "date": 1, "chat": {"id": GROUP, "type": "supergroup"}, "text": "their words"}
    message = await received(double, adapter, text="look", reply_to_message={**other, "from": {"id": 8}})
    assert (message.quoted, message.reply_to, message.is_mention) == ("their words", f"{GROUP}:3", False)


async def test_of_our_own_message_only_the_chosen_part_is_quoted(double: TelegramDouble, adapter: Telegram):
    ours = {"message_id": 3, "date": 1, "chat": {"id": GROUP, "type": "supergroup"}, "text": "ours", "from": US}
    plain = await received(double, adapter, text="a", reply_to_message=ours)
    double.updates.clear()
    chosen = await received(double, adapter, text="b", reply_to_message=ours, quote={"text": "ur", "position": 1})

    assert [(one.quoted, one.is_mention) for one in (plain, chosen)] == [("", True), ("ur", True)]


async def test_being_in_a_topic_is_no_reply(double: TelegramDouble, adapter: Telegram):
    root = {
        "message_id": 5,
        "date": 1,
        "chat": {"id": GROUP, "type": "supergroup"},
        "from": US,
        "forum_topic_created": {},
    }
    message = await received(
        double, adapter, text="x", message_thread_id=5, is_topic_message=True, reply_to_message=root
    )

    assert (message.place.topic, message.reply_to, message.is_mention) == ("5", "", False)


async def test_a_chain_of_replies_without_topics_names_its_root(double: TelegramDouble, adapter: Telegram):
    message = await received(double, adapter, text="x", message_thread_id=5)

    assert (message.place.topic, message.wake["root"]) == ("", 5)


async def test_an_anonymous_administrator_is_no_person(double: TelegramDouble, adapter: Telegram):
    message = await received(double, adapter, text="x", sender_chat={"id": GROUP, "type": "supergroup"})

    assert message.author.is_bot


async def test_an_album_says_so_and_a_photo_is_its_largest(double: TelegramDouble, adapter: Telegram):
    small, large = double.keep(b"small"), double.keep(b"large!")
    photos = [{**large, "width": 900, "height": 1}, {**small, "width": 90, "height": 1}]
    message = await received(double, adapter, caption="two", media_group_id="77", photo=photos)

    assert (message.wake["album"], message.text) == ("77", "two")
    assert b"".join([piece async for piece in adapter.fetch(message.files[0])]) == b"large!"


async def test_a_voice_note_is_one(double: TelegramDouble, adapter: Telegram):
    message = await received(double, adapter, voice={**double.keep(b"ogg"), "mime_type": "audio/ogg", "duration": 1})

    assert message.files[0].is_voice


async def test_telegrams_own_stop_is_a_click(double: TelegramDouble, adapter: Telegram):
    double.push(stopped_message_generation={"chat": {"id": ANN, "type": "private", "first_name": "Ann"}, "draft_id": 5})
    async with Receiver(adapter) as receiver:
        click = await receiver.click()
    await adapter.answered(click, "")

    assert (click.key, click.author.id, click.place) == (STOP, str(ANN), Place(str(ANN), is_private=True, name="Ann"))


async def test_ids_may_start_anew_and_lower(double: TelegramDouble, adapter: Telegram):
    """As after a week without any update."""
    async with Receiver(adapter, cursor="9000") as receiver:
        double.write(text="after the quiet week")
        await receiver.until(lambda: receiver.cursor == "1002")


async def test_a_picture_that_telegram_cannot_show_goes_as_a_document(double: TelegramDouble, adapter: Telegram):
    async def content() -> AsyncIterator[bytes]:
        yield PNG

    async def broken() -> AsyncIterator[bytes]:
        yield b"no pict."

    for pieces in (content, broken):
        await adapter.upload(Place(str(ANN)), OutFile("a.png", 8, "image/png", pieces, "🦌" * 600), "k", {})

    kinds = [
        next(kind for kind in ("photo", "document") if kind in found["result"]) for found in double.messages.values()
    ]
    assert kinds == ["photo", "document"]
    assert [units(found["body"]["caption"]) <= 1024 for found in double.messages.values()] == [True, True]


async def test_in_a_group_an_answer_replies_and_in_a_topic_it_stays(double: TelegramDouble, adapter: Telegram):
    ref = await adapter.post(Place(str(GROUP), "5"), Part("x"), "k", {"message": 11})
    body = double.messages[ref["chat"], ref["message"]]["body"]

    assert body["message_thread_id"] == 5
    assert body["reply_parameters"] == {"message_id": 11, "allow_sending_without_reply": True}


async def test_a_webhook_of_another_program_is_named(double: TelegramDouble, adapter: Telegram):
    from starlette.responses import JSONResponse

    why = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
    double._get_updates = lambda body: _answer(JSONResponse({"ok": False, "error_code": 409, "description": why}, 409))  # type: ignore[method-assign]
    with pytest.raises(Misconfigured, match="deleteWebhook"):
        await adapter.listen(_unused, "", lambda: None)


async def test_a_wrong_token_is_signed_out_and_not_shown(double: TelegramDouble):
    adapter = Telegram("99:other", base_url=double.http)
    with pytest.raises(SignedOut) as caught:
        await adapter.identify()
    await adapter.aclose()

    assert "99:other" not in str(caught.value) and "BotFather" in str(caught.value)


async def test_a_click_on_a_vanished_message_still_arrives(double: TelegramDouble, adapter: Telegram):
    ref = await adapter.post(Place(str(ANN)), Part("x"), "k", {})
    double.messages[ref["chat"], ref["message"]]["result"] = {
        "message_id": ref["message"],
        "date": 0,
        "chat": {"id": ref["chat"], "type": "private"},
    }
    double.press(ref["chat"], ref["message"], "yes")
    async with Receiver(adapter) as receiver:
        click = await receiver.click()

    assert isinstance(click, Click) and click.ref == ref


async def test_a_rich_message_has_tables_and_goes_as_plain_text_where_telegram_refuses_it(double: TelegramDouble):
    adapter, place = Telegram(double.token, base_url=double.http, rich=True), Place(str(ANN), is_private=True)
    [text] = parts("| a | b |\n|--|--|\n| $x$ | 1 |", adapter.caps.dialect)
    ref = await adapter.post(place, Part(text), "k", {})
    shown = double.messages[ref["chat"], ref["message"]]["body"]
    await adapter.edit(place, ref, Part("# Done"), 2)
    await adapter.edit(place, ref, Part("# Done"), 3)
    edited = double.messages[ref["chat"], ref["message"]]["body"]
    long = await adapter.post(place, Part("\n| 1 |" * 501), "k", {})
    await adapter.aclose()

    assert shown["rich_message"] == {"markdown": text, "skip_entity_detection": True}
    assert "| \\$x\\$ | 1 |" in text and "| -- | -- |" in text
    assert edited["rich_message"]["markdown"] == "# Done" and edited["text"] is None
    plain = double.messages[long["chat"], long["message"]]["body"]
    assert plain["text"].startswith("\n| 1 |") and "parse_mode" not in plain


async def _answer(response: Any) -> Any:
    return response


async def _unused(events: object, cursor: object) -> None:
    pass
