"""Wake-ups through PostgreSQL's LISTEN and NOTIFY."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import Connection, text

from deerflow.events.notify import Receive, Receivers

if TYPE_CHECKING:
    from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

_CHANNEL = "deerflow"
_RETRY_SECONDS = 1.0
_NOTIFY = text("SELECT pg_notify(:channel, :payload)")


class PostgresWake:
    """One connection listens for the whole process; it must not go through a pooler in transaction mode.

    Args:
        database: the PostgreSQL that the processes share.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._receivers = Receivers()
        self._task: asyncio.Task[None] | None = None

    def listen(self, channel: str, receive: Receive) -> None:
        self._receivers.add(channel, receive)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())

    def within(self, connection: Connection, channel: str, messages: Sequence[str]) -> bool:
        for payload in self._receivers.payloads(channel, messages):
            connection.execute(_NOTIFY, {"channel": _CHANNEL, "payload": payload})
        return True

    async def send(self, channel: str, messages: Sequence[str]) -> None:
        await self._database.write(lambda connection: self.within(connection, channel, messages))

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _listen(self) -> None:
        address = "postgresql://" + self._database.location.split("://", 1)[1]
        # A peer that is gone without a word is noticed within half a minute.
        options: dict[str, Any] = {
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "connect_timeout": 10,
        }
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(address, autocommit=True, **options) as connection:
                    await connection.execute(f"LISTEN {_CHANNEL}")
                    self._receivers.connected()
                    async for notice in connection.notifies():
                        self._receivers.deliver(notice.payload)
            except Exception as error:
                logger.warning("The connection that listens to PostgreSQL is lost, connecting anew: %s", error)
            finally:
                self._receivers.disconnected()
            await asyncio.sleep(_RETRY_SECONDS)
