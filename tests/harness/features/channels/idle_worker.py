"""A process whose connections do nothing: ``python idle_worker.py DATABASE HTTP SLACK`` prints megabytes: of the first, which asks by
HTTP, and of each further one that does so, or that has a WebSocket as Slack has."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import psutil

from deerflow.features.channels.engine import Engine, Wanted
from deerflow.storage import sql
from deerflow.storage.database import Database

sys.path.insert(0, str(Path(__file__).parents[4]))

from tests.harness.features.channels.platform_double import DoubleAdapter, Echo
from tests.support.channels.slack_double import SlackDouble

from deerflow_app.channels.adapters.slack import Slack

FURTHER = 64
"""So many, since the first leaves room in the heap that some of them fit into."""


def resident() -> float:
    return psutil.Process().memory_info().rss / 1e6


async def main(location: str, http: str, slack: str) -> None:
    database, tokens = Database(location), SlackDouble()
    asking = Wanted("double", "1", lambda: DoubleAdapter(http, "cursor"))
    linked = Wanted("slack", "1", lambda: Slack(tokens.bot_token, tokens.app_token, base_url=slack))
    connections = {"first": asking}

    async def wanted() -> Mapping[str, Wanted]:
        return dict(connections)

    async def idle() -> float:
        engine.refresh()
        connected = "SELECT count(*) FROM channel_connections WHERE state = 'connected'"
        while await database.read(lambda c: sql.execute(c, connected).fetchone()[0]) < len(connections):
            await asyncio.sleep(0.05)
        await asyncio.sleep(2)
        return resident()

    # What the process has anyway: all connections to the database.
    await asyncio.gather(*[database.read(lambda c: time.sleep(0.1)) for _ in range(8)])
    before, engine = resident(), Engine(database, wanted)
    engine.start(Echo(engine, database))
    marks = [before, await idle()]
    for name, one in {"asking": asking, "linked": linked}.items():
        connections |= {f"{name}{n}": one for n in range(FURTHER)}
        marks.append(await idle())
    of_first, of_asking, of_linked = (after - before for before, after in pairwise(marks))
    print(f"{of_first:.2f} {of_asking / FURTHER:.3f} {of_linked / FURTHER:.3f}")
    await engine.aclose()
    await database.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
