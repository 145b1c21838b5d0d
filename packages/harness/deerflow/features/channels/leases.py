"""Rows of connections: which process holds one, and in which state it is.

A lease has an epoch, a fencing token: what its holder writes counts only while no other process has taken a newer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from deerflow.features.channels.types import Me
from deerflow.storage import sql
from deerflow.storage.tables import channel_connections, utc_now


class Fenced(Exception):
    """Another process holds the connection by now: nothing was written."""


class ConnectionState(StrEnum):
    """A connection in one of the last three waits for a person."""

    CONNECTED = "connected"
    RETRYING = "retrying"
    SIGNED_OUT = "signed-out"
    DISPLACED = "displaced"
    MISCONFIGURED = "misconfigured"


_TRIES = (ConnectionState.CONNECTED, ConnectionState.RETRYING)


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A row of ``channel_connections``, without its secrets."""

    id: str
    kind: str
    user_id: str | None
    in_file: bool
    is_on: bool
    settings: dict[str, Any]
    version: int
    me: dict[str, Any] | None
    cursor: str
    lease_owner: str | None
    lease_epoch: int
    leased_until: datetime | None
    state: str
    state_since: datetime | None
    error: str | None
    linked_at: datetime | None


def get(connection: Connection, connection_id: str) -> ConnectionRow | None:
    return sql.first(connection, ConnectionRow, channel_connections, "WHERE id = ?", connection_id)


def ensure(connection: Connection, connection_id: str, kind: str, more: Mapping[str, Any] = {}) -> None:
    """Make the row of a connection, unless there is one."""
    now = utc_now()
    row = {
        **{
            "id": connection_id,
            "kind": kind,
            "in_file": True,
            "is_on": True,
            "secrets": "",
            "settings": {},
            "version": 0,
        },
        **{"cursor": "", "lease_epoch": 0, "state": str(ConnectionState.RETRYING), "state_since": now},
        **{"created_at": now, "updated_at": now},
        **more,
    }
    sql.insert(connection, channel_connections, row, "ON CONFLICT (id) DO NOTHING")


def acquire(connection: Connection, connection_id: str, owner: str, lease: timedelta) -> ConnectionRow | None:
    """Take the lease of a connection if no other process has it. None also for one that waits for a person."""
    now = _now(connection)
    free = "(leased_until IS NULL OR leased_until <= ? OR lease_owner = ?) AND state IN (?, ?)"
    taken = f"UPDATE channel_connections SET lease_owner = ?, lease_epoch = lease_epoch + 1, leased_until = ? WHERE id = ? AND {free}"
    values = owner, now + lease, connection_id, now, owner, *map(str, _TRIES)
    return get(connection, connection_id) if sql.change(connection, taken, *values) else None


def renew(connection: Connection, row: ConnectionRow, lease: timedelta, *, is_linked: bool) -> bool:
    """Hold the lease of ``row`` longer. False: another process has it, or its settings have changed."""
    now = _now(connection)
    changes: dict[str, Any] = {"leased_until": now + lease, **({"linked_at": now} if is_linked else {})}
    held = "id = ? AND lease_epoch = ? AND version = ?"
    return bool(sql.update(connection, channel_connections, changes, held, row.id, row.lease_epoch, row.version))


def release(connection: Connection, row: ConnectionRow) -> None:
    changes = {"lease_owner": None, "leased_until": None}
    sql.update(connection, channel_connections, changes, "id = ? AND lease_epoch = ?", row.id, row.lease_epoch)


def reset(connection: Connection, connection_id: str) -> None:
    """Let a connection that waits for a person be tried once more, such as when a process starts."""
    waits = f"id = ? AND state NOT IN ({', '.join('?' * len(_TRIES))})"
    changes = {"state": str(ConnectionState.RETRYING), "state_since": utc_now(), "error": None}
    sql.update(connection, channel_connections, changes, waits, connection_id, *map(str, _TRIES))


def set_state(connection: Connection, connection_id: str, epoch: int, state: ConnectionState, error: str) -> bool:
    """Record a state. True if it is another one than before, or the first trouble."""
    if not _is_held(connection, connection_id, epoch):
        return False
    new = {"state": str(state), "state_since": utc_now(), "error": error or None}
    other = "id = ? AND (state <> ? OR (error IS NULL AND ? <> ''))"
    if sql.update(connection, channel_connections, new, other, connection_id, str(state), error):
        return True
    sql.update(connection, channel_connections, {"error": error or None}, "id = ?", connection_id)
    return False


def set_me(connection: Connection, connection_id: str, epoch: int, me: Me) -> None:
    held = "id = ? AND lease_epoch = ?"
    sql.update(connection, channel_connections, {"me": sql.storable(asdict(me))}, held, connection_id, epoch)


def _is_held(connection: Connection, connection_id: str, epoch: int) -> bool:
    held = "SELECT 1 FROM channel_connections WHERE id = ? AND lease_epoch = ?" + sql.for_update(connection)
    return sql.execute(connection, held, connection_id, epoch).fetchone() is not None


def _now(connection: Connection) -> datetime:
    """Return the time of the database: clocks of gateways differ."""
    if connection.dialect.name == "sqlite":
        return utc_now()
    return sql.execute(connection, "SELECT clock_timestamp()").fetchone()[0]
