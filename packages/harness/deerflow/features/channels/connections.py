"""Connections to platforms as people set them up: rows with settings, and sealed secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection

from deerflow.config.env import is_secret_key
from deerflow.config.secrets import Seal
from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.features.channels.config import ChannelConfig
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_connections, utc_now

MISCONFIGURED = "misconfigured"
GONE = "There is no such channel."


@dataclass(frozen=True, slots=True)
class ChannelConnection:
    """A row of ``channel_connections``, as far as people see and change it."""

    id: str
    kind: str
    user_id: str | None
    in_file: bool
    is_on: bool
    secrets: str
    settings: dict[str, Any]
    version: int
    me: dict[str, Any] | None
    state: str
    state_since: datetime | None
    error: str | None
    created_at: datetime
    updated_at: datetime


class ChannelConnections:
    """Args:
    key_file: of the installation; encrypts secrets.
    """

    def __init__(self, database: Database, key_file: Path) -> None:
        self._database = database
        self._seal = Seal(key_file, "The secrets of channels", "enter them again in the settings, under Channels")

    async def select(self, tail: str, *values: Any) -> list[ChannelConnection]:
        return await self._database.read(sql.select, ChannelConnection, channel_connections, tail, *values)

    async def get(self, connection_id: str) -> ChannelConnection:
        """Raises NotFoundError."""
        for found in await self.select("WHERE id = ?", connection_id):
            return found
        raise NotFoundError(GONE, reason="channel_gone")

    async def add(self, row: ChannelConnection) -> None:
        """Add a row, unless there is one with its id."""

        def job(connection: Connection) -> None:
            made = asdict(row) | {"cursor": "", "lease_epoch": 0}
            sql.insert(connection, channel_connections, made, "ON CONFLICT DO NOTHING")

        await self._database.write(job)

    async def change(self, row: ChannelConnection) -> ChannelConnection:
        """Write settings, secrets and whether it is on, as a new version, which begins with a new state."""
        is_wrong = row.state == MISCONFIGURED and not row.is_on
        changes = {
            "is_on": row.is_on,
            "settings": row.settings,
            "secrets": row.secrets,
            "version": row.version + 1,
            "state": row.state if is_wrong else "retrying",
            "state_since": utc_now(),
            "error": row.error if is_wrong else None,
            "updated_at": utc_now(),
        }
        await self._database.write(sql.update, channel_connections, changes, "id = ?", row.id)
        return await self.get(row.id)

    async def remove(self, connection_id: str) -> None:
        await self._database.write(sql.change, "DELETE FROM channel_connections WHERE id = ?", connection_id)

    async def sealed(self, secrets: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(self._seal.closed, dict(secrets))

    async def secrets(self, row: ChannelConnection) -> dict[str, Any]:
        """Return the secrets of a connection. Raises WrongKeyError."""
        return await asyncio.to_thread(self._seal.opened, row.secrets) if row.secrets else {}


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings and secrets, which their names distinguish as everywhere."""
    secrets = {key: value for key, value in given.items() if is_secret_key(key)}
    return {key: value for key, value in given.items() if key not in secrets}, secrets


def checked(settings: dict[str, Any]) -> dict[str, Any]:
    try:
        ChannelConfig.model_validate(settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidRequestError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return sql.storable(settings)


def without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}
