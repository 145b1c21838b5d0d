"""lark-oapi against our Feishu."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from contextlib import suppress
from typing import Any

from tests.contracts.channels.oracle import holds, until
from tests.support.channels.double import LATER, Fault, Operation
from tests.support.channels.feishu_double import BOT, CHAT, FeishuDouble

from deerflow.features.channels.types import Button, Part, Place
from deerflow_app.channels.adapters.feishu_card import card_of

PLACE = Place(CHAT, is_private=True)


def listening(double: FeishuDouble, handler: Any) -> threading.Thread:
    """Begin a client of the long connection; it blocks, and has its loop in a global of its module."""
    import lark_oapi as lark
    from lark_oapi.ws import client as module

    def run() -> None:
        module.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(module.loop)
        client = lark.ws.Client("cli_1", "app-secret", event_handler=handler, domain=double.http)
        with suppress(RuntimeError):  # its loop is stopped at the end
            client.start()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


async def lark_receives(double: FeishuDouble) -> None:
    import lark_oapi as lark
    from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse

    texts: list[str] = []
    clicks: list[Any] = []

    def on_message(event: Any) -> None:
        texts.append(json.loads(event.event.message.content)["text"])

    def on_click(event: Any) -> Any:
        clicks.append(event.event)
        return P2CardActionTriggerResponse({"toast": {"type": "info", "content": "seen"}})

    builder = lark.EventDispatcherHandler.builder("", "").register_p2_im_message_receive_v1(on_message)
    listening(double, builder.register_p2_card_action_trigger(on_click).build())
    await until(lambda: double.links)
    await double.write({"text": "hi 🦌"})
    holds("lark-oapi receives a message and acknowledges it", await until(lambda: texts and not double.waiting))
    double.parts = 3
    await double.write({"text": "long" * 500})
    holds("it puts the parts of an event together", await until(lambda: texts[1:] == ["long" * 500]))
    double.parts = 1
    await until(lambda: double.pings > 1)
    holds("it pings as often as it is asked to", double.pings)
    dead = double.links[-1]
    dead.is_silent = True
    await double.write({"text": "while away"})
    dead.abort()
    holds("it connects again and gets what it missed", await until(lambda: texts[2:] == ["while away"]))
    delivery = await double.press(double.messages[0], "yes")
    await double.until_acknowledged(delivery)
    holds("it receives a click and answers it with a toast", double.toasts() == ["seen"])
    value, person = clicks[0].action.value, clicks[0].operator.open_id
    holds("it knows the button and the person", value["key"] == "yes" and person == "ou_ann")


async def lark_sends(double: FeishuDouble) -> None:
    import lark_oapi as lark
    from lark_oapi.api.im.v1 import (
        CreateFileRequest,
        CreateFileRequestBody,
        CreateMessageReactionRequest,
        CreateMessageReactionRequestBody,
        CreateMessageRequest,
        CreateMessageRequestBody,
        Emoji,
        GetMessageResourceRequest,
        PatchMessageRequest,
        PatchMessageRequestBody,
        ReplyMessageRequest,
        ReplyMessageRequestBody,
    )

    client = lark.Client.builder().app_id("cli_1").app_secret("app-secret").domain(double.http).build()
    im = client.im.v1

    def post(key: str, content: Any, kind: str = "interactive") -> Any:
        body = CreateMessageRequestBody.builder().receive_id(CHAT).msg_type(kind).content(json.dumps(content))
        request = CreateMessageRequest.builder().receive_id_type("chat_id").request_body(body.uuid(key).build())
        return asyncio.to_thread(im.message.create, request.build())

    who = lark.BaseRequest.builder().http_method(lark.HttpMethod.GET).uri("/open-apis/bot/v3/info")
    me = await asyncio.to_thread(client.request, who.token_types({lark.AccessTokenType.TENANT}).build())
    holds("it knows itself", json.loads(me.raw.content)["bot"]["open_id"] == BOT)
    sent = await post("k1", card_of(PLACE, Part("May I?", buttons=[Button("yes", "Yes")])))
    holds("it sends a card of ours", sent.success() and double.text(double.messages[0]) == "May I?")
    again = await post("k1", card_of(PLACE, Part("May I?")))
    holds("the same key is the same message", again.data.message_id == sent.data.message_id)
    content = json.dumps(card_of(PLACE, Part("Allowed", buttons=[Button("yes", "Yes")])))
    change = PatchMessageRequest.builder().message_id(sent.data.message_id)
    body = PatchMessageRequestBody.builder().content(content).build()
    changed = await asyncio.to_thread(im.message.patch, change.request_body(body).build())
    holds("it edits", changed.success() and double.text(double.messages[0]) == "Allowed")
    reply = ReplyMessageRequestBody.builder().content('{"text": "in a thread"}').msg_type("text").reply_in_thread(True)
    request = ReplyMessageRequest.builder().message_id(sent.data.message_id).request_body(reply.uuid("k2").build())
    replied = await asyncio.to_thread(im.message.reply, request.build())
    holds("it replies in a thread", replied.success() and double.messages[1].in_thread)
    await lark_streams(double, client, post)
    file = (
        CreateFileRequestBody.builder()
        .file_type("stream")
        .file_name("report.txt")
        .file(("report.txt", io.BytesIO(b"x" * 5000)))
    )
    kept = await asyncio.to_thread(im.file.create, CreateFileRequest.builder().request_body(file.build()).build())
    holds("it uploads a file", double.kept[kept.data.file_key] == ("report.txt", b"x" * 5000))
    double.files["f1"] = b"from a person"
    resource = GetMessageResourceRequest.builder().message_id("om_in1").file_key("f1").type("file").build()
    fetched = await asyncio.to_thread(im.message_resource.get, resource)
    holds("it fetches a file", fetched.file.read() == b"from a person")
    emoji = CreateMessageReactionRequestBody.builder().reaction_type(Emoji.builder().emoji_type("OK").build()).build()
    reaction = CreateMessageReactionRequest.builder().message_id("om_in1").request_body(emoji).build()
    await asyncio.to_thread(im.message_reaction.create, reaction)
    holds("it reacts", double.reactions == [("om_in1", "OK")])
    double.fail(Operation.POST, Fault.LATER)
    late = await post("k3", {"text": "x"}, "text")
    reset = late.raw.headers["x-ogw-ratelimit-reset"]
    holds("it reads that it shall wait", late.code == 99991400 and float(reset) == LATER)
    double.fail(Operation.POST, Fault.REFUSED)
    holds("it reads a refusal", (await post("k4", {"text": "x"}, "text")).code == 230002)
    double.is_expired = True
    await post("k5", {"text": "x"}, "text")
    holds("it gets another token when one has ended early", (await post("k6", {"text": "x"}, "text")).success())


async def lark_streams(double: FeishuDouble, client: Any, post: Any) -> None:
    from lark_oapi.api.cardkit.v1 import (
        Card,
        ContentCardElementRequest,
        ContentCardElementRequestBody,
        IdConvertCardRequest,
        IdConvertCardRequestBody,
        SettingsCardRequest,
        SettingsCardRequestBody,
        UpdateCardRequest,
        UpdateCardRequestBody,
    )

    cards, elements = client.cardkit.v1.card, client.cardkit.v1.card_element
    sent = await post("s1", card_of(PLACE, Part("…"), is_streaming=True))
    convert = IdConvertCardRequestBody.builder().message_id(sent.data.message_id).build()
    found = await asyncio.to_thread(cards.id_convert, IdConvertCardRequest.builder().request_body(convert).build())
    card = found.data.card_id
    entity = double.cards[sent.data.message_id]

    async def write(text: str, sequence: int) -> int:
        body = ContentCardElementRequestBody.builder().content(text).sequence(sequence).build()
        request = ContentCardElementRequest.builder().card_id(card).element_id("text").request_body(body).build()
        return (await asyncio.to_thread(elements.content, request)).code

    holds("it writes into a card", await write("a", 1) == 0 and entity.card["body"]["elements"][0]["content"] == "a")
    holds("a number that does not grow is refused", await write("b", 1) == 300317)
    settings = json.dumps({"config": {"streaming_mode": False}})
    body = SettingsCardRequestBody.builder().settings(settings).sequence(2).build()
    request = SettingsCardRequest.builder().card_id(card).request_body(body).build()
    holds("it ends the writing", (await asyncio.to_thread(cards.settings, request)).success())
    holds("nothing is written after that", await write("c", 3) == 300309)
    made = Card.builder().type("card_json").data(json.dumps(card_of(PLACE, Part("all"), card=card))).build()
    body = UpdateCardRequestBody.builder().card(made).sequence(4).build()
    request = UpdateCardRequest.builder().card_id(card).request_body(body).build()
    done = await asyncio.to_thread(cards.update, request)
    holds("it replaces the card", done.success() and entity.card["body"]["elements"][0]["content"] == "all")


async def main() -> None:
    async with FeishuDouble() as double:
        double.ping, double.nonce = 1, 0
        await lark_sends(double)
        await lark_receives(double)


if __name__ == "__main__":
    asyncio.run(main())
