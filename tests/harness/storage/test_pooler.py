"""A pooler between DeerFlow and PostgreSQL: everything works through one of transactions but what needs a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Connection, text
from tests.servers import PostgresServer, pooler

from deerflow.events.notify import Notifier
from deerflow.storage.checkpoints import checkpointer_for
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError
from deerflow.storage.postgres_lock import PostgresThreadLock

Through = Callable[[str], str]


@pytest.fixture(scope="module")
def through(postgres: PostgresServer) -> Iterator[Through]:
    with pooler(postgres) as made:
        yield made


async def _refusal(database: Database) -> str:
    with pytest.raises(DatabaseError) as caught:
        await database.migrate()
    await database.aclose()
    return str(caught.value)


async def test_a_pooler_of_transactions_alone_is_named(through: Through, postgres_url: str) -> None:
    for database in (Database(through(postgres_url)), Database(postgres_url, direct=through(postgres_url))):
        said = await _refusal(database)
        assert "another session" in said and "`database.postgres_direct_url`" in said


async def test_a_direct_address_of_another_database_is_named(
    through: Through, postgres: PostgresServer, postgres_url: str
):
    assert "name different databases" in await _refusal(Database(through(postgres_url), direct=postgres.url))


async def test_a_pooler_of_sessions_needs_nothing_else(postgres: PostgresServer, migrated_url: str) -> None:
    with pooler(postgres, "session") as through:
        database, lock = Database(through(migrated_url)), PostgresThreadLock(through(migrated_url))
        await database.migrate()
        async with lock.hold("u", "t"):
            pass
        await lock.aclose()
        await database.aclose()


async def test_statements_settings_and_checkpoints_come_to_no_harm(through: Through, postgres_url: str) -> None:
    """Thirty connections share four sessions."""
    databases = [Database(through(postgres_url), direct=postgres_url) for _ in range(3)]

    async def use(database: Database, number: int) -> None:
        checkpointer: Any = await asyncio.to_thread(checkpointer_for, database)
        config: Any = {"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}}
        for _ in range(12):
            said = await database.browse(_settings)
            assert said == ("10s", "15s", "UTC")
            assert await database.read(_settings) == ("0", "0", "UTC")
            assert await database.write(_settings) == ("0", "15s", "UTC")
            config = await checkpointer.aput(config, empty_checkpoint(), {}, {})
            await checkpointer.aput_writes(config, [("messages", "x")], "task")
            assert await checkpointer.aget_tuple(config) is not None
        await checkpointer.acopy_thread(f"t{number}", f"copy{number}")

    await asyncio.gather(*(use(databases[number % 3], number) for number in range(18)))
    for database in databases:
        await database.aclose()


async def test_locks_and_notices_take_the_direct_way_in_two_sessions(through: Through, migrated_url: str) -> None:
    database = Database(through(migrated_url), direct=migrated_url)
    notifier, lock = Notifier(database), PostgresThreadLock(database.direct)
    got: list[list[str] | None] = []
    notifier.listen("x", got.append)
    async with lock.hold("u", "t"):
        async with asyncio.timeout(60):
            while not got:
                await asyncio.sleep(0.01)
        other = Notifier(database)
        await other.send("x", ["one"])
        async with asyncio.timeout(60):
            while ["one"] not in got:
                await asyncio.sleep(0.01)
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND client_port > 0 AND query ~ 'LISTEN|advisory'"
        assert (
            await database.read(lambda connection: connection.exec_driver_sql(query).scalar()) == 3
        )  # and the one that counts
    for closing in (notifier, lock, database):
        await closing.aclose()


def _settings(connection: Connection) -> tuple[str, str, str]:
    names = ("statement_timeout", "idle_in_transaction_session_timeout", "timezone")
    query = ", ".join(f"current_setting('{name}')" for name in names)
    return tuple(connection.execute(text(f"SELECT {query} WHERE :one = 1"), {"one": 1}).one())
