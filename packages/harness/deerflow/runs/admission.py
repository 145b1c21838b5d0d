"""How many runs may keep the event loop busy at the same time."""

from __future__ import annotations

import asyncio


class Pace:
    """Places for runs that work. Those that wait for a model or a tool need none, so that hundreds of them can.

    Without a bound hundreds that begin together, or get their answers together, would all do their next step in the same
    round of the loop, and nobody else would be heard for seconds.

    Args:
        places: how many; the others come later, in the order of their asking.
        seconds: after which whoever has a place loses it: it does not work, but waits for something unforeseen.
    """

    def __init__(self, places: int = 8, seconds: float = 5.0) -> None:
        self._free = asyncio.Semaphore(places)
        self._seconds = seconds

    def place(self) -> Place:
        """For one run."""
        return Place(self._free, self._seconds)


class Place:
    """Taken while a run works. Both ways are idempotent."""

    def __init__(self, free: asyncio.Semaphore, seconds: float) -> None:
        self._free = free
        self._seconds = seconds
        self._taken_until: asyncio.TimerHandle | None = None

    async def take(self) -> None:
        """Wait for a place, unless there is one already."""
        if self._taken_until is None:
            await self._free.acquire()
            self._taken_until = asyncio.get_running_loop().call_later(self._seconds, self.leave)

    def leave(self) -> None:
        if self._taken_until is not None:
            self._taken_until.cancel()
            self._taken_until = None
            self._free.release()
