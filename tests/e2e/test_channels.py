"""A task given in Telegram: the whole server, the real adapter, and a platform on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.support.channels.telegram_double import ANN, TelegramDouble
from tests.support.gateway_process import PASSWORD, GatewayProcess

GIVE_UP = 60.0
CONFIG = """\
channels:
  telegram:
    enabled: true
    bot_token: "{token}"
    base_url: {url}
"""


class World:
    """A gateway with a bot on Telegram, and its administrator."""

    def __init__(self, gateway: GatewayProcess, telegram: TelegramDouble, endpoint: ScriptedOpenAI) -> None:
        self.gateway = gateway
        self.telegram = telegram
        self.endpoint = endpoint
        self.http = httpx.AsyncClient(timeout=GIVE_UP, trust_env=False)

    async def start(self) -> None:
        await asyncio.to_thread(self.gateway.start)
        self.http.base_url = httpx.URL(self.gateway.url)

    async def sign_in(self) -> None:
        account = {"email": "admin@example.org", "password": PASSWORD}
        (await self.http.post("/api/v1/auth/initialize", json=account)).raise_for_status()
        self.http.headers["x-csrf-token"] = self.http.cookies["csrf_token"]

    async def api(self, method: str, path: str, **more: Any) -> Any:
        return (await self.http.request(method, path, **more)).raise_for_status().json()

    async def bot(self) -> dict[str, Any]:
        (found,) = (await self.api("GET", "/api/channels/bots"))["bots"]
        return found

    def shown(self) -> list[str]:
        return [found["result"].get("text", "") for found in self.telegram.messages.values()]

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(GIVE_UP):
            while not holds():
                await asyncio.sleep(0.05)

    async def connect(self) -> None:
        """Ann connects her account, once the bot is there."""
        async with asyncio.timeout(GIVE_UP):
            while not [
                bot for bot in (await self.api("GET", "/api/channels/bots"))["bots"] if bot["state"] == "connected"
            ]:
                await asyncio.sleep(0.1)
        code = (await self.api("POST", "/api/channels/telegram/connect"))["code"]
        self.telegram.write(text=f"/connect {code}")
        await self.until(lambda: any(text.startswith("Connected.") for text in self.shown()))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    with ScriptedOpenAI() as endpoint:
        async with TelegramDouble() as telegram:
            config = CONFIG.format(token=telegram.token, url=telegram.http)
            gateway = GatewayProcess(tmp_path, auth=True, model_url=endpoint.base_url, config=config)
            made = World(gateway, telegram, endpoint)
            with gateway:
                await made.start()
                await made.sign_in()
                yield made
            await made.http.aclose()


async def test_a_stranger_connects_gives_a_task_and_gets_its_answer_and_its_file(world: World) -> None:
    world.telegram.write(text="Hello")
    await world.until(lambda: any("/connect CODE" in text for text in world.shown()))
    assert not world.endpoint.requests
    await world.connect()
    bot = await world.bot()
    assert (bot["kind"], bot["state"], bot["name"], bot["in_file"]) == ("telegram", "connected", "Deer_Bot", True)
    write = ("write_file", {"description": "write", "path": "/mnt/user-data/outputs/note.txt", "content": "a note"})
    present = ("present_files", {"filepaths": ["/mnt/user-data/outputs/note.txt"]})
    world.endpoint.script(ToolCalls(write), ToolCalls(present), Text("**Done**, see the note."))
    world.telegram.write(text="Write me a note")
    await world.until(lambda: "Done, see the note." in world.shown() and world.telegram.uploads)
    assert world.telegram.uploads == [("note.txt", b"a note")]
    answers = [text for text in world.shown() if "Done" in text]
    assert len(answers) == 1
    (account,) = (await world.api("GET", "/api/channels/connections"))["connections"]
    assert (account["provider"], account["external_account_id"]) == ("telegram", str(ANN))


async def test_a_server_that_is_killed_in_the_middle_answers_once_when_it_is_back(world: World) -> None:
    await world.connect()
    world.endpoint.script(Delay(5, Text("Here it is.")), Text("Here it is."))
    world.telegram.write(text="Work on this")
    await world.until(lambda: world.endpoint.requests)
    await asyncio.to_thread(world.gateway.kill)
    world.telegram.write(text="/help")  # while no one listens
    await world.start()
    await world.until(lambda: "Here it is." in world.shown())
    await world.until(lambda: any("/status" in text for text in world.shown()))
    await asyncio.sleep(1)
    assert world.shown().count("Here it is.") == 1
    assert "…" not in world.shown()
