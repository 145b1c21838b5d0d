"""Chat channels of this process: which connections there shall be, and the way to them for the rest of the program."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from deerflow.errors import NotFoundError, UnavailableError
from deerflow.event_loop import end
from deerflow.events.notify import Notifier
from deerflow.features.channels import leases
from deerflow.features.channels.handler import Handler
from deerflow.features.channels.inbox import MAX_AGE, Inbox
from deerflow.features.channels.link import Link
from deerflow.features.channels.outbox import Outbox, OutboxRow, Target
from deerflow.features.channels.sender import OpenFile
from deerflow.features.channels.timing import Timing
from deerflow.features.channels.types import Adapter, ChannelError, HttpAdapter, OutFile, Refused
from deerflow.features.channels.work import PlatformWork
from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

_CHANNEL = "channels"
_REFRESH = "*"
"""A message to all processes; others are ids of connections."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A connection that there shall be.

    Args:
        version: of its settings: another one closes the link and opens it again.
        open: make the adapter, in a thread. Raises Misconfigured.
        is_http: the platform calls us; ``open`` makes an :class:`HttpAdapter`.
        row: columns of a new row, such as ``user_id``.
    """

    kind: str
    version: str
    open: Callable[[], Adapter]
    is_http: bool = False
    row: Mapping[str, Any] = field(default_factory=dict[str, Any])


async def _no_files(row: OutboxRow) -> OutFile:
    raise Refused("This process cannot open files of threads.")


class Engine:
    """Args:
    wanted: the connections that there shall be, by id. Asked again at :meth:`refresh`, and every ``timing.sweep`` seconds.
    notifier: to the other processes; None if there are none.
    concurrency: places of one connection at a time.
    max_waiting: messages of one connection that wait, from which on people read that it takes longer.
    """

    def __init__(
        self,
        database: Database,
        wanted: Callable[[], Awaitable[Mapping[str, Wanted]]],
        *,
        open_file: OpenFile = _no_files,
        notifier: Notifier | None = None,
        timing: Timing = Timing(),
        max_age: timedelta = MAX_AGE,
        concurrency: int = 16,
        max_waiting: int = 1000,
    ) -> None:
        self.inbox = Inbox(database, self.wake, max_age=max_age)
        self.outbox = Outbox(self.wake)
        self._database = database
        self._wanted = wanted
        self._open_file = open_file
        self._notifier = notifier
        self._timing = timing
        self._concurrency = concurrency
        self._max_waiting = max_waiting
        self._work: PlatformWork | None = None
        self._links: dict[str, tuple[Wanted, Link, asyncio.Task[None]]] = {}
        self._receivers: dict[str, tuple[str, HttpAdapter]] = {}
        self._refresh = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._unsent: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def start(self, handler: Handler) -> None:
        """Begin; must be called on the event loop. No channel keeps the program from starting."""
        self._work = PlatformWork(
            self._database,
            self.inbox,
            self.outbox,
            handler,
            self._open_file,
            self._timing,
            uuid4().hex,
            self._concurrency,
            self._max_waiting,
        )
        if self._notifier is not None:
            self._notifier.listen(_CHANNEL, self._receive)
        self._loop = asyncio.create_task(self._run(self._work), name="channels")

    async def aclose(self, grace: float = 5.0) -> None:
        """Give all leases back and close. Idempotent."""
        if self._loop is not None:
            await end([self._loop, *([self._sending] if self._sending else [])], 0)
            self._loop = None
        links, self._links = list(self._links.values()), {}
        for _, link, _ in links:
            link.stop()
        await end([task for _, _, task in links], grace)
        for _, receiver in self._receivers.values():
            await receiver.aclose()
        self._receivers = {}

    # for the rest of the program --------------------------------------------------------------------------------------

    def wake(self, connection_id: str) -> None:
        """Look for rows of a connection now, in whichever process holds it. Call it after the commit."""
        if connection_id in self._links and self._links[connection_id][1].wake():
            return
        self._announce(connection_id)

    def refresh(self) -> None:
        """Ask now, in every process, which connections there shall be."""
        self._refresh.set()
        self._announce(_REFRESH)

    async def deliver(self, target: Target, text: str, *, key: str = "") -> None:
        """Send a text that belongs to no turn; see :meth:`Outbox.deliver`."""

        def job(connection: Connection) -> None:
            self.outbox.deliver(connection, target, text, key=key)

        await self._database.write(job)
        self.wake(target.connection_id)

    async def receive(
        self, connection_id: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Mapping[str, Any]]:
        """Take a request of a platform that calls us. Raises NotFoundError if there is no such connection."""
        if connection_id not in self._receivers:
            raise NotFoundError("There is no such channel.", reason="channel_gone")

        async def accept(events: Any, cursor: str | None) -> None:
            await self.inbox.accept(connection_id, events, cursor)

        try:
            return await self._receivers[connection_id][1].receive(headers, body, accept)
        except ChannelError as error:
            raise UnavailableError(str(error)) from error

    def receivers(self, kind: str) -> list[str]:
        """Return the connections of a platform that calls us."""
        return [id_ for id_ in self._receivers if id_ in self._links and self._links[id_][0].kind == kind]

    def adapter(self, connection_id: str) -> Adapter | None:
        """Return the adapter of a connection, if this process holds it and it is open."""
        known = self._links.get(connection_id)
        return known[1].adapter if known is not None else None

    # which connections there are --------------------------------------------------------------------------------------

    async def _run(self, work: PlatformWork) -> None:
        while True:
            self._refresh.clear()
            try:
                await self._sync(work, await self._wanted())
            except Exception:
                logger.error("The list of channels cannot be read; those that run go on.", exc_info=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timing.sweep):
                    await self._refresh.wait()

    async def _sync(self, work: PlatformWork, wanted: Mapping[str, Wanted]) -> None:
        for connection_id in list(self._links):
            known, link, task = self._links[connection_id]
            if connection_id not in wanted or wanted[connection_id].version != known.version or task.done():
                link.stop()
                await end([task], self._timing.closes)
                del self._links[connection_id]
        for connection_id in set(self._receivers) - {id_ for id_, one in wanted.items() if one.is_http}:
            await self._receivers.pop(connection_id)[1].aclose()
        for connection_id, one in wanted.items():
            if connection_id in self._links:
                continue
            try:
                await self._begin(work, connection_id, one)
            except Exception:
                logger.error("The channel %s cannot be opened.", connection_id, exc_info=True)

    async def _begin(self, work: PlatformWork, connection_id: str, one: Wanted) -> None:
        def job(connection: Connection) -> None:
            leases.ensure(connection, connection_id, one.kind, one.row)
            leases.reset(connection, connection_id)

        await self._database.write(job)
        link = Link(work, connection_id, one.open, is_http=one.is_http)
        self._links[connection_id] = one, link, asyncio.create_task(link.run(), name=f"channel {connection_id}")
        if one.is_http:
            await self._open_receiver(connection_id, one)

    async def _open_receiver(self, connection_id: str, one: Wanted) -> None:
        """Open the adapter that takes requests here, whichever process holds the lease."""
        if connection_id in self._receivers:
            await self._receivers.pop(connection_id)[1].aclose()
        with suppress(ChannelError):  # the link reports it
            receiver: Any = await asyncio.to_thread(one.open)
            self._receivers[connection_id] = one.version, receiver

    # to and from other processes --------------------------------------------------------------------------------------

    def _announce(self, message: str) -> None:
        if self._notifier is None:
            return
        self._unsent.add(message)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._notify(self._notifier))

    async def _notify(self, notifier: Notifier) -> None:
        try:
            while self._unsent:
                await asyncio.sleep(0.02)
                unsent, self._unsent = list(self._unsent), set()
                await notifier.send(_CHANNEL, unsent)
        finally:
            self._sending = None

    def _receive(self, messages: list[str] | None) -> None:
        for message in [_REFRESH, *self._links] if messages is None else messages:
            if message == _REFRESH:
                self._refresh.set()
            elif message in self._links:
                self._links[message][1].wake()
