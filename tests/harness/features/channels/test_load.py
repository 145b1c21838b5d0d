"""Many messages at once, many that wait for a platform that is away, and connections that do nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

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

from deerflow.features.channels import leases
from deerflow.features.channels.engine import Engine, Wanted
from deerflow.features.channels.outbox import Outbox, Target
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
    waiting = "SELECT count(*) FROM channel_outbox WHERE state IN ('pending', 'sending')"
    assert await database.read(lambda c: sql.execute(c, waiting).fetchone()[0]) == 10_000
    platform.is_dead = False
    await until(lambda: len(platform.messages) > 500, 60)
    await engine.aclose()
    assert grown[-1] < 25


async def test_connections_that_do_nothing_cost_little(database: Database, platform: Platform) -> None:
    before = resident()
    first = await engine_of(database, platform, "cursor")
    await until(lambda: platform.calls and platform.calls[-1][0] == "updates")
    one = resident() - before
    await first.aclose()
    more = await engine_of(database, platform, "cursor", 17)
    await until(lambda: [method for method, _, _ in platform.calls].count("me") == 18)
    many = resident() - before
    await more.aclose()
    print(f"idle: {one:.1f} MB for the first connection, {(many - one) / 16:.2f} MB for each further one")
    assert one < 12 and (many - one) / 16 < 1
