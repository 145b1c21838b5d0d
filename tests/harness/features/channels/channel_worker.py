"""A process with the channel ``x``: ``python channel_worker.py DATABASE URL KIND``. Made to be killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from deerflow.events.notify import Notifier
from deerflow.features.channels.engine import Engine, Wanted
from deerflow.storage.database import Database

sys.path.insert(0, str(Path(__file__).parents[4]))

from tests.harness.features.channels.platform_double import FAST, DoubleAdapter, Echo


async def main(location: str, url: str, kind: str) -> None:
    database = Database(location)

    async def wanted() -> Mapping[str, Wanted]:
        return {"x": Wanted("double", "1", lambda: DoubleAdapter(url, kind))}

    notifier = Notifier(database) if database.is_postgres else None
    engine = Engine(database, wanted, notifier=notifier, timing=FAST)
    engine.start(Echo(engine, database, step=0.01))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
