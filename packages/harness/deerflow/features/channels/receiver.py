"""Listening to a platform under one lease, connecting again, and reading what came in between."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from deerflow.event_loop import end
from deerflow.features.channels import leases
from deerflow.features.channels.leases import ConnectionRow, ConnectionState, Fenced
from deerflow.features.channels.types import Adapter, ChannelError, Displaced, Event, Later, Misconfigured, SignedOut
from deerflow.features.channels.work import PlatformWork

logger = logging.getLogger(__name__)

MOST_DISPLACED = 3
_GAP = timedelta(minutes=1)
"""A link may have been dead for so long before that was noticed."""


class Receiver:
    """Args:
    came: called with events that were stored, some of them for the first time.
    """

    def __init__(
        self,
        work: PlatformWork,
        held: ConnectionRow,
        adapter: Adapter,
        came: Callable[[Sequence[Event]], None],
        *,
        is_http: bool,
    ) -> None:
        self.is_linked = False
        self.signed_in = asyncio.Event()
        self._work = work
        self._row = held
        self._adapter = adapter
        self._came = came
        self._is_http = is_http
        self._gap_since = held.linked_at
        self._beside: set[asyncio.Task[None]] = set()
        self._displaced: deque[float] = deque(maxlen=MOST_DISPLACED)

    async def run(self) -> None:
        """Listen until cancelled. Raises what only a person can mend, and Fenced."""
        timing, tries = self._work.timing, 0
        try:
            while True:
                began = monotonic()
                why = await self._listen_once()
                stood = self.is_linked and monotonic() - began > timing.longest_pause
                tries = 0 if stood else tries
                await self._unlinked(why)
                await asyncio.sleep(timing.pause(tries))
                tries += 1
        finally:
            await end(self._beside, 0)

    async def _listen_once(self) -> str:
        """Listen until the link ends, and return why it did."""
        try:
            await self._listen()
            return "The platform closed the link."
        except (SignedOut, Misconfigured, Fenced):
            raise
        except Displaced as error:
            self._displaced.append(monotonic())
            in_time = self._displaced[-1] - self._displaced[0] <= self._work.timing.displaced_within
            if len(self._displaced) == MOST_DISPLACED and in_time:
                raise
            return str(error)
        except ChannelError as error:
            if isinstance(error, Later):
                await asyncio.sleep(min(error.after, self._work.timing.longest_pause))
            return str(error) or type(error).__name__
        except Exception as error:
            logger.error("The link of the channel %s failed in a way that is a defect.", self._row.id, exc_info=error)
            return f"{type(error).__name__}: {error}"

    async def _listen(self) -> None:
        me = await self._adapter.identify()
        await self._work.database.write(leases.set_me, self._row.id, self._row.lease_epoch, me)
        self.signed_in.set()
        if self._is_http:
            self._connected()
            await asyncio.Event().wait()
        row = await self._work.database.read(leases.get, self._row.id)
        await self._adapter.listen(self._accept, row.cursor if row is not None else "", self._connected)

    async def _accept(self, events: Sequence[Event], cursor: str | None) -> None:
        """Store events and cursor under the lease; see ``types.Accept``."""
        if await self._work.inbox.accept(self._row.id, events, cursor, epoch=self._row.lease_epoch):
            self._came(events)

    def _connected(self) -> None:
        self.is_linked = True
        self._begin(self._work.report(self._row, ConnectionState.CONNECTED, ""))
        if not self._adapter.caps.replays:
            # The adapter may connect again by itself: then the gap is as long as a dead link is not noticed.
            self._begin(self._catch_up((self._gap_since or self._work.inbox.now()) - _GAP))

    async def _unlinked(self, why: str) -> None:
        if self.is_linked:
            self.is_linked, self._gap_since = False, self._gap_since or self._work.inbox.now()
        await end(self._beside, self._work.timing.first_pause)
        await self._work.report(self._row, ConnectionState.RETRYING, why)

    async def _catch_up(self, since: datetime) -> None:
        """Read what came to known places while there was no link; once more at the next link, if this one ends before."""
        for place in await self._work.database.read(self._work.inbox.places, self._row.id):
            try:
                await self._accept(await self._adapter.missed(place, since), None)
            except ChannelError as error:
                logger.warning("The channel %s may have missed messages of a place: %s", self._row.id, error)
                if isinstance(error, Later):
                    await asyncio.sleep(error.after)
        self._gap_since = None

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        async def safely() -> None:
            try:
                await work
            except Exception:
                logger.warning("Something beside the link of the channel %s failed.", self._row.id, exc_info=True)

        task = asyncio.create_task(safely(), name=f"channel {self._row.id}")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
