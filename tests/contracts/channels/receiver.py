"""A stand-in for the engine: it accepts events into memory, keeps the cursor, and listens again when a link has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from deerflow.features.channels.types import Adapter, ChannelError, Click, Event, Inbound, Unreachable

PATIENCE = 10.0
"""Seconds after which a test that waits has failed."""


class StorageDown(Exception):
    """The row could not be written."""


class Receiver:
    """Listens while it is entered.

    Args:
        refusals: so many calls of accept with events fail before the first succeeds.
    """

    def __init__(self, adapter: Adapter, cursor: str = "", refusals: int = 0) -> None:
        self.adapter = adapter
        self.cursor = cursor
        self.events: list[Event] = []
        self.connects = 0
        self.ends: list[Exception | None] = []
        self.fatal: ChannelError | None = None
        """The error after which no further try is made."""
        self._refusals = refusals
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._listen())
        await self.until(lambda: self.connects or self.fatal)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self) -> None:
        while self.fatal is None:
            try:
                await self.adapter.listen(self._accept, self.cursor, self._connected)
                self.ends.append(None)
            except (Unreachable, StorageDown) as error:
                self.ends.append(error)
            except ChannelError as error:
                self.ends.append(error)
                self.fatal = error
            await asyncio.sleep(0.01)

    async def _accept(self, events: Sequence[Event], cursor: str | None) -> None:
        if events and self._refusals:
            self._refusals -= 1
            raise StorageDown
        self.events += events
        self.cursor = self.cursor if cursor is None else cursor

    def _connected(self) -> None:
        self.connects += 1

    async def until(self, holds: Callable[[], object]) -> None:
        assert self._task is not None
        async with asyncio.timeout(PATIENCE):
            while not holds():
                if self._task.done() and not holds():
                    self._task.result()
                    raise AssertionError(f"no longer listening: {self.fatal!r}")
                await asyncio.sleep(0.01)

    @property
    def messages(self) -> list[Inbound]:
        return [event for event in self.events if isinstance(event, Inbound)]

    async def message(self, message_id: str) -> Inbound:
        """Wait for a message and return it."""
        await self.until(lambda: any(one.message_id == message_id for one in self.messages))
        return next(one for one in self.messages if one.message_id == message_id)

    async def click(self) -> Click:
        """Wait for the latest click and return it."""
        await self.until(lambda: any(isinstance(event, Click) for event in self.events))
        return next(event for event in reversed(self.events) if isinstance(event, Click))
