"""wecom-aibot-python-sdk against our WeCom."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.contracts.channels.oracle import holds, until
from tests.support.channels.double import Fault, Operation
from tests.support.channels.wecom_double import ANN, EXPIRED, WeComDouble

from deerflow.features.channels.types import Button, Part
from deerflow_app.channels.adapters.wecom_events import card_of


def client_of(double: WeComDouble, secret: str) -> Any:
    """Return a client of the double. It wants a certificate of every address, so that is left out where it connects."""
    import websockets
    from aibot import WSClient, WSClientOptions, ws

    def connect(url: str, **more: Any) -> Any:
        return websockets.connect(url, **{**more, "ssl": None})

    ws.websockets = SimpleNamespace(connect=connect, exceptions=websockets.exceptions)
    return WSClient(WSClientOptions(double.bot_id, secret, ws_url=double.ws, heartbeat_interval=100))


async def wecom_aibot_accepts(double: WeComDouble) -> None:
    client, got = client_of(double, double.secret), list[Any]()
    events: list[Any] = []
    signed_in: list[bool] = []
    client.on("message", got.append)
    client.on("event", events.append)
    client.on("authenticated", lambda: signed_in.append(True))
    await client.connect()
    holds("wecom-aibot signs in", await until(lambda: signed_in))
    await until(lambda: sum(frame["cmd"] == "ping" for frame in double.frames) > 3)
    holds("its signs of life are answered", client.is_connected)
    await double.write({"msgtype": "text", "text": {"content": "hi 🦌"}})
    holds("it receives a message", await until(lambda: got and got[0]["body"]["text"]["content"] == "hi 🦌"))
    await client.reply_stream(got[0], "s1", "part")
    await client.reply_stream(got[0], "s1", "all", finish=True)
    bubble = double.streams["s1"]
    holds("it writes an answer and ends it", (bubble.text, bubble.is_finished) == ("all", True))
    await refused(client.reply_stream(got[0], "s1", "more"), str(EXPIRED), "it reads that a stream has ended")
    await client.send_message(ANN, {"msgtype": "markdown", "markdown": {"content": "unprompted"}})
    holds("it sends unprompted", double.bubbles[-1].text == "unprompted")
    card = card_of(Part("May I?", buttons=[Button("yes", "Yes"), Button("no", "No")]), "t1")
    await client.send_message(ANN, {"msgtype": "template_card", "template_card": card})
    holds("it sends a card of ours", double.bubbles[-1].keys == ("yes", "no"))
    await double.press("t1", "yes")
    await until(lambda: events)
    event = events[0]["body"]["event"]
    holds("it receives a click", event["template_card_event"]["event_key"] == "yes")
    await client.update_template_card(events[0], card_of(Part("Allowed"), "t1"))
    holds("it changes the card", (double.bubbles[-1].text, double.bubbles[-1].keys) == ("Allowed", ()))
    kept = double.keep("répört.txt", b"from a person" * 100)
    content, name = await client.download_file(kept["url"], kept["aeskey"])
    holds("it fetches a file and opens it", (content, name) == (b"from a person" * 100, "répört.txt"))
    double.fail(Operation.POST, Fault.REFUSED)
    await refused(
        client.send_message(ANN, {"msgtype": "markdown", "markdown": {"content": "x"}}), "40058", "it reads a refusal"
    )
    other = client_of(double, double.secret)
    await other.connect()
    holds("it reads that another program took its place", await until(lambda: events[1:]))
    holds("by its name", events[1]["body"]["event"]["eventtype"] == "disconnected_event")
    client.disconnect()
    wrong, errors = client_of(double, "wrong"), list[str]()
    wrong.on("error", lambda error: errors.append(str(error)))
    await wrong.connect()
    holds("it reads that a secret is wrong", await until(lambda: errors and "40001" in errors[0]))
    for one in (other, wrong):
        one.disconnect()


async def refused(act: Any, code: str, fact: str) -> None:
    try:
        await act
    except RuntimeError as error:
        holds(fact, code in str(error))
    else:
        holds(fact, False)


async def main() -> None:
    async with WeComDouble() as double:
        await wecom_aibot_accepts(double)


if __name__ == "__main__":
    asyncio.run(main())
