"""discord.py against our Discord."""

from __future__ import annotations

import asyncio
import io
from typing import Any

from tests.contracts.channels.oracle import holds, until
from tests.support.channels import discord_double
from tests.support.channels.discord_double import DiscordDouble
from tests.support.channels.double import Fault, Operation


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


async def main() -> None:
    async with DiscordDouble() as double:
        await discord_py_accepts(double)


if __name__ == "__main__":
    asyncio.run(main())
