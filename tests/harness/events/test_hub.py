"""Notices reach the right person's screens, in whichever process."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from deerflow.events.hub import Hub
from deerflow.events.notify import MOST_NOTICES, Notifier
from deerflow.storage.database import Database

GUARD = 60


async def test_a_notice_reaches_every_screen_of_its_person_and_nobody_else() -> None:
    hub = Hub()
    async with asyncio.timeout(GUARD):
        mine = [hub.subscribe("me", heartbeat=GUARD) for _ in range(2)]
        other = hub.subscribe("you", heartbeat=0.05)
        waiting = [asyncio.create_task(anext(screen)) for screen in (*mine, other)]
        await asyncio.sleep(0)
        hub.publish("me", {"type": "threads", "thread_id": "t"})
        notice = [{"type": "threads", "thread_id": "t"}]
        assert await asyncio.gather(*waiting) == [notice, notice, []]
        for screen in (*mine, other):
            await screen.aclose()
    assert not hub._subscribers


async def test_a_slow_screen_gets_equal_notices_once_and_too_many_as_a_refresh() -> None:
    hub = Hub()
    async with asyncio.timeout(GUARD), aclosing(hub.subscribe("me", heartbeat=GUARD)) as screen:
        waiting = asyncio.create_task(anext(screen))
        await asyncio.sleep(0)
        hub.publish("me", {"type": "models"})
        await waiting
        for _ in range(1000):
            hub.publish("me", {"type": "runs", "thread_id": "t"})
            hub.publish("me", {"thread_id": "t", "type": "runs"})
        assert await anext(screen) == [{"type": "runs", "thread_id": "t"}]
        for number in range(MOST_NOTICES + 10):
            hub.publish("me", {"type": "runs", "thread_id": str(number)})
        assert await anext(screen) == [{"type": "refresh"}]


async def _across(here: Hub, there: Hub) -> None:
    async with asyncio.timeout(GUARD), aclosing(there.subscribe("me", heartbeat=GUARD)) as screen:
        # The connection that listens is made first; what may have been missed until then is a refresh.
        assert await anext(screen) == [{"type": "refresh"}]
        here.publish("you", {"type": "threads"})
        here.publish("me", {"type": "runs", "thread_id": "t"})
        assert await anext(screen) == [{"type": "runs", "thread_id": "t"}]
    await here.aclose()


async def test_notices_cross_processes_through_postgres(postgres_url: str) -> None:
    databases = [Database(postgres_url), Database(postgres_url)]
    await databases[0].migrate()
    notifiers = [Notifier(database) for database in databases]
    await _across(Hub(notifiers[0]), Hub(notifiers[1]))
    for closing in (*notifiers, *databases):
        await closing.aclose()
