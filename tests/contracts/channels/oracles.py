"""The official clients of platforms, as users of our doubles: what they accept, our adapters may rely on.

``python -m tests.contracts.channels.oracles telegram``, with what ``requirements/oracles.txt`` installs; it prints one line a fact and
fails with the first that does not hold. ``test_oracles.py`` does that nightly.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable
from typing import Any

from tests.support.channels import discord_double
from tests.support.channels.discord_double import DiscordDouble
from tests.support.channels.double import LATER, Fault, Operation
from tests.support.channels.slack_double import CHANNEL, US, SlackDouble
from tests.support.channels.telegram_double import ANN, TelegramDouble


def holds(fact: str, is_so: object) -> None:
    print("ok  " if is_so else "FAIL", fact)
    assert is_so, fact


async def until(condition: Callable[[], object]) -> bool:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)
    return True


async def aiogram_accepts(double: TelegramDouble) -> None:
    from aiogram import Bot, Dispatcher
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer
    from aiogram.enums import ParseMode
    from aiogram.exceptions import (
        TelegramBadRequest,
        TelegramRetryAfter,
        TelegramUnauthorizedError,
    )
    from aiogram.types import BufferedInputFile, InlineKeyboardButton, InlineKeyboardMarkup

    api = TelegramAPIServer.from_base(double.http)
    bot, dispatcher = Bot(double.token, session=AiohttpSession(api=api)), Dispatcher()
    texts: list[str | None] = []
    clicks: list[str | None] = []
    stops: list[int] = []

    async def on_message(message: Any) -> None:
        texts.append(message.text)

    async def on_click(query: Any) -> None:
        clicks.append(query.data)
        await query.answer("seen")

    async def on_stop(stopped: Any) -> None:
        stops.append(stopped.draft_id)

    dispatcher.message.register(on_message)
    dispatcher.callback_query.register(on_click)
    dispatcher.stopped_message_generation.register(on_stop)
    polling = asyncio.create_task(dispatcher.start_polling(bot, handle_signals=False, polling_timeout=1))
    double.write(text="hi 🦌")
    holds("aiogram receives a message", await until(lambda: texts == ["hi 🦌"]))
    keyboard = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="yes")]])
    sent = await bot.send_message(ANN, "<b>a</b>", parse_mode=ParseMode.HTML, reply_markup=keyboard)
    double.press(ANN, sent.message_id, "yes")
    holds("it receives a click and answers it", await until(lambda: clicks == ["yes"] and double.answers))
    double.push(stopped_message_generation={"chat": {"id": ANN, "type": "private", "first_name": "Ann"}, "draft_id": 5})
    holds("it receives Telegram's own stop", await until(lambda: stops == [5]))
    edited = await bot.edit_message_text("b", chat_id=ANN, message_id=sent.message_id)
    holds("it edits", edited is not True and double.messages[ANN, sent.message_id]["result"]["text"] == "b")
    for error, act in (
        (TelegramBadRequest, lambda: bot.edit_message_text("b", chat_id=ANN, message_id=sent.message_id)),
        (TelegramRetryAfter, _failing(double, Fault.LATER, lambda: bot.send_message(ANN, "x"))),
        (TelegramUnauthorizedError, _failing(double, Fault.SIGNED_OUT, lambda: bot.send_message(ANN, "x"))),
    ):
        try:
            await act()
        except error as caught:
            holds(f"it raises {error.__name__}", getattr(caught, "retry_after", LATER) == LATER)
        else:
            holds(f"it raises {error.__name__}", False)
    await bot.send_document(ANN, BufferedInputFile(b"x" * 5000, "répört.txt"), caption="it")
    holds("it sends a document", double.uploads == [("répört.txt", b"x" * 5000)])
    number = double.keep(b"from a person")["file_id"]
    content = await bot.download_file((await bot.get_file(number)).file_path or "")
    holds("it fetches a file", content is not None and content.read() == b"from a person")
    await dispatcher.stop_polling()
    await asyncio.gather(polling, return_exceptions=True)
    await bot.session.close()


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


async def discord_py_accepts(double: DiscordDouble) -> None:
    import discord
    import yarl

    discord.http.Route.BASE = double.http
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(double.ws)
    client = discord.Client(intents=discord.Intents(guilds=True, messages=True, message_content=True))
    messages: list[Any] = []
    clicks: list[Any] = []

    async def on_message(message: Any) -> None:
        if message.author != client.user:
            messages.append(message)

    async def on_interaction(interaction: Any) -> None:
        await interaction.response.send_message("seen", ephemeral=True)
        clicks.append(interaction)

    client.event(on_message)
    client.event(on_interaction)
    running = asyncio.create_task(client.start(discord_double.TOKEN))
    holds("discord.py signs in", await until(client.is_ready))
    holds("it knows itself", client.user is not None and str(client.user.id) == discord_double.ME["id"])
    attachment = double.attachment("in.txt", b"from a person")
    await double.say("hi 🦌", channel=discord_double.PRIVATE, attachments=[attachment])
    holds("it receives a message", await until(lambda: [one.content for one in messages] == ["hi 🦌"]))
    holds("it fetches a file", await messages[0].attachments[0].read() == b"from a person")
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="Yes", custom_id="yes"))
    sent = await messages[0].channel.send("May I?", view=view, nonce="1")
    place = discord_double.PRIVATE, str(sent.id)
    await double.click(double.found(*place), "yes")
    holds("it receives a click and answers it", await until(lambda: clicks and double.callbacks))
    holds("it knows the button", clicks[0].data["custom_id"] == "yes" and clicks[0].user.id == 7)
    await sent.edit(content="Allowed", view=None)
    found = double.found(*place)
    holds("it edits", (found["content"], found["components"]) == ("Allowed", []))
    await sent.channel.send(file=discord.File(io.BytesIO(b"x" * 5000), "report.txt"))
    holds("it sends a file", b"x" * 5000 in double.files.values())
    await messages[0].add_reaction("👀")
    holds("it reacts", double.reactions)
    double.fail(Operation.POST, Fault.REFUSED)
    try:
        await sent.channel.send("x")
    except discord.Forbidden as caught:
        holds("it raises Forbidden", caught.code == 50013)
    else:
        holds("it raises Forbidden", False)
    double.fail(Operation.POST, Fault.LATER)
    await sent.channel.send("after a pause")
    holds("it waits when asked to, and sends then", double.messages[place[0]][-1]["content"] == "after a pause")
    history = [one.content async for one in sent.channel.history(limit=10, after=messages[0])]
    holds("it reads history, oldest first", history == ["Allowed", "", "after a pause"])
    for link in double.links:
        link.abort()
    await double.say("while away", channel=discord_double.PRIVATE)
    holds("it resumes its session and gets what it missed", await until(lambda: messages[-1].content == "while away"))
    holds("it resumed", double.resumed and len(double.identified) == 1)
    await client.close()
    await asyncio.gather(running, return_exceptions=True)


def _failing(double: TelegramDouble, fault: Fault, act: Callable[[], Any]) -> Callable[[], Any]:
    def struck() -> Any:
        double.fail(Operation.POST, fault)
        return act()

    return struck


async def telegram() -> None:
    async with TelegramDouble() as double:
        await aiogram_accepts(double)


async def slack() -> None:
    async with SlackDouble() as double:
        await slack_sdk_accepts(double)


async def discord() -> None:
    async with DiscordDouble() as double:
        await discord_py_accepts(double)


if __name__ == "__main__":
    asyncio.run({"telegram": telegram, "slack": slack, "discord": discord}[sys.argv[1]]())
