"""People's own access to MCP servers, what they are just allowing elsewhere, and the pinned definitions of tools."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import mcp_authorizations, mcp_connections, mcp_pins, utc_now

LEASE = timedelta(seconds=30)
MOST_WAITING = 128 << 10
"""Characters of definitions of one server that nobody has accepted, besides those that it lists now."""


@dataclass(frozen=True, slots=True)
class McpConnection:
    """``data`` is encrypted; ``expires_at``: when its access token does, None if that is not known."""

    user_id: str
    server: str
    data: str
    version: int = 1
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class McpAuthorization:
    """``state``: the SHA-256 of what comes back with the answer."""

    state: str
    user_id: str
    data: str
    expires_at: datetime


_KEY = "user_id = ? AND server = ?"


class McpConnectionRepository:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, user_id: str, server: str | None = None) -> list[McpConnection]:
        tail, values = ("", ()) if server is None else (" AND server = ?", (server,))
        where = f"WHERE user_id = ?{tail}"
        return await self._database.read(sql.select, McpConnection, mcp_connections, where, user_id, *values)

    async def keep(self, made: McpConnection) -> None:
        """In place of the person's former one to this server."""
        tail = (
            "ON CONFLICT (user_id, server) DO UPDATE SET data = excluded.data, expires_at = excluded.expires_at, "
            "leased_until = NULL, version = mcp_connections.version + 1"
        )
        await self._database.write(
            lambda connection: sql.insert(connection, mcp_connections, asdict(made), tail) and None
        )

    async def lease(self, held: McpConnection) -> bool:
        """Whether the caller may refresh it now: one at a time over all processes, and nobody did since it was read."""
        where = f"{_KEY} AND version = ? AND (leased_until IS NULL OR leased_until < ?)"
        now = utc_now()
        leased = {"leased_until": now + LEASE}
        same = held.user_id, held.server, held.version, now
        return bool(await self._database.write(sql.update, mcp_connections, leased, where, *same))

    async def release(self, held: McpConnection, data: str | None = None, expires_at: datetime | None = None) -> None:
        """End the lease. With ``data`` it is refreshed, unless the person connected again or disconnected meanwhile."""
        changes: dict[str, object] = {"leased_until": None}
        if data is not None:
            changes |= {"data": data, "expires_at": expires_at, "version": held.version + 1}
        where = f"{_KEY} AND version = ?"
        same = held.user_id, held.server, held.version
        await self._database.write(sql.update, mcp_connections, changes, where, *same, durable=True)

    async def forget(self, user_id: str, server: str, version: int | None = None) -> bool:
        """``version``: only while it is this one."""
        tail, values = ("", ()) if version is None else (" AND version = ?", (version,))
        statement = f"DELETE FROM mcp_connections WHERE {_KEY}{tail}"
        return bool(await self._database.write(sql.change, statement, user_id, server, *values))

    async def expect(self, made: McpAuthorization) -> None:
        """Those that nobody came back for go."""

        def job(connection: Connection) -> None:
            sql.execute(connection, "DELETE FROM mcp_authorizations WHERE expires_at < ?", utc_now())
            sql.insert(connection, mcp_authorizations, asdict(made))

        await self._database.write(job)

    async def take(self, state: str, user_id: str) -> McpAuthorization | None:
        """Once, and by whom it was begun; None when it has expired."""
        tail, now = "WHERE state = ? AND user_id = ?", utc_now()

        def job(connection: Connection) -> McpAuthorization | None:
            found = sql.first(connection, McpAuthorization, mcp_authorizations, tail, state, user_id)
            gone = sql.change(connection, f"DELETE FROM mcp_authorizations {tail}", state, user_id)
            return found if found and gone and found.expires_at > now else None

        return await self._database.write(job)


# pins -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class McpPin:
    """A definition that a server has listed. ``source``: the digest of where the server was; ``accepted``: trust holds for it."""

    server: str
    digest: str
    tool: str
    source: str
    definition: str
    at: datetime
    accepted: bool = False


def with_listed(there: Sequence[McpPin], listed: Sequence[McpPin]) -> list[McpPin]:
    """Return the pins of a server that lists these definitions: the first ones are accepted, later ones are not.

    Of those that it lists no more and that nobody has accepted, the newest stay.
    """
    known = {pin.digest for pin in there}
    is_first = not any(pin.accepted for pin in there)
    kept = [*there, *(replace(pin, accepted=is_first) for pin in listed if pin.digest not in known)]
    now, left = {pin.digest for pin in listed}, MOST_WAITING
    gone: set[str] = set()
    for pin in reversed(kept):
        if not pin.accepted and pin.digest not in now:
            left -= len(pin.definition)
            gone |= {pin.digest} if left < 0 else set()
    return [pin for pin in kept if pin.digest not in gone]


def with_accepted(there: Sequence[McpPin], digests: Collection[str]) -> list[McpPin] | None:
    """Return the pins with these accepted, without those of the same tools of where the server was before; None: one is not there."""
    found = [pin for pin in there if pin.digest in digests]
    if len(found) < len({*digests}):
        return None
    moved = {(pin.tool, pin.source) for pin in found}
    tools = {pin.tool for pin in found}
    kept = [pin for pin in there if pin.tool not in tools or (pin.tool, pin.source) in moved]
    return [replace(pin, accepted=True) if pin.digest in digests else pin for pin in kept]


class McpPinRepository:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[McpPin]:
        """Return all pins, in the order in which they were listed."""
        return await self._database.read(sql.select, McpPin, mcp_pins, "ORDER BY at, tool")

    async def record(self, server: str, listed: Sequence[McpPin]) -> list[McpPin]:
        """Record what a server lists, see :func:`with_listed`; return its pins."""

        def job(connection: Connection) -> list[McpPin]:
            there = _pins(connection, server)
            after = with_listed(there, listed)
            _replace(connection, there, after)
            return after

        return await self._database.write(job)

    async def accept(self, server: str, digests: Collection[str]) -> list[McpPin] | None:
        """Accept definitions, see :func:`with_accepted`; return the server's pins."""

        def job(connection: Connection) -> list[McpPin] | None:
            there = _pins(connection, server)
            if (after := with_accepted(there, digests)) is not None:
                _replace(connection, there, after)
            return after

        return await self._database.write(job)

    async def forget(self, server: str) -> None:
        await self._database.write(sql.change, "DELETE FROM mcp_pins WHERE server = ?", server)


def _pins(connection: Connection, server: str) -> list[McpPin]:
    return sql.select(connection, McpPin, mcp_pins, "WHERE server = ? ORDER BY at, tool", server)


def _replace(connection: Connection, there: Sequence[McpPin], after: Sequence[McpPin]) -> None:
    for pin in there:
        if pin not in after:
            sql.execute(connection, "DELETE FROM mcp_pins WHERE server = ? AND digest = ?", pin.server, pin.digest)
    for pin in after:
        if pin not in there:
            sql.insert(connection, mcp_pins, asdict(pin), "ON CONFLICT (server, digest) DO NOTHING")
