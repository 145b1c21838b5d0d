"""dingtalk-stream against our DingTalk."""

from __future__ import annotations

import asyncio
import os
import threading
from types import SimpleNamespace
from typing import Any

from tests.contracts.channels.oracle import holds, until
from tests.support.channels.dingtalk_double import ANN, CLICK, GROUP, MESSAGE, DingTalkDouble

BUTTONS = (
    '[{"text": "Yes", "event": {"type": "sendCardRequest", "params": {"actionId": "yes", "params": {"key": "yes"}}}}]'
)
TEMPLATE = "template.schema"


def client_of(double: DingTalkDouble) -> Any:
    """Return a client of the double: one address is in the environment, the older one stands in the text of a function."""
    os.environ["DINGTALK_OPENAPI_ENDPOINT"] = double.http
    import dingtalk_stream
    import requests
    from dingtalk_stream import stream

    def post(url: str, **more: Any) -> Any:
        return requests.post(url.replace("https://oapi.dingtalk.com", double.http), **more)

    stream.requests = SimpleNamespace(post=post)
    return dingtalk_stream.DingTalkStreamClient(dingtalk_stream.Credential("client-1", "client-secret"))


async def dingtalk_stream_accepts(double: DingTalkDouble) -> None:
    client = client_of(double)
    import dingtalk_stream
    from dingtalk_stream import AckMessage, CallbackHandler, CardCallbackMessage, ChatbotMessage

    messages: list[Any] = []
    clicks: list[Any] = []

    class OnMessage(CallbackHandler):
        async def process(self, callback: Any) -> tuple[int, str]:
            messages.append(ChatbotMessage.from_dict(callback.data))
            return AckMessage.STATUS_OK, "OK"

    class OnClick(CallbackHandler):
        async def process(self, callback: Any) -> tuple[int, str]:
            clicks.append(CardCallbackMessage.from_dict(callback.data))
            return AckMessage.STATUS_OK, "OK"

    client.register_callback_handler(ChatbotMessage.TOPIC, OnMessage())
    client.register_callback_handler(CallbackHandler.TOPIC_CARD_CALLBACK, OnClick())
    threading.Thread(target=lambda: asyncio.run(client.start()), daemon=True).start()  # it blocks its loop
    holds("dingtalk-stream opens a stream", await until(lambda: double.links))
    topics = {one["topic"] for one in double.opened[0]["subscriptions"]}
    holds("it asks for our topics", topics == {MESSAGE, CLICK})
    await double.write("hi 🦌")
    holds("it receives a message and acknowledges it", await until(lambda: messages and not double.waiting))
    got = messages[0]
    holds("it knows text and author", (got.text.content.strip(), got.sender_staff_id) == ("hi 🦌", ANN))
    await dingtalk_stream_sends(double, dingtalk_stream.AICardReplier(client, got))
    await double.write("in a group", conversationId=GROUP, conversationType="2", isInAtList=True)
    await until(lambda: len(messages) == 2)
    in_group = dingtalk_stream.AICardReplier(client, messages[1])
    card = await asyncio.to_thread(in_group.create_and_deliver_card, TEMPLATE, {"content": "all", "buttons": BUTTONS})
    holds("it sends a card to a group", double.cards[card].space == f"IM_GROUP.{GROUP}")
    await double.until_acknowledged(await double.press(card, "yes"))
    params = clicks[0].content["cardPrivateData"]["params"]
    holds("it receives a click", (params, clicks[0].user_id) == ({"key": "yes"}, ANN))
    media = await asyncio.to_thread(client.upload_to_dingtalk, b"x" * 5000, "file", "report.txt", "text/plain")
    holds("it uploads a file", double.kept[media] == ("report.txt", b"x" * 5000))
    double.files["code-1"] = b"from a person"
    handler = dingtalk_stream.ChatbotHandler()
    handler.dingtalk_client = client
    address = await asyncio.to_thread(handler.get_image_download_url, "code-1")
    holds("it gets the address of a file", address == f"{double.http}/dl/code-1")
    await double.until_acknowledged(ping := await double.deliver("ping", {"opaque": "o"}, "SYSTEM"))
    holds("it answers a ping with what that brought", double.acknowledged[ping]["data"] == '{"opaque": "o"}')
    await double.deliver("disconnect", {"reason": "maintenance"}, "SYSTEM")
    holds("it opens another stream when asked to", await until(lambda: len(double.opened) == 2 and double.links))
    await double.write("after that")
    holds("it goes on", await until(lambda: messages[-1].text.content.strip() == "after that"))


async def dingtalk_stream_sends(double: DingTalkDouble, replier: Any) -> None:
    values = {"content": "…", "buttons": "[]", "flowStatus": "1"}
    number = await asyncio.to_thread(replier.create_and_deliver_card, TEMPLATE, values)
    card = double.cards[number]
    holds("it sends a card", (card.space, card.values["content"]) == (f"IM_ROBOT.{ANN}", "…"))
    for text, is_last in (("a", False), ("ab", True)):
        await asyncio.to_thread(replier.streaming, number, "content", text, False, is_last, False)
        holds(
            f"it writes {text} into it",
            (card.values["content"], card.values["flowStatus"]) == (text, "32"[not is_last]),
        )
    await asyncio.to_thread(replier.streaming, number, "content", "late", False, True, False)
    holds("nothing is written after the last", card.values["content"] == "ab")
    by_key = {"cardUpdateOptions": {"updateCardDataByKey": True}}
    await asyncio.to_thread(replier.put_card_data, number, {"buttons": BUTTONS}, **by_key)
    holds("it changes one variable", (card.values["content"], double.keys(card)) == ("ab", ("yes",)))
    await asyncio.to_thread(replier.finish, number, {"content": "all"})
    holds("it replaces all of them", card.values == {"content": "all", "flowStatus": "3"})


async def main() -> None:
    async with DingTalkDouble() as double:
        await dingtalk_stream_accepts(double)


if __name__ == "__main__":
    asyncio.run(main())
