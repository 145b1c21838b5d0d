"""The time in which this process holds a connection: receiving, handling and sending, until the lease is lost or given back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from sqlalchemy import Connection

from deerflow.event_loop import end
from deerflow.features.channels import leases
from deerflow.features.channels.intake import Intake
from deerflow.features.channels.leases import ConnectionRow, ConnectionState, Fenced
from deerflow.features.channels.notices import Notices
from deerflow.features.channels.pump import Pump
from deerflow.features.channels.receiver import Receiver
from deerflow.features.channels.sender import Sender
from deerflow.features.channels.types import Adapter, Displaced, Misconfigured, SignedOut
from deerflow.features.channels.work import PlatformWork

logger = logging.getLogger(__name__)


class Holding:
    """Args:
    began: by the monotonic clock, before the lease was asked for.
    """

    def __init__(
        self, work: PlatformWork, held: ConnectionRow, adapter: Adapter, began: float, *, is_http: bool
    ) -> None:
        self.adapter = adapter
        self._work = work
        self._row = held
        self._expires = began + work.timing.lease
        self._look = asyncio.Event()
        self._resumed = asyncio.Event()
        timing, handler = work.timing, work.handler
        sender = Sender(work.database, work.outbox, handler, work.open_file, adapter, held, self.is_ours, timing)
        intake = Intake(work.database, work.inbox, handler, held.id, timing)
        self._out = Pump(sender.find, sender.send, most=work.concurrency, sweep=timing.sweep, grace=timing.closes / 3)
        self._in = Pump(intake.find, intake.handle, most=work.concurrency, sweep=timing.sweep, grace=timing.closes / 3)
        self._notices = Notices(work, held.id, self._out.wake)
        self._receiver = Receiver(work, held, adapter, self._notices.came, is_http=is_http)

    def is_ours(self) -> bool:
        """Return whether no other process can have the lease yet."""
        return monotonic() < self._expires - self._work.timing.closes / 3

    def wake(self) -> None:
        """Look for rows now."""
        self._in.wake()
        self._out.wake()

    def look(self) -> None:
        """Look now whether the lease shall end."""
        self._look.set()

    async def run(self, is_stopping: Callable[[], bool]) -> None:
        """Work until the lease is lost or given back. A state in which only a person can help is recorded."""
        jobs = self._renew(is_stopping), self._receiver.run(), self._send(), self._take_in(), self._notices.run()
        tasks = [asyncio.create_task(job, name=f"channel {self._row.id}") for job in (*jobs, self._resume())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            errors = [error for task in done if (error := task.exception()) is not None]
        finally:
            # Before the lease expires: the next holder must find the platform free.
            await end(tasks, 0)
            await self._close()
        for error in errors:
            await self._ended(error)
        if self.is_ours():
            await self._work.database.write(leases.release, self._row)

    async def _ended(self, error: BaseException) -> None:
        why = str(error) or type(error).__name__
        match error:
            case SignedOut():
                await self._report(ConnectionState.SIGNED_OUT, why)
            case Misconfigured():
                await self._report(ConnectionState.MISCONFIGURED, why)
            case Displaced():
                await self._report(ConnectionState.DISPLACED, f"Another program uses this bot. {why}")
            case Fenced():
                logger.info("This process lets the channel %s go: %s", self._row.id, why)
            case _:
                logger.error("The channel %s ended and begins again.", self._row.id, exc_info=error)
                await self._report(ConnectionState.RETRYING, why)
                await asyncio.sleep(self._work.timing.pause(2))

    async def _report(self, state: ConnectionState, why: str) -> None:
        await self._work.report(self._row, state, why)

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(self._work.timing.closes / 3):
                await self.adapter.aclose()
        except Exception:
            logger.warning("The channel %s did not close well.", self._row.id, exc_info=True)

    async def _renew(self, is_stopping: Callable[[], bool]) -> None:
        """Hold the lease. Returns when it shall be given back; raises Fenced when it is lost."""
        timing = self._work.timing
        while not is_stopping():
            with suppress(TimeoutError):
                async with asyncio.timeout(timing.renew):
                    await self._look.wait()
            self._look.clear()
            if is_stopping():
                return
            began = monotonic()
            try:
                async with asyncio.timeout(max(0.0, self._expires - timing.closes - began)):
                    renewed = await self._work.database.write(self._extend)
            except TimeoutError:
                raise Fenced("its lease could not be renewed in time.") from None
            except Exception:
                logger.warning("Cannot renew the lease of the channel %s.", self._row.id, exc_info=True)
                await asyncio.sleep(timing.first_pause)
                self._look.set()
                continue
            if not renewed:
                raise Fenced("another one has the lease, or its settings have changed.")
            self._expires = began + timing.lease

    def _extend(self, connection: Connection) -> bool:
        is_linked = self._receiver.is_linked
        return leases.renew(connection, self._row, self._work.timing.lease_delta, is_linked=is_linked)

    async def _send(self) -> None:
        await self._receiver.signed_in.wait()
        await self._out.run()

    async def _take_in(self) -> None:
        # Or a new message would be answered before those that a process before this one began with.
        await self._resumed.wait()
        await self._in.run()

    async def _resume(self) -> None:
        """Bring messages that show progress up to date."""
        for turn in await self._work.database.read(self._work.outbox.unfinished, self._row.id):
            try:
                await self._work.handler.resume(self._row.id, turn)
            except Exception:
                logger.error("A message of the channel %s still shows progress.", self._row.id, exc_info=True)
        self._resumed.set()
        self._out.wake()
        await asyncio.Event().wait()
