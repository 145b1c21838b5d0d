"""A whole server with a bot on every platform, each platform on loopback, and two people who talk to all of them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any

import httpx
from bench.scripted_openai import Scripted, ScriptedOpenAI
from tests.contracts.channels.case import Case, Said, Shown
from tests.contracts.channels.case_dingtalk import DingTalkCase
from tests.contracts.channels.case_discord import DiscordCase
from tests.contracts.channels.case_feishu import FeishuCase
from tests.contracts.channels.case_mail import MailCase
from tests.contracts.channels.case_slack import SlackCase
from tests.contracts.channels.case_telegram import TelegramCase
from tests.contracts.channels.case_wechat import WeChatCase
from tests.contracts.channels.case_wecom import WeComCase
from tests.e2e.chats_over_http import SIGNING_SECRET, CallingCase, GitHubCase, WebhookCase
from tests.support.channels import discord_double, github_double, mail_double, wechat_double
from tests.support.channels.discord_double import DiscordDouble
from tests.support.channels.feishu_double import FeishuDouble
from tests.support.gateway_process import GUARD, PASSWORD, GatewayProcess

TABLE = Path(__file__).parents[2] / "docs" / "channels.md"
_ROW = re.compile(r"^\| \[[^]]+\]\(channels/(\w+)\.md\) \|[^|]+\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Offer:
    """A row of the table of platforms in docs/channels.md: the stories hold each platform to all that it offers there."""

    buttons: bool
    grows: bool
    files_in: bool
    files_out: bool


def offers() -> dict[str, Offer]:
    """Return what each platform offers, by kind."""
    return {
        kind: Offer(buttons != "numbers", grows != "no", files in ("both ways", "in"), files in ("both ways", "out"))
        for kind, buttons, grows, files in _ROW.findall(TABLE.read_text())
    }


def _mail(case: MailCase) -> dict[str, Any]:
    imap, smtp = case.double.ports
    hosts = {"imap_host": "127.0.0.1", "imap_port": imap, "smtp_host": "127.0.0.1", "smtp_port": smtp}
    plain = {"imap_security": "none", "smtp_security": "none", "authserv_id": mail_double.AUTHSERV_ID}
    return {"address": mail_double.ADDRESS, "password": mail_double.PASSWORD, **hosts, **plain}


PLATFORMS: Mapping[str, tuple[type[Case], Callable[[Any], dict[str, Any]]]] = {
    "telegram": (TelegramCase, lambda case: {"bot_token": case.double.token, "base_url": case.double.http}),
    "slack": (
        SlackCase,
        lambda case: {
            "bot_token": case.double.bot_token,
            "app_token": case.double.app_token,
            "base_url": case.double.api,
        },
    ),
    "feishu": (
        FeishuCase,
        lambda case: {"app_id": "cli_1", "app_secret": "app-secret", "domain": case.double.http},
    ),
    "discord": (DiscordCase, lambda case: {"bot_token": discord_double.TOKEN, "base_url": case.double.http}),
    "email": (MailCase, _mail),
    "webhook": (WebhookCase, lambda case: {"secret": SIGNING_SECRET, "url": f"{case.double.http}/answers"}),
    "github": (
        GitHubCase,
        lambda case: {
            "secret": github_double.SECRET,
            "token": github_double.TOKEN,
            "base_url": case.double.http,
        },
    ),
    "dingtalk": (
        DingTalkCase,
        lambda case: {
            "client_id": "client-1",
            "client_secret": "client-secret",
            "card_template_id": "template.schema",
            "api": case.double.http,
            "oapi": case.double.http,
        },
    ),
    "wecom": (
        WeComCase,
        lambda case: {"bot_id": case.double.bot_id, "bot_secret": case.double.secret, "url": case.double.ws},
    ),
    "wechat": (
        WeChatCase,
        lambda case: {
            "bot_token": wechat_double.TOKEN,
            "ilink_bot_id": "b@im.bot",
            "base_url": case.double.http,
            "cdn_base_url": f"{case.double.http}/c2c",
        },
    ),
}
"""Case and settings of every platform, by kind."""


async def until(holds: Callable[[], Any], explain: Callable[[], object] = str) -> None:
    """Wait for a condition, which may be a coroutine."""

    async def is_so() -> bool:
        found = holds()
        return bool(await found if isawaitable(found) else found)

    try:
        async with asyncio.timeout(GUARD):
            while not await is_so():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"Waited in vain.\n{explain()}") from None


@dataclass
class Chat:
    """The bot of one platform, as two people see it. A story's requests to the model hold the kind and the story's name."""

    kind: str
    case: Case
    offer: Offer
    world: World
    answers: list[str] = field(default_factory=list[str])
    """Last words of turns, of which each must be there once."""

    def key(self, story: str) -> str:
        return f"{self.kind}-{story}"

    async def ask(
        self, story: str, *replies: Scripted, by_ben: bool = False, files: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        """Give a task in a new conversation, and let the model answer so."""
        self.world.endpoint.script(*replies, key=self.key(story))
        await self.say("/new", by_ben=by_ben)
        await self.say(f"{story} key:{self.key(story)}", by_ben=by_ben, files=files)

    async def say(
        self, text: str, *, by_ben: bool = False, to: Shown | None = None, files: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        """Write a message, as a reply where people reply."""
        replies_to = to.ref if to is not None and self.case.has_replies else None
        await self.case.say(Said(text, by_ben=by_ben, replies_to=replies_to, files=files))

    async def choose(self, card: Shown, number: int, *, by_ben: bool = False) -> None:
        if self.offer.buttons:
            await self.case.press(card.ref, card.keys[number - 1], by_ben=by_ben)
        else:
            await self.say(str(number), by_ben=by_ben, to=card)

    def asked(self, story: str) -> list[dict[str, Any]]:
        """Return the requests of a story that the model has got."""
        return [one.body for one in list(self.world.endpoint.records) if f"key:{self.key(story)}".encode() in one.raw]

    def count(self, text: str) -> int:
        return sum(text in one.text for one in self.case.shown())

    async def reads(self, text: str) -> None:
        await until(lambda: self.count(text), lambda: (text, [one.text[-200:] for one in self.case.shown()]))

    async def reads_answer(self, text: str) -> None:
        """Wait for the end of a turn."""
        await self.reads(text)
        self.answers.append(text)

    async def reads_card(self, text: str) -> Shown:
        """Wait for a question with choices, and return the message that holds them. Progress has one button at most."""
        await self.reads(text)
        place = next(number for number, one in enumerate(self.case.shown()) if text in one.text)

        def cards() -> list[Shown]:
            return [one for one in self.case.shown()[place:] if len(one.keys) > 1 or not self.offer.buttons]

        await until(cards, lambda: (text, self.case.shown()))
        return cards()[-1]


class World:
    """Ann is the administrator, Ben another person."""

    def __init__(self, root: Path, endpoint: ScriptedOpenAI) -> None:
        self.root = root
        self.endpoint = endpoint
        known = offers()
        assert set(known) == set(PLATFORMS), "The table of platforms in docs/channels.md names others."
        self.chats = [Chat(kind, case(), known[kind], self) for kind, (case, _) in PLATFORMS.items()]
        self.people: dict[str, httpx.AsyncClient] = {}
        self.gateway: GatewayProcess

    async def __aenter__(self) -> World:
        for chat in self.chats:
            await chat.case.__aenter__()
            match chat.case.double:  # a link of a busy machine is not dead
                case FeishuDouble() as double:
                    double.ping = GUARD
                case DiscordDouble() as double:
                    double.heartbeat_interval = GUARD
                case _:
                    pass
        own = {chat.kind: {"enabled": True, **PLATFORMS[chat.kind][1](chat.case)} for chat in self.chats}
        ask = {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": {"ask_tools": ["bash"]}}
        config = {
            "title": {"enabled": False},
            "memory": {"enabled": False},
            "guardrails": {"enabled": True, "provider": ask},
            "runs": {"webhook_allow_nets": ["127.0.0.0/8"]},
            "channels": {"max_concurrency": 2 * len(own), **own},
        }
        self.gateway = GatewayProcess(
            self.root,
            auth=True,
            model_url=self.endpoint.base_url,
            config=json.dumps(config),
            environment={"AUTH_REGISTRATION": "true"},
        )
        await self.start()
        for name, path in (("ann", "initialize"), ("ben", "register")):
            http = httpx.AsyncClient(base_url=self.gateway.url, timeout=GUARD, trust_env=False)
            account = {"email": f"{name}@example.org", "password": PASSWORD}
            (await http.post(f"/api/v1/auth/{path}", json=account)).raise_for_status()
            http.headers["x-csrf-token"] = http.cookies["csrf_token"]
            self.people[name] = http
        await self.connected()
        for bot in await self.bots():
            case = next(chat.case for chat in self.chats if chat.kind == bot["kind"])
            if isinstance(case, CallingCase):
                case.calls = f"{self.gateway.url}{bot['calls']}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.gateway.kill)
        for http in self.people.values():
            await http.aclose()
        for chat in self.chats:
            await chat.case.__aexit__()

    async def start(self) -> None:
        await asyncio.to_thread(self.gateway.start)

    async def bots(self) -> list[dict[str, Any]]:
        return (await self.people["ann"].get("/api/channels/bots")).raise_for_status().json()["bots"]

    async def connected(self) -> None:
        async def is_so() -> bool:
            return [bot["state"] for bot in await self.bots()] == ["connected"] * len(self.chats)

        await until(is_so, lambda: self.gateway.output[-5000:])

    async def rest(self) -> None:
        """Wait until all runs have ended. The end of an answer is shown before: what is written then joins the run."""

        async def is_over() -> bool:
            asked = [http.post("/api/threads/count", json={"status": "busy"}) for http in self.people.values()]
            return not any(found.raise_for_status().json() for found in await asyncio.gather(*asked))

        await until(is_over, lambda: self.gateway.output[-5000:])

    async def code(self, person: str, kind: str) -> str:
        made = await self.people[person].post(f"/api/channels/{kind}/connect")
        return made.raise_for_status().json()["code"]

    async def everywhere(self, story: Callable[[Chat], Awaitable[None]]) -> None:
        """Live through a story on all platforms at once."""
        ends = await asyncio.gather(*map(story, self.chats), return_exceptions=True)
        failed = {chat.kind: end for end, chat in zip(ends, self.chats, strict=True) if isinstance(end, Exception)}
        said = "\n\n".join(f"On {kind}: {type(end).__name__}: {end}" for kind, end in failed.items())
        assert not failed, f"{said}\n\n{self.gateway.output[-5000:]}"
