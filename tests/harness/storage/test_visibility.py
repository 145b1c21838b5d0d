"""The rule is the same as SQL text, as an expression and of a row that is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, Table, select

from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_connections, threads, utc_now
from deerflow.storage.visibility import (
    GONE,
    NO_OWNER,
    changeable,
    changeable_by,
    may_change,
    may_read,
    readable,
    readable_by,
    values_of,
)

ALICE, BOB, ADMIN = Principal("alice"), Principal("bob"), Principal("root", role="admin")


@dataclass(frozen=True)
class Row:
    user_id: str | None


def _thread(owner: str) -> dict[str, Any]:
    moments = dict.fromkeys(("created_at", "updated_at"), utc_now())
    return {"thread_id": f"of-{owner}", "user_id": owner, "status": "idle", "metadata": {}, "epoch": 0, **moments}


def _bot(owner: str | None) -> dict[str, Any]:
    moments = dict.fromkeys(("created_at", "updated_at"), utc_now())
    return {
        "id": f"of-{owner}", "kind": "telegram", "user_id": owner, "in_file": False, "is_on": True, "secrets": "",
        "settings": {}, "version": 1, "cursor": "", "lease_epoch": 0, "state": "retrying", **moments,
    }  # fmt: skip


async def _owners(database: Database, table: Table, where: str, *values: Any) -> set[str | None]:
    def job(connection: Connection) -> set[str | None]:
        found = sql.execute(connection, f"SELECT user_id FROM {table.name} WHERE {where}", *values)
        return {row[0] for row in found.fetchall()}

    return await database.read(job)


@pytest.mark.parametrize("principal", [ALICE, BOB, ADMIN], ids=lambda principal: principal.user_id)
async def test_everyone_sees_and_changes_their_own_threads_alone(database: Database, principal: Principal) -> None:
    owners = ("alice", "bob", NO_OWNER)
    for owner in owners:
        await database.write(lambda connection, row=_thread(owner): sql.insert(connection, threads, row) and None)
    own = {principal.user_id} & set(owners)

    for text in (readable(threads), changeable(threads)):
        assert await _owners(database, threads, text, *values_of(principal)) == own
    for condition in (readable_by(principal, threads), changeable_by(principal, threads)):
        query = select(threads.c.user_id).where(condition)
        assert await database.read(lambda connection, query=query: {*connection.scalars(query)}) == own
    for may in (may_read, may_change):
        assert {owner for owner in owners if may(principal, Row(owner))} == own
    assert await _owners(database, threads, GONE) == {NO_OWNER}


@pytest.mark.parametrize("principal", [ALICE, BOB, ADMIN], ids=lambda principal: principal.user_id)
async def test_everyone_sees_the_instances_bots_and_administrators_change_them(
    database: Database, principal: Principal
) -> None:
    owners = ("alice", "bob", None)
    for owner in owners:
        row = _bot(owner)
        await database.write(lambda connection, row=row: sql.insert(connection, channel_connections, row) and None)
    own = {principal.user_id} & {*owners}

    query = select(channel_connections.c.user_id).where(readable_by(principal, channel_connections))
    by_text = await _owners(database, channel_connections, readable(channel_connections), *values_of(principal))
    by_expression = await database.read(lambda connection: {*connection.scalars(query)})
    assert by_text == by_expression == {owner for owner in owners if may_read(principal, Row(owner))} == own | {None}
    assert await _owners(database, channel_connections, changeable(channel_connections), *values_of(principal)) == own
    assert may_change(principal, Row(None)) == (principal is ADMIN)
    assert not may_change(principal, Row("someone"))
