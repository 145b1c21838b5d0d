"""A PostgreSQL that is set up otherwise than DeerFlow needs it is named in one sentence with its remedy."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError


async def _failure(url: str) -> str:
    database = Database(url)
    try:
        with pytest.raises(DatabaseError) as caught:
            await database.migrate()
        return str(caught.value)
    finally:
        await database.aclose()


def _execute(postgres: Any, *statements: str) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # pyright: ignore[reportArgumentType]


async def test_a_database_of_another_encoding_is_named(postgres: Any) -> None:
    _execute(postgres, "CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    url = postgres.url.rpartition("/")[0] + "/ascii"
    assert "encoding is SQL_ASCII" in (said := await _failure(url)) and "ENCODING 'UTF8'" in said


async def test_a_client_encoding_of_the_environment_does_not_count(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    database = Database(postgres_url)
    await database.migrate()
    assert await database.read(lambda connection: connection.exec_driver_sql("SELECT '報告'").scalar()) == "報告"
    await database.aclose()


async def test_a_role_without_rights_and_a_read_only_server_are_named(postgres: Any, postgres_url: str) -> None:
    _execute(postgres, "DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN")
    assert "owner of the database" in await _failure(postgres_url.replace("postgres@", "reader@"))
    only_reads = f"{postgres_url}?options=-c%20default_transaction_read_only%3Don"
    assert "read-only here" in await _failure(only_reads)
