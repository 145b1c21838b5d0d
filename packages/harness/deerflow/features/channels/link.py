"""One connection in one process: waiting for its lease, and working while that is held."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from deerflow.features.channels import leases
from deerflow.features.channels.holding import Holding
from deerflow.features.channels.leases import ConnectionRow, ConnectionState
from deerflow.features.channels.types import Adapter, ChannelError
from deerflow.features.channels.work import PlatformWork

logger = logging.getLogger(__name__)


class Link:
    """Args:
    open_adapter: makes the adapter, for each lease.
    is_http: the platform calls us, in whichever process; the lease is for handling and sending alone.
    """

    def __init__(
        self, work: PlatformWork, connection_id: str, open_adapter: Callable[[], Adapter], *, is_http: bool
    ) -> None:
        self._work = work
        self._id = connection_id
        self._open = open_adapter
        self._is_http = is_http
        self._look = asyncio.Event()
        self._stopping = False
        self._holding: Holding | None = None

    @property
    def adapter(self) -> Adapter | None:
        """The adapter, while this process holds the connection."""
        return self._holding.adapter if self._holding is not None else None

    def wake(self) -> bool:
        """Look for rows now. False: another process does."""
        if self._holding is None:
            self._look.set()
            return False
        self._holding.wake()
        return True

    def stop(self) -> None:
        """Let :meth:`run` end, with the lease given back."""
        self._stopping = True
        self._look.set()
        if self._holding is not None:
            self._holding.look()

    async def run(self) -> None:
        """Take the lease and work, again and again, whatever happens, until stopped."""
        timing = self._work.timing
        while not self._stopping:
            self._look.clear()
            try:
                began = monotonic()
                held = await self._work.database.write(leases.acquire, self._id, self._work.owner, timing.lease_delta)
                if held is not None:
                    await self._hold(held, began)
                    continue
            except Exception:
                logger.warning("The channel %s cannot be looked after; trying again.", self._id, exc_info=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(timing.look):
                    await self._look.wait()

    async def _hold(self, held: ConnectionRow, began: float) -> None:
        try:
            adapter = await asyncio.to_thread(self._open)
        except ChannelError as error:
            await self._work.report(held, ConnectionState.MISCONFIGURED, str(error))
            await self._work.database.write(leases.release, held)
            return
        self._holding = Holding(self._work, held, adapter, began, is_http=self._is_http)
        try:
            await self._holding.run(lambda: self._stopping)
        finally:
            self._holding = None
