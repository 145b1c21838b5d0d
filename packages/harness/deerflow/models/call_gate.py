"""Limit the calls of an endpoint, and wait where it asks for that."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    pass
else:
    # Only the fields below: a mixin that brought the model's along would undo what its sibling made of them.
    pass


LONGEST_HOLD, PROBE_EVERY = 6 * 3600.0, 60.0
"""Seconds for which a provider is believed that it wants no calls, and between two calls that look whether it still does."""


class CallGate:
    """Admits calls to one provider in their order: so many at once and per minute, and none while the provider asks to wait.

    After such a refusal one call goes first, and each that succeeds lets twice as many go beside it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first_in_line, self._changed = asyncio.Lock(), asyncio.Event()
        self._active, self._width = 0, math.inf
        self._begun = deque[float]()
        self._held_until = self._probe_at = 0.0

    @property
    def held(self) -> float:
        """Seconds for which the provider wants no calls."""
        return max(0.0, self._held_until - self._clock())

    @asynccontextmanager
    async def call(
        self, at_once: int | None = None, per_minute: int | None = None, *, has_waited: bool = False
    ) -> AsyncGenerator[None]:
        """Wait for a place, and keep it for one call.

        Args:
            has_waited: the call was refused and has waited for as long as the provider asked.
        """
        async with self._first_in_line:
            while (seconds := self._wait(at_once, per_minute, has_waited)) > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if seconds == math.inf else seconds):
                        await self._changed.wait()
            self._active += 1
            self._begun.append(self._clock())
        try:
            yield
            self._width *= 2
        finally:
            self._active -= 1
            self._changed.set()

    def release(self) -> None:
        """The provider takes calls again."""
        self._held_until, self._width = 0.0, math.inf
        self._changed.set()

    def hold(self, seconds: float) -> None:
        """The provider refused a call since there were too many."""
        now = self._clock()
        self._held_until, self._width = max(self._held_until, now + min(seconds, LONGEST_HOLD)), 1.0
        self._probe_at = now + PROBE_EVERY
        self._changed.set()

    def may_probe(self) -> bool:
        """Return whether one call may look whether the provider still wants none. It may once a minute."""
        if self._clock() < self._probe_at:
            return False
        self._probe_at = self._clock() + PROBE_EVERY
        return True

    def _wait(self, at_once: int | None, per_minute: int | None, has_waited: bool) -> float:
        """Seconds until the next look; infinite: until a call ends."""
        now = self._clock()
        while self._begun and self._begun[0] <= now - 60:
            self._begun.popleft()
        if self._active >= min(at_once or math.inf, self._width):
            return math.inf
        if self.held and not has_waited:
            return self.held
        if per_minute is not None and len(self._begun) >= per_minute:
            return self._begun[-per_minute] + 60 - now
        return 0.0


class CallGates:
    """One gate per endpoint for its waits, and one per account for limits of calls, shared by all runs of an event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, CallGate]] = WeakKeyDictionary()

    def gate(self, key: Hashable) -> CallGate:
        gates = self._gates.setdefault(asyncio.get_running_loop(), {})
        return gates.setdefault(key, CallGate(self._clock))
