"""Notifications survive the loss of their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest

from deerflow.events import notify
from deerflow.events.notify import POSTGRES_CHANNEL, Notifier, _name_of
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


async def test_a_process_gets_what_it_follows_and_no_more(postgres_url: str) -> None:
    databases = [Database(postgres_url), Database(postgres_url)]
    await databases[0].migrate()
    here, there = (Notifier(database) for database in databases)
    got: list[list[str] | None] = []
    heard: list[str] = []
    there.listen("x", got.append)
    there.deliver = lambda payload, deliver=there.deliver: (heard.append(payload), deliver(payload))[1]
    await _until(lambda: None in got)
    keys = [f"thread {number}" for number in range(200)]
    with there.following("x", keys[0]):
        await _until(lambda: [keys[0]] in got)  # what was sent before
        got.clear()
        await here.send_about("x", keys)
        await _until(lambda: bool(got))
        assert got == [[key for key in keys if _name_of(key) == _name_of(keys[0])]]
        with there.following("x", keys[1]), there.following("x", keys[0]):
            await _until(lambda: [keys[1]] in got)
            await here.send_about("x", [keys[1]])
            await _until(lambda: got.count([keys[1]]) == 2)
        await here.send_about("x", [keys[0]])
        await _until(lambda: [keys[0]] in got)
    assert len(heard) == 3
    for closing in (here, there, *databases):
        await closing.aclose()


async def test_what_is_followed_is_heard_again_after_the_connection_was_cut_and_not_for_ever(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "KEPT_SECONDS", -1.0)
    databases = [Database(postgres_url), Database(postgres_url)]
    await databases[0].migrate()
    here, there = (Notifier(database) for database in databases)
    got: list[list[str] | None] = []
    there.listen("x", got.append)
    with there.following("x", "a"):
        await _until(lambda: None in got)
        assert there._heard == {POSTGRES_CHANNEL, _name_of("a")}
        got.clear()
        await databases[0].write(
            lambda connection: connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%%LISTEN%%' "
                "AND pid <> pg_backend_pid()"
            )
        )
        await _until(lambda: None in got)
        await here.send_about("x", ["a"])
        await _until(lambda: ["a"] in got)
    with there.following("x", "b"):
        await _until(lambda: there._heard == {POSTGRES_CHANNEL, _name_of("b")})
    for closing in (here, there, *databases):
        await closing.aclose()
