"""Sending rows of the outbox through an adapter, and recording what became of each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, TypeVarTuple

from sqlalchemy import Connection

from deerflow.features.channels import limits
from deerflow.features.channels.handler import Handler
from deerflow.features.channels.leases import ConnectionRow, Fenced
from deerflow.features.channels.outbox import MARK, Outbox, OutboxRow
from deerflow.features.channels.stored import place_from_json
from deerflow.features.channels.timing import Timing
from deerflow.features.channels.types import (
    Adapter,
    Displaced,
    Later,
    Misconfigured,
    OutFile,
    Place,
    Ref,
    Refused,
    SignedOut,
    Uncertain,
    Unreachable,
)
from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

Args = TypeVarTuple("Args")
OpenFile = Callable[[OutboxRow], Awaitable[OutFile]]
"""Open the file that a row of the kind ``file`` names. Raises Refused, or OSError, if it cannot be sent any more."""

_FAULTS = 5
"""Tries of a row at which the adapter itself fails."""
_CLOCKS = timedelta(minutes=5)
"""The most by which a platform's clock is taken to differ from ours."""
_IN_A_ROW = 3
"""Tries that do not reach the platform, until all of the connection waits."""


class Sender:
    """Sends what one connection has to send, under one lease.

    Args:
        may_send: whether the lease is still ours; asked right before each request, since a process may have been paused.
    """

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        handler: Handler,
        open_file: OpenFile,
        adapter: Adapter,
        held: ConnectionRow,
        may_send: Callable[[], bool],
        timing: Timing,
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._handler = handler
        self._open_file = open_file
        self._adapter = adapter
        self._id, self._epoch = held.id, held.lease_epoch
        self._may_send = may_send
        self._timing = timing
        self._unreachable = 0
        self._edited: dict[int, float] = {}

    async def find(self, most: int, but: Collection[tuple[str, str]]) -> tuple[list[OutboxRow], datetime | None]:
        """Return rows that may be tried now, and when the next may."""
        caps = self._adapter.caps
        rows, due = await self._database.read(self._outbox.heads, self._id, caps, most, but)
        found, now = list[OutboxRow](), monotonic()
        for row in rows:
            wait = self._edited.get(row.id, now - caps.edit_every) + caps.edit_every - now if row.ref else 0.0
            if wait <= 0:
                found.append(row)
            else:
                at = self._outbox.clock() + timedelta(seconds=wait)
                due = min(at, due) if due else at
        return found, due

    async def send(self, row: OutboxRow) -> None:
        """Try one row, once. Raises SignedOut, Misconfigured or Fenced."""
        taken = await self._database.write(self._outbox.begin, row, self._epoch, self._adapter.caps)
        if taken is None:
            return
        if self._outbox.is_given_up(taken):
            await self._give_up(taken, taken.error or "It could not be sent for a day.")
            return
        if not self._may_send():
            raise Fenced(f"The lease of the channel {self._id} is over.")
        try:
            ref = await self._request(taken)
        except Exception as error:
            await self._failed(taken, error)
            return
        self._unreachable = 0
        self._note_edit(taken)
        # What was there already may hold an older text than the row.
        caps, is_repeated = self._adapter.caps, taken.state == "uncertain" and taken.ref is None
        is_older = caps.edits and taken.kind == "text" and (caps.key_window or not taken.is_final)
        known = 0 if is_repeated and is_older else None
        await self._record(self._outbox.sent, taken, self._epoch, ref, known)

    async def _request(self, row: OutboxRow) -> Ref:
        place = place_from_json(row.place)
        if row.kind == "file":
            try:
                file = await self._open_file(row)
            except OSError as error:
                raise Refused(f"{row.body['path']} cannot be read: {error.strerror or error}") from error
            if row.is_marked:
                file = OutFile(file.name, file.size, file.mime, file.open, file.caption + MARK)
            return await self._adapter.upload(place, file, row.key, row.wake)
        if row.ref is not None:
            return await self._adapter.edit(place, row.ref, row.content, row.seq)
        if row.state == "uncertain" and not row.is_final and (found := await self._found(row, place)) is not None:
            return found
        return await self._adapter.post(place, row.content, row.key, row.wake)

    async def _found(self, row: OutboxRow, place: Place) -> Ref | None:
        """Return the placeholder that an earlier try has left, else it would stand alone for good."""
        if self._adapter.caps.key_window:
            return None
        known = await self._database.read(self._outbox.refs, self._id, row.chat)
        try:
            return await self._adapter.find(place, row.created_at - _CLOCKS, known, row.wake)
        except (Refused, Misconfigured):  # without the right to look there is one placeholder more
            return None

    async def _failed(self, row: OutboxRow, error: Exception) -> None:
        """Record a try that failed. What ends the whole connection is raised again."""
        why, epoch, outbox = str(error) or type(error).__name__, self._epoch, self._outbox
        again = outbox.clock() + timedelta(seconds=self._timing.pause(row.tries))
        self._note_edit(row)
        match error:
            case Later():
                until = outbox.clock() + timedelta(seconds=error.after)
                chat = limits.EVERYWHERE if error.everywhere else row.chat
                await self._record(limits.block, self._id, chat, until)
                await self._record(outbox.later, row, epoch, until, why)
            case Unreachable() | Displaced():
                await self._count_unreachable()
                await self._record(outbox.later, row, epoch, again, why, 1)
            case Uncertain():
                await self._record(outbox.uncertain, row, epoch, again, why)
            case Refused() if row.ref is not None:
                await self._record(outbox.repost, row, epoch, why)
            case Refused():
                await self._give_up(row, why)
            case SignedOut() | Misconfigured():
                await self._record(outbox.later, row, epoch, outbox.clock(), why)
                raise error
            case _:
                logger.error("A message of the channel %s failed in a way that is a defect.", self._id, exc_info=error)
                if row.tries + 1 >= _FAULTS:
                    await self._give_up(row, why)
                else:
                    await self._record(outbox.uncertain, row, epoch, again, why)

    async def _count_unreachable(self) -> None:
        self._unreachable += 1
        if self._unreachable >= _IN_A_ROW:
            pause = self._timing.pause(self._unreachable - _IN_A_ROW)
            until = self._outbox.clock() + timedelta(seconds=pause)
            await self._record(limits.block, self._id, limits.EVERYWHERE, until)

    async def _give_up(self, row: OutboxRow, why: str) -> None:
        def job(connection: Connection) -> None:
            is_dead = self._outbox.dead(connection, row, self._epoch, why)
            if is_dead and (given_up := self._outbox.get(connection, row.id)) is not None:
                self._handler.undelivered(connection, given_up)

        logger.warning("A message of the channel %s was given up: %s", self._id, why)
        await self._record(job)

    async def _record(self, job: Callable[[Connection, *Args], Any], *args: *Args) -> None:
        """Write until it is written, or the lease ends: what became of a request must not be lost to a busy database."""
        tries = 0
        while True:
            try:
                await self._database.write(job, *args)
                return
            except Exception:
                if not self._may_send():
                    raise
                logger.warning("Cannot record what became of a message; trying again.", exc_info=True)
                await asyncio.sleep(self._timing.pause(tries))
                tries += 1

    def _note_edit(self, row: OutboxRow) -> None:
        if len(self._edited) > 2000:
            recent = monotonic() - 60.0
            self._edited = {id_: at for id_, at in self._edited.items() if at > recent}
        self._edited[row.id] = monotonic()
