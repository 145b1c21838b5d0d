"""slack-sdk against our Slack."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.contracts.channels.oracle import holds, until
from tests.support.channels.double import Fault, Operation
from tests.support.channels.slack_double import CHANNEL, US, SlackDouble


async def slack_sdk_accepts(double: SlackDouble) -> None:
    from slack_sdk.errors import SlackApiError
    from slack_sdk.socket_mode.aiohttp import SocketModeClient
    from slack_sdk.socket_mode.response import SocketModeResponse
    from slack_sdk.web.async_client import AsyncWebClient

    web = AsyncWebClient(double.bot_token, base_url=double.api)
    client = SocketModeClient(double.app_token, web_client=web, ping_interval=2)
    got: list[Any] = []

    def opened() -> int:
        return sum(request.url.path.endswith("/apps.connections.open") for request in double.requests)

    async def on_request(_: Any, request: Any) -> None:
        got.append(request)
        await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    client.socket_mode_request_listeners.append(on_request)
    await client.connect()
    await until(lambda: double.links)
    await double.write(CHANNEL, text=f"<@{US}> hi")
    holds("slack-sdk receives and acknowledges both events", await until(lambda: len(double.acknowledged) == 2))
    holds("it knows itself", (await web.auth_test())["user_id"] == US)
    buttons = [{"type": "button", "action_id": "yes", "value": "yes", "text": {"type": "plain_text", "text": "Yes"}}]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "May I?"}}
    blocks = [section, {"type": "actions", "elements": buttons}]
    sent = await web.chat_postMessage(channel=CHANNEL, text="May I?", blocks=blocks, thread_ts="1.1")
    await double.press(CHANNEL, sent["ts"], "yes")
    holds("it receives a click", await until(lambda: got[-1].type == "interactive"))
    await web.chat_update(channel=CHANNEL, ts=sent["ts"], text="Allowed", blocks=[section])
    holds("it edits", double.messages[CHANNEL, sent["ts"]]["text"] == "Allowed")
    await web.files_upload_v2(channel=CHANNEL, filename="r.txt", content=b"hello")
    holds("it sends a file in three steps", double.uploads == [("r.txt", b"hello")])
    await web.reactions_add(channel=CHANNEL, name="eyes", timestamp="1.1")
    holds("it reacts", double.reactions)
    for fault, error in ((Fault.LATER, "ratelimited"), (Fault.SIGNED_OUT, "token_revoked")):
        double.fail(Operation.POST, fault)
        try:
            await web.chat_postMessage(channel=CHANNEL, text="x")
        except SlackApiError as caught:
            holds(f"it raises {error}", caught.response["error"] == error)
        else:
            holds(f"it raises {error}", False)
    history = await web.conversations_history(channel=CHANNEL, oldest="0")
    holds("it reads history", [one["text"] for one in history["messages"]] == [f"<@{US}> hi"])
    count = opened()
    await double.refresh()
    holds("it opens a new link when one is announced to end", await until(lambda: opened() > count))
    await client.close()


async def main() -> None:
    async with SlackDouble() as double:
        await slack_sdk_accepts(double)


if __name__ == "__main__":
    asyncio.run(main())
