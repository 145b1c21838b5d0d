"""People's connections to MCP servers: refreshed by one at a time, taken once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from deerflow.features.mcp.rows import McpAuthorization, McpConnection, McpConnectionRepository
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now


async def test_one_of_many_may_refresh_and_a_lease_that_is_not_given_back_ends(database: Database, monkeypatch) -> None:
    rows = McpConnectionRepository(database)
    await rows.keep(McpConnection("ada", "s", "first"))
    (held,) = await rows.of("ada", "s")
    assert sum(await asyncio.gather(*(rows.lease(held) for _ in range(5)))) == 1
    await rows.release(held, "second", utc_now())
    assert not await rows.lease(held), "what was read before is not refreshed again"
    (held,) = await rows.of("ada")
    assert (held.data, held.version) == ("second", 2)
    monkeypatch.setattr("deerflow.features.mcp.rows.LEASE", timedelta(seconds=-1))
    assert await rows.lease(held)
    assert await rows.lease(held), "who held it has died"


async def test_what_was_connected_anew_or_forgotten_meanwhile_is_not_overwritten(database: Database) -> None:
    rows = McpConnectionRepository(database)
    await rows.keep(McpConnection("ada", "s", "first"))
    (held,) = await rows.of("ada", "s")
    assert await rows.lease(held)
    await rows.keep(McpConnection("ada", "s", "new"))
    await rows.release(held, "refreshed")
    assert [row.data for row in await rows.of("ada")] == ["new"]
    assert not await rows.forget("ada", "s", held.version)
    assert await rows.forget("ada", "s")
    await rows.release(held, "refreshed")
    assert await rows.of("ada") == []


async def test_an_authorization_is_taken_once_in_time_by_whom_it_belongs_to(database: Database) -> None:
    rows, now = McpConnectionRepository(database), utc_now()
    await rows.expect(McpAuthorization("a", "ada", "data", now + timedelta(minutes=1)))
    await rows.expect(McpAuthorization("b", "ada", "data", now - timedelta(minutes=1)))
    assert await rows.take("a", "grace") is None
    taken = await asyncio.gather(*(rows.take("a", "ada") for _ in range(3)))
    assert len([one for one in taken if one is not None]) == 1
    assert await rows.take("b", "ada") is None
