"""Parts that all connections of a process share."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from deerflow.features.channels import leases
from deerflow.features.channels.handler import Handler
from deerflow.features.channels.inbox import Inbox
from deerflow.features.channels.leases import ConnectionRow, ConnectionState
from deerflow.features.channels.outbox import Outbox
from deerflow.features.channels.sender import OpenFile
from deerflow.features.channels.timing import Timing
from deerflow.storage.database import Database

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlatformWork:
    """Args:
    owner: names this process in leases.
    concurrency: places of one connection at a time.
    max_waiting: messages of one connection that wait, from which on people read that it takes longer.
    """

    database: Database
    inbox: Inbox
    outbox: Outbox
    handler: Handler
    open_file: OpenFile
    timing: Timing
    owner: str
    concurrency: int
    max_waiting: int

    async def report(self, held: ConnectionRow, state: ConnectionState, why: str) -> None:
        """Record the state of a connection; log it if it is another one than before."""
        if await self.database.write(leases.set_state, held.id, held.lease_epoch, state, why):
            level = logging.INFO if state == ConnectionState.CONNECTED else logging.WARNING
            logger.log(level, "The channel %s is %s%s", held.id, state, f": {why}" if why else ".")
