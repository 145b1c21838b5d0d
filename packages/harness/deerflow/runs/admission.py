"""How many runs may keep the event loop busy at the same time."""

from __future__ import annotations

import asyncio


class AdmissionLimit:
    """Slots for runs that work. Those that wait for a model or a tool need none, so that hundreds of them can.

    Without a bound hundreds that begin together, or get their answers together, would all do their next step in the same
    round of the loop, and no request would be answered for seconds.

    Args:
        slots: how many; the others come later, in the order of their asking.
        seconds: after which a slot is taken back: its run does not work, but waits for something unforeseen.
    """

    def __init__(self, slots: int = 8, seconds: float = 5.0) -> None:
        self._free = asyncio.Semaphore(slots)
        self._seconds = seconds

    def slot(self) -> Slot:
        """For one run."""
        return Slot(self._free, self._seconds)


class Slot:
    """Taken while a run works. Both ways are idempotent."""

    def __init__(self, free: asyncio.Semaphore, seconds: float) -> None:
        self._free = free
        self._seconds = seconds
        self._expires: asyncio.TimerHandle | None = None

    async def take(self) -> None:
        """Wait for a slot, unless there is one already."""
        if self._expires is None:
            await self._free.acquire()
            self._expires = asyncio.get_running_loop().call_later(self._seconds, self.leave)

    def leave(self) -> None:
        if self._expires is not None:
            self._expires.cancel()
            self._expires = None
            self._free.release()
