"""Connections as turns use them: the platform, the bot's account there, and the settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from deerflow.features.channels import leases
from deerflow.features.channels.config import ChannelConfig
from deerflow.features.channels.types import Adapter, Me
from deerflow.storage import sql
from deerflow.storage.database import Database


@dataclass(frozen=True, slots=True)
class Line:
    """A connection that is open in this process.

    Args:
        channel: its settings, as its row has them now.
        owner: the user id of the only person that it answers; None: everyone with an account.
    """

    id: str
    kind: str
    adapter: Adapter
    me: Me
    channel: ChannelConfig = field(default_factory=ChannelConfig)
    owner: str | None = None

    @property
    def working(self) -> str:
        """Return the first line of answers that are on their way; empty: ours."""
        return str((self.channel.model_extra or {}).get("working_message") or "")


class ChatLines:
    """Args:
    adapter: that of a connection, or None if this process does not hold it.
    """

    def __init__(self, database: Database, adapter: Callable[[str], Adapter | None]) -> None:
        self._database = database
        self._adapter = adapter

    async def get(self, connection_id: str) -> Line | None:
        """Return a connection with its settings as they are now, or None if it is not open here."""
        row = await self._database.read(leases.get, connection_id)
        adapter = self._adapter(connection_id)
        if row is None or adapter is None:
            return None
        me = Me(**row.me) if row.me else Me("", "")
        return Line(row.id, row.kind, adapter, me, ChannelConfig.model_validate(row.settings), row.user_id)

    async def open(self) -> set[str]:
        """Return the connections that are open in this process."""
        rows = await self._database.read(
            lambda connection: sql.execute(connection, "SELECT id FROM channel_connections WHERE is_on").fetchall()
        )
        return {connection_id for (connection_id,) in rows if self._adapter(connection_id) is not None}
