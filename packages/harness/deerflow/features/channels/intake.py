"""Handing accepted rows to what answers them, oldest first in each place."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection

from deerflow.features.channels.handler import Handler, NotYet
from deerflow.features.channels.inbox import Inbox, InboxRow, InboxState
from deerflow.features.channels.timing import Timing
from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

TRIES = 5


class Intake:
    """Handles what one connection has accepted."""

    def __init__(self, database: Database, inbox: Inbox, handler: Handler, connection_id: str, timing: Timing) -> None:
        self._database = database
        self._inbox = inbox
        self._handler = handler
        self._id = connection_id
        self._timing = timing

    async def find(self, most: int, but: Collection[tuple[str, str]]) -> tuple[list[InboxRow], datetime | None]:
        return await self._database.read(self._inbox.heads, self._id, most, but)

    async def handle(self, row: InboxRow) -> None:
        """Handle one row, once."""
        try:
            await (self._handler.click(row) if row.kind == "click" else self._handler.handle(row))
        except NotYet as later:
            await self._database.write(self._inbox.put_off, row, later.after)
        except Exception as error:
            await self._failed(row, error)
        else:
            if await self._database.read(self._inbox.is_accepted, row):
                await self._ignore(row, "not handled")

    async def _failed(self, row: InboxRow, error: Exception) -> None:
        if row.tries + 1 >= TRIES:
            logger.error("A message of the channel %s cannot be handled; it is ignored.", self._id, exc_info=error)
            await self._ignore(row, f"failed: {error}"[:1000])
            return
        logger.warning(
            "A message of the channel %s was not handled, it comes again: %s", self._id, error, exc_info=True
        )
        pause = self._timing.first_pause * 4**row.tries

        def job(connection: Connection) -> None:
            self._inbox.put_off(connection, row, pause, failed=True)

        await self._database.write(job)

    async def _ignore(self, row: InboxRow, why: str) -> None:
        """Move on a row that the handler left as it was."""

        def job(connection: Connection) -> None:
            self._inbox.move(connection, row, InboxState.IGNORED, why=why)

        await self._database.write(job)
