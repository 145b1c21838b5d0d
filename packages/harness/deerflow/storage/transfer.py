"""Everything of a database into an empty one of the other kind, verified row by row. May be cut off and repeated."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Table, literal, select, text, tuple_

from deerflow.storage import sql
from deerflow.storage.checkpoints import checkpointer_for
from deerflow.storage.checkpoints.transfer import digest_of, read_thread, thread_ids, write_thread
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError, explained
from deerflow.storage.migrate import UNFINISHED
from deerflow.storage.search import message_search, put_row
from deerflow.storage.tables import Json, metadata

TABLES = (*metadata.sorted_tables, message_search)
Writer = Callable[[Connection, Mapping[str, Any]], None]
BATCH = 100
"""Rows. Some hold the events of a whole run."""
_COUNTED_ANEW = "number"
"""A column that only joins an index to its rows."""


@dataclass(frozen=True, slots=True)
class Copied:
    """Counts of what was copied and verified: rows by table, and threads with checkpoints."""

    rows: Mapping[str, int]
    threads: int


async def transfer(
    source: Database, target: Database, show: Callable[[str], None], writers: Mapping[Table, Writer]
) -> Copied:
    """Copy all of ``source`` to ``target``, whose place :func:`begin` has named, and compare both. Nothing may use them meanwhile.

    Args:
        show: gets what is done right now.
        writers: write a row, of tables with an index beside them.

    Raises:
        DatabaseError: the target is not what the source is: something has changed one of them.
    """
    here, there = [await asyncio.to_thread(checkpointer_for, each) for each in (source, target)]
    counts: dict[str, int] = {}
    for table in TABLES:
        show(f"Table {table.name}")
        wanted = await source.read(_digest, table)
        if await target.read(_digest, table) != wanted:
            at: tuple[Any, ...] = ()
            while rows := await source.read(_page, table, at):
                await target.write(_put, table, rows, writers.get(table))
                at = tuple(rows[-1][column.name] for column in table.primary_key)
            if (found := await target.read(_digest, table)) != wanted:
                raise _differs(f"The table {table.name}", wanted[0], found[0])
        counts[table.name] = wanted[0]
    threads = await thread_ids(source, here)
    for number, thread_id in enumerate(threads, 1):
        show(f"Checkpoints of thread {number} of {len(threads)}")
        kept = await read_thread(source, here, thread_id)
        wanted = digest_of(kept)
        if digest_of(await read_thread(target, there, thread_id)) != wanted:
            await write_thread(target, there, thread_id, kept)
            if digest_of(copied := await read_thread(target, there, thread_id)) != wanted:
                raise _differs(f"The history of thread {thread_id}", len(kept), len(copied))
    if (count := len(await thread_ids(target, there))) != len(threads):
        raise _differs("The threads with a history", len(threads), count)
    if target.is_postgres:
        await target.write(_count_on)
    return Copied(counts, len(threads))


def begin(source: str, target: str) -> str:
    """Prepare an empty database as the target of a transfer from ``source``, and return where it is until :func:`finish`. Blocks.

    Raises:
        DatabaseError: a program uses one of the two, both are of one kind, or the target holds something that is not of such a transfer.
    """
    if ("://" in source) == ("://" in target):
        raise DatabaseError(
            "Both databases are of one kind: `deerflow backup` and `deerflow restore` copy between them."
        )
    key = sql.short_key(source)
    if "://" in source:
        _check_unused(source)
        if Path(target).exists() and Path(target).stat().st_size:
            raise _not_empty(target)
        return f"{target}.{key[:8]}.part"
    _check_unused(target)
    import psycopg

    with explained(target), psycopg.connect(target) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        if not names:
            connection.execute(f"CREATE TABLE {UNFINISHED} (source TEXT NOT NULL)")
            connection.execute(f"INSERT INTO {UNFINISHED} VALUES (%s)", (key,))
        elif (UNFINISHED,) not in names or connection.execute(f"SELECT source FROM {UNFINISHED}").fetchone() != (key,):
            raise _not_empty(target)
    return target


def finish(target: str, filled: str) -> None:
    """Let others use a verified copy, which is closed. Blocks."""
    if target != filled:
        Path(filled).rename(target)
        return
    import psycopg

    with explained(target), psycopg.connect(target) as connection:
        connection.execute(f"DROP TABLE {UNFINISHED}")


def _check_unused(url: str) -> None:
    import psycopg

    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state IS NOT NULL"
    with explained(url), psycopg.connect(url) as connection:
        row = connection.execute(others).fetchone()
    if row and row[0]:
        raise DatabaseError(
            f"The PostgreSQL database is in use, by {row[0]} other connections. Stop all gateways and workers, and close other "
            "programs that have it open."
        )


def _not_empty(target: str) -> DatabaseError:
    where = "The PostgreSQL database" if "://" in target else f"The database {target}"
    return DatabaseError(
        f"{where} is not empty, and holds no transfer from this source that was cut off. Nothing was changed. Name an empty one."
    )


def _differs(what: str, wanted: int, found: int) -> DatabaseError:
    return DatabaseError(
        f"{what} differs after it was copied: {wanted} rows here, {found} there. A database was used meanwhile, or since a transfer "
        "that was cut off. The source is as it was. Begin again with an empty target."
    )


# jobs ---------------------------------------------------------------------------------------------------------------


def _page(connection: Connection, table: Table, after: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the rows that follow the one with the key ``after``."""
    key = [*table.primary_key]
    query = select(table).order_by(*key).limit(BATCH)
    if after:
        values = [literal(value, column.type) for value, column in zip(after, key, strict=True)]
        query = query.where(tuple_(*key) > tuple_(*values))
    return [dict(row) for row in connection.execute(query).mappings()]


def _put(connection: Connection, table: Table, rows: list[dict[str, Any]], writer: Writer | None) -> None:
    """Add rows, those that are there left out, in the indexes as well."""
    for row in rows:
        if table is message_search:
            put_row(connection, row)
        elif writer is not None:
            writer(connection, row)
        else:
            stored = {
                name: sql.dumps(value) if value is not None and table.c[name].type is Json else value
                for name, value in row.items()
            }
            sql.insert(connection, table, stored, "ON CONFLICT DO NOTHING")


def _digest(connection: Connection, table: Table) -> tuple[int, int]:
    """Return how many rows there are, and a sum over all that they hold, whatever their order."""
    count = total = 0
    at: tuple[Any, ...] = ()
    while rows := _page(connection, table, at):
        for row in rows:
            held = {name: _plain(value) for name, value in row.items() if name != _COUNTED_ANEW}
            encoded = orjson.dumps(held, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
            total += int.from_bytes(hashlib.blake2b(encoded, digest_size=16).digest())
        count += len(rows)
        at = tuple(rows[-1][column.name] for column in table.primary_key)
    return count, total % (1 << 128)


def _plain(value: Any) -> Any:
    """Return a value as it is compared: PostgreSQL writes whole numbers in JSON without a point."""
    if isinstance(value, float) and value.is_integer():
        return int(value) if abs(value) < 1 << 53 else str(int(value))
    if isinstance(value, int) and abs(value) >= 1 << 53:
        return str(value)
    if isinstance(value, bytes | memoryview):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _count_on(connection: Connection) -> None:
    """Let PostgreSQL count on behind the numbers that were copied."""
    for table in TABLES:
        for column in table.primary_key:
            named = {"table": table.name, "column": column.name}
            counter = connection.scalar(text("SELECT pg_get_serial_sequence(:table, :column)"), named)
            if counter is not None:
                newest = f'SELECT max("{column.name}") FROM {table.name}'
                statement = f"SELECT setval(:counter, greatest(({newest}), 1), ({newest}) IS NOT NULL)"
                connection.execute(text(statement), {"counter": counter})
