"""People's own access to MCP servers, and what they are just allowing elsewhere."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import mcp_authorizations, mcp_connections, utc_now

LEASE = timedelta(seconds=30)


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
        where = "user_id = ? AND server = ? AND version = ? AND (leased_until IS NULL OR leased_until < ?)"
        now = utc_now()
        leased = {"leased_until": now + LEASE}
        same = held.user_id, held.server, held.version, now
        return bool(await self._database.write(sql.update, mcp_connections, leased, where, *same))

    async def release(self, held: McpConnection, data: str | None = None, expires_at: datetime | None = None) -> None:
        """End the lease. With ``data`` it is refreshed, unless the person connected again or disconnected meanwhile."""
        changes: dict[str, object] = {"leased_until": None}
        if data is not None:
            changes |= {"data": data, "expires_at": expires_at, "version": held.version + 1}
        where = "user_id = ? AND server = ? AND version = ?"
        same = held.user_id, held.server, held.version
        await self._database.write(sql.update, mcp_connections, changes, where, *same, durable=True)

    async def forget(self, user_id: str, server: str, version: int | None = None) -> bool:
        """``version``: only while it is this one."""
        tail, values = ("", ()) if version is None else (" AND version = ?", (version,))
        statement = f"DELETE FROM mcp_connections WHERE user_id = ? AND server = ?{tail}"
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
