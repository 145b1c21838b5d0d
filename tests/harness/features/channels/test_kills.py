"""Killed or paused at any moment, a process loses no message, doubles no answer silently, and changes no order."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.harness.features.channels.platform_double import FAST, Platform, inbox_rows, judged, until
from tests.support.warm_python import for_asyncio

from deerflow.features.channels import leases
from deerflow.storage.database import Database

WORKER = Path(__file__).with_name("channel_worker.py")
PLACES = 4


class Workers:
    """Processes that look after one channel."""

    def __init__(self, location: str, url: str, kind: str) -> None:
        self._arguments = sys.executable, str(WORKER), location, url, kind
        self.alive: list[asyncio.subprocess.Process] = []

    async def start(self) -> asyncio.subprocess.Process:
        with for_asyncio():
            made = await asyncio.create_subprocess_exec(*self._arguments)
        self.alive.append(made)
        return made

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        self.alive.remove(process)
        process.kill()
        await process.wait()


@asynccontextmanager
async def workers(location: str, platform: Platform, kind: str, number: int = 1) -> AsyncIterator[Workers]:
    made = Workers(location, platform.url, kind)
    try:
        for _ in range(number):
            await made.start()
        yield made
    finally:
        for process in list(made.alive):
            await made.kill(process)


async def series(
    location: str, platform: Platform, kind: str, *, messages: int, kills: int, number: int = 1, seed: int = 0
) -> None:
    """Let people write while processes are killed and requests fail, then judge what the platform shows."""
    dice = random.Random(seed)
    said = [f"{n}" for n in range(messages)]
    step = messages // (kills + 1)
    async with workers(location, platform, kind, number) as running:
        for n, text in enumerate(said):
            platform.say(text, f"c{n % PLACES}")
            if kills and n % step == step - 1:
                enough = judged(platform, said)[0] + dice.randint(1, 5)
                await until(lambda enough=enough, n=n: judged(platform, said)[0] >= min(enough, n + 1))
                kills -= 1
                await running.kill(dice.choice(running.alive))
                await running.start()
            if n % 10 == 7:
                platform.faults["post"].append(
                    dice.choice([(429, {"retry-after": "0.2"}, {}), (503, {}, {}), "cut after"])
                )
                platform.faults["edit"].append(dice.choice([(503, {}, {}), "cut after", "cut before"]))
        await until(lambda: judged(platform, said)[0] == messages, 300)
    answered, alone, silent = judged(platform, said)
    assert (answered, silent) == (messages, [])
    if kind != "ack":
        assert not [text for text in platform.texts() if "duplicate" in text], "an answer that is an edit came twice"
        assert alone == 0
    await in_order(location, platform)


async def in_order(location: str, platform: Platform) -> None:
    """The first answers of a place come in the order in which its messages were accepted."""
    database = Database(location)
    rows = await inbox_rows(database)
    await database.aclose()
    assert len({row.message_id for row in rows}) == len(rows)
    for chat in {row.chat for row in rows}:
        accepted = [f"re:{row.body['text']}" for row in rows if row.chat == chat]
        shown = [text.removesuffix(" (may be a duplicate)") for text in platform.texts(chat) if text != "…"]
        assert list(dict.fromkeys(shown)) == accepted


@pytest.mark.parametrize("kind", ["cursor", "ack", "keys"])
async def test_forty_messages_survive_three_kills(sqlite_location: str, platform: Platform, kind: str) -> None:
    await series(sqlite_location, platform, kind, messages=40, kills=3)


async def test_a_process_that_was_paused_changes_nothing_when_it_comes_back(
    migrated_location: str, platform: Platform
) -> None:
    async with workers(migrated_location, platform, "cursor") as running:
        paused = running.alive[0]
        platform.say("a")
        await until(lambda: platform.texts() == ["re:a"])
        await running.start()
        paused.send_signal(signal.SIGSTOP)
        for n in range(10):
            platform.say(f"{n}", f"c{n % PLACES}")
        await until(lambda: len(platform.texts()) == 11 and "…" not in platform.texts())
        paused.send_signal(signal.SIGCONT)
        platform.say("b")
        await until(lambda: "re:b" in platform.texts())
        await asyncio.sleep(2 * FAST.renew)
    said = ["a", "b", *(f"{n}" for n in range(10))]
    assert judged(platform, said) == (12, 0, [])
    database = Database(migrated_location)
    row = await database.read(leases.get, "x")
    await database.aclose()
    assert row is not None and row.cursor == "12"
    await in_order(migrated_location, platform)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["cursor", "ack", "keys"])
async def test_a_thousand_messages_survive_twenty_kills(migrated_location: str, platform: Platform, kind: str) -> None:
    await series(migrated_location, platform, kind, messages=1000, kills=20, seed=1)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["cursor", "ack"])
async def test_two_processes_on_postgres_survive_twenty_kills(migrated_url: str, platform: Platform, kind: str) -> None:
    await series(migrated_url, platform, kind, messages=1000, kills=20, number=2, seed=2)
