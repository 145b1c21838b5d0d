from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from tests.contracts.channels.receiver import Receiver
from tests.support.channels.double import Fault, Operation
from tests.support.channels.wechat_double import TOKEN, WeChatDouble

from deerflow.features.channels.types import OutFile, Part, Refused, SignedOut, Unreachable
from deerflow_app.channels.adapters.wechat import WeChat
from deerflow_app.channels.adapters.wechat_login import WeChatLogin
from deerflow_app.channels.qr_login import QrState


def _text(content: str) -> dict[str, object]:
    return {"type": 1, "text_item": {"text": content}}


@dataclass
class World:
    double: WeChatDouble
    adapter: WeChat
    receiver: Receiver


def _adapter(double: WeChatDouble, token: str = TOKEN) -> WeChat:
    return WeChat(
        token, bot_id="b@im.bot", base_url=double.http, cdn_base_url=f"{double.http}/c2c", app_id="app", route_tag="r1"
    )


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with WeChatDouble() as double:
        adapter = _adapter(double)
        async with Receiver(adapter) as receiver:
            yield World(double, adapter, receiver)
        await adapter.aclose()


async def test_an_answer_brings_the_token_of_its_question_and_a_reminder_the_newest(world: World):
    ids = [str(world.double.write(_text(text))["message_id"]) for text in ("one", "two")]
    one, two = [await world.receiver.message(each) for each in ids]
    await world.adapter.post(one.place, Part("to one"), "k1", one.wake)
    await world.adapter.post(one.place, Part("a reminder"), "k2", {})

    tokens = [message["context_token"] for message in world.double.sent]
    assert tokens == [one.wake["context_token"], two.wake["context_token"]]
    assert [message["client_id"] for message in world.double.sent] == ["k1", "k2"]


async def test_the_eleventh_message_without_a_new_question_is_refused(world: World):
    asked = await world.receiver.message(str(world.double.write(_text("hello"))["message_id"]))
    for number in range(world.adapter.caps.unprompted or 0):
        await world.adapter.post(asked.place, Part(str(number)), f"k{number}", asked.wake)

    with pytest.raises(Refused, match="context_token"):
        await world.adapter.post(asked.place, Part("eleven"), "k11", asked.wake)


async def test_requests_say_who_we_are(world: World):
    await world.receiver.until(lambda: world.double.requests)
    headers = world.double.requests[-1].headers

    assert headers["authorizationtype"] == "ilink_bot_token"
    assert (headers["ilink-app-id"], headers["skroutetag"]) == ("app", "r1")
    assert base64.b64decode(headers["x-wechat-uin"]).isdigit()


async def test_a_token_that_has_expired_asks_for_a_new_code():
    async with WeChatDouble() as double:
        adapter = _adapter(double, "old")
        with pytest.raises(SignedOut, match="Scan a new QR code"):
            await adapter.identify()
        await adapter.aclose()


async def test_a_poll_that_is_refused_is_tried_again(world: World):
    world.double.fail(Operation.LISTEN, Fault.REFUSED, 2)
    await world.receiver.message(str(world.double.write(_text("after"))["message_id"]))

    assert all(isinstance(end, Unreachable) for end in world.receiver.ends)


async def test_our_own_messages_are_not_heard(world: World):
    world.double.write(_text("of the bot"), message_type=2)
    await world.receiver.message(str(world.double.write(_text("after"))["message_id"]))

    assert [message.text for message in world.receiver.messages] == ["after"]


async def test_voice_pictures_and_quotes_arrive(world: World):
    media = world.double.keep(b"JPEG")
    raw = base64.b64decode(media["aes_key"]).decode()
    pictures = [
        {"type": 2, "image_item": {"media": {"encrypt_query_param": media["encrypt_query_param"], **key}, **more}}
        for key, more in (
            ({"aes_key": media["aes_key"]}, {}),
            ({"aes_key": base64.b64encode(bytes.fromhex(raw)).decode()}, {}),
            ({}, {"aeskey": raw}),
        )
    ]
    quote = {"title": "Bob", "message_item": _text("what Bob said")}
    voice = {"type": 3, "voice_item": {"media": media, "text": "spoken"}}
    said = world.double.write({**_text("see"), "ref_msg": quote}, *pictures, voice)
    message = await world.receiver.message(str(said["message_id"]))

    assert (message.text, message.quoted) == ("see\nspoken", "Bob\nwhat Bob said")
    assert [file.name for file in message.files] == ["image.jpg"] * 3
    for file in message.files:
        assert b"".join([piece async for piece in world.adapter.fetch(file)]) == b"JPEG"


async def test_a_picture_goes_out_as_one(world: World):
    asked = await world.receiver.message(str(world.double.write(_text("hello"))["message_id"]))

    async def pieces() -> AsyncIterator[bytes]:
        yield b"PNG" * 1000

    await world.adapter.upload(asked.place, OutFile("a.png", 3000, "image/png", pieces, "a caption"), "k1", asked.wake)
    assert world.double.received == [("image", b"PNG" * 1000)]
    assert [message["item_list"] for message in world.double.sent] == [[_text("a caption")]]


async def test_a_sign_in_goes_from_the_code_to_the_token():
    confirmed = {
        "status": "confirmed",
        "bot_token": "t",
        "ilink_bot_id": "b",
        "ilink_user_id": "u",
        "baseurl": "https://b.example",
    }
    async with WeChatDouble() as double:
        double.qr = [
            {"status": "wait"},
            {"status": "scaned_but_redirect", "redirect_host": "sh.ilinkai.weixin.qq.com"},
            {"status": "scaned_but_redirect", "redirect_host": "evil.example"},
            {"status": "need_verifycode"},
            {"status": "something new"},
            confirmed,
            {"status": "expired"},
            {"status": "canceled"},
        ]
        address = double.http
        login = WeChatLogin(address)
        code = await login.begin()
        seen = [await login.poll(code.id, code.server, "12") for _ in range(8)]

    assert code.content.endswith("/qr-1")
    assert [one.state for one in seen] == [
        QrState.WAITING,
        QrState.SCANNED,
        QrState.SCANNED,
        QrState.NEEDS_CODE,
        QrState.WAITING,
        QrState.CONFIRMED,
        QrState.EXPIRED,
        QrState.CANCELED,
    ]
    assert [one.server for one in seen[1:3]] == ["https://sh.ilinkai.weixin.qq.com", address]
    assert seen[5].settings == {"bot_token": "t", "ilink_bot_id": "b", "base_url": "https://b.example"}
    assert double.requests[0].query_params["bot_type"] == "3"
    assert double.requests[1].query_params["verify_code"] == "12"


async def test_an_account_that_another_bot_holds_is_not_signed_in():
    async with WeChatDouble() as double:
        double.qr = [{"status": "binded_redirect"}]
        with pytest.raises(Refused, match="already connected"):
            await WeChatLogin(double.http).poll("qr-1", double.http)


@pytest.mark.parametrize("server", ["https://evil.example", "https://evil.example/.qq.com", "http://a.qq.com", "[", ""])
async def test_a_code_is_asked_for_at_no_strange_server(server: str):
    with pytest.raises(Refused, match="no server of WeChat"):
        await WeChatLogin().poll("qr-1", server)
