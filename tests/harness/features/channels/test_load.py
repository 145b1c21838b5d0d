"""Many messages at once, many that wait for a platform that is away, and connections that do nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from tests.harness.features.channels.platform_double import (
    FAST,
    DoubleAdapter,
    Echo,
    Platform,
    inbox_rows,
    judged,
    until,
)
from tests.support.channels.slack_double import SlackDouble

from deerflow.features.channels import leases
from deerflow.features.channels.engine import Engine, Wanted
from deerflow.features.channels.outbox import WAITING, Outbox, Target
from deerflow.features.channels.types import Place
from deerflow.storage import sql
from deerflow.storage.database import Database

pytestmark = pytest.mark.nightly


def resident() -> float:
    return psutil.Process().memory_info().rss / 1e6


async def engine_of(database: Database, platform: Platform, kind: str, connections: int = 1) -> Engine:
    async def wanted() -> Mapping[str, Wanted]:
        one = Wanted("double", "1", lambda: DoubleAdapter(platform.url, kind))
        return {f"x{n}": one for n in range(connections)}

    engine = Engine(database, wanted, timing=FAST)
    engine.start(Echo(engine, database))
    return engine


async def test_a_thousand_at_once_are_acknowledged_and_answered(database: Database, platform: Platform) -> None:
    engine = await engine_of(database, platform, "ack")
    began = asyncio.get_running_loop().time()
    said = [f"{n}" for n in range(1000)]
    for n, text in enumerate(said):
        platform.say(text, f"c{n % 50}")
    await until(lambda: len(platform.acknowledged) == 1000, 60)
    print(f"1,000 at once were acknowledged within {max(platform.acknowledged.values()) - began:.2f} s")
    await until(lambda: judged(platform, said)[0] == 1000, 120)
    await engine.aclose()
    assert judged(platform, said) == (1000, 0, [])
    assert len(await inbox_rows(database)) == 1000


async def test_a_hundred_a_second_are_acknowledged_and_answered(database: Database, platform: Platform) -> None:
    engine, loop = await engine_of(database, platform, "ack"), asyncio.get_running_loop()
    began, when = loop.time(), dict[str, float]()
    for n in range(500):
        await asyncio.sleep(max(0.0, began + n / 100 - loop.time()))
        when[platform.say(f"{n}", f"c{n % 50}")] = loop.time()
    await until(lambda: len(platform.acknowledged) == 500, 60)
    waits = sorted(platform.acknowledged[id_] - at for id_, at in when.items())
    print(
        f"100 a second: half were acknowledged within {waits[250] * 1000:.0f} ms, 99 of 100 within {waits[494] * 1000:.0f} ms"
    )
    said = [f"{n}" for n in range(500)]
    await until(lambda: judged(platform, said)[0] == 500, 120)
    await engine.aclose()
    assert judged(platform, said) == (500, 0, [])


async def test_a_platform_that_is_away_costs_no_memory(database: Database, platform: Platform) -> None:
    await database.write(leases.ensure, "x0", "double")
    engine = await engine_of(database, platform, "cursor")
    platform.say("a")
    await until(lambda: platform.texts() == ["re:a"])
    platform.is_dead = True
    platform.cut()
    before, outbox = resident(), Outbox()
    for begin in range(0, 10_000, 500):
        await database.write(
            lambda c, begin=begin: [
                outbox.deliver(c, Target("x0", Place(f"c{n % 100}")), f"{n} " * 50) for n in range(begin, begin + 500)
            ]
        )
    grown: list[float] = []
    for _ in range(40):
        await asyncio.sleep(0.25)
        grown.append(resident() - before)
    print(f"10,000 messages wait: {grown[3]:.1f} MB after 1 s, {grown[-1]:.1f} MB after 10 s")
    waiting = f"SELECT count(*) FROM channel_outbox WHERE {WAITING}"
    assert await database.read(lambda c: sql.execute(c, waiting).fetchone()[0]) == 10_000
    platform.is_dead = False
    await until(lambda: len(platform.messages) > 500, 60)
    await engine.aclose()
    assert grown[-1] < 25


async def test_connections_that_do_nothing_cost_little(migrated_location: str, platform: Platform) -> None:
    worker = Path(__file__).with_name("idle_worker.py")
    async with SlackDouble() as slack:
        arguments = sys.executable, worker, migrated_location, platform.url, slack.api
        process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
        figures, _ = await process.communicate()
    first, asking, linked = map(float, figures.split())
    print(f"idle: {first:.1f} MB for the first connection, {asking:.2f} and {linked:.2f} MB for each further one")
    assert process.returncode == 0 and first < 12 and max(asking, linked) < 1
