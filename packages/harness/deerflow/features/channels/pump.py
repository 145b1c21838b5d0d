"""Working through rows of places: one row of a place at a time, several places at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from deerflow.event_loop import end
from deerflow.storage.tables import utc_now


class RowOfPlace(Protocol):
    @property
    def chat(self) -> str: ...

    @property
    def topic(self) -> str: ...


Row = TypeVar("Row", bound=RowOfPlace)
Find = Callable[[int, Collection[tuple[str, str]]], Awaitable[tuple[list[Row], datetime | None]]]
"""Return up to so many rows, none of these places, and when to look again if not before."""


class Pump(Generic[Row]):
    """Args:
    work: for one row; whatever it raises ends the pump.
    most: rows at a time.
    sweep: seconds between two looks when nothing wakes it.
    grace: seconds that rows in hand get when the pump ends.
    """

    def __init__(
        self, find: Find[Row], work: Callable[[Row], Awaitable[None]], *, most: int, sweep: float, grace: float
    ) -> None:
        self._find = find
        self._work = work
        self._most = most
        self._sweep = sweep
        self._grace = grace
        self._woken = asyncio.Event()
        self._in_hand: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._error: BaseException | None = None

    def wake(self) -> None:
        """Look for rows now."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled. Raises what ``work`` or ``find`` raises."""
        try:
            while True:
                self._woken.clear()
                pause = await self._take()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._woken.wait()
                if self._error is not None:
                    raise self._error
        finally:
            await end(list(self._in_hand.values()), self._grace)

    async def _take(self) -> float:
        """Begin what may begin. Seconds until to look again."""
        if (free := self._most - len(self._in_hand)) <= 0:
            return self._sweep
        rows, due = await self._find(free, list(self._in_hand))
        for row in rows:
            place = row.chat, row.topic
            task = asyncio.create_task(self._do(row), name="channel row")
            self._in_hand[place] = task
        if due is None:
            return self._sweep
        return min(self._sweep, max(0.01, (due - utc_now()).total_seconds()))

    async def _do(self, row: Row) -> None:
        try:
            await self._work(row)
        except Exception as error:
            self._error = error
        finally:
            del self._in_hand[row.chat, row.topic]
            self._woken.set()
