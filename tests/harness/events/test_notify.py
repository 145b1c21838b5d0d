"""Notifications survive the loss of their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest

from deerflow.events.notify import Notifier
from deerflow.storage.database import Database

GUARD = 60


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(GUARD):
        while not condition():
            await asyncio.sleep(0.01)


async def _survives(here: Notifier, there: Notifier, cut: Callable[[], object]) -> None:
    got: list[list[str] | None] = []
    own: list[list[str] | None] = []
    here.listen("x", own.append)
    there.listen("x", got.append)
    await _until(lambda: None in got and None in own)
    await here.send("x", ["one"])
    await here.send("y", ["not for x"])
    await _until(lambda: ["one"] in got)
    got.clear()
    await asyncio.ensure_future(cut())  # type: ignore[arg-type]
    await _until(lambda: None in got)
    await here.send("x", ["two"])
    await _until(lambda: ["two"] in got)
    assert ["one"] not in own
    assert ["not for x"] not in got


async def test_postgres_is_listened_to_again_after_the_connection_was_cut(postgres_url: str) -> None:
    databases = [Database(postgres_url), Database(postgres_url)]
    await databases[0].migrate()
    notifiers = [Notifier(database) for database in databases]

    async def cut() -> None:
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%' AND pid <> pg_backend_pid()"
                " AND datname = current_database()"
            )

    await _survives(notifiers[0], notifiers[1], cut)
    for closing in (*notifiers, *databases):
        await closing.aclose()


def test_payloads_are_small_enough_and_complete() -> None:
    nowhere = Database(":memory:")
    sender, other, got = Notifier(nowhere), Notifier(nowhere), []
    other._by_channel["x"] = lambda messages: got.extend(messages or [])
    messages = [f"{number:0128}" for number in range(500)]
    payloads = sender.payloads("x", messages)
    assert max(map(len, payloads)) < 8000
    for payload in payloads:
        other.deliver(payload)
        sender.deliver(payload)
    assert got == messages
    with pytest.raises(ValueError, match="too long"):
        sender.payloads("x", ["x" * 8000])
