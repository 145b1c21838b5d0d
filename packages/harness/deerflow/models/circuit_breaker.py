"""Stop asking an endpoint that fails, for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
else:
    # Only the fields below: a mixin that brought the model's along would undo what its sibling made of them.
    pass


class CircuitBreaker:
    """closed → (threshold failures in a row) → open → (timeout) → one probe → closed, or open again."""

    def __init__(self, threshold: int, timeout: float, clock: Callable[[], float]) -> None:
        self._threshold, self._timeout, self._clock = threshold, timeout, clock
        self._failures, self._open_until = 0, 0.0
        self._is_probing = False

    def admit(self) -> bool:
        """Return whether the provider may be called now. Each admitted call must ``report``."""
        if self._failures < self._threshold:
            return True
        if self._is_probing or self._clock() < self._open_until:
            return False
        self._is_probing = True
        return True

    @property
    def rests_for(self) -> float:
        """Seconds until the next call is admitted."""
        return max(0.0, self._open_until - self._clock()) if self._failures >= self._threshold else 0.0

    def report(self, is_available: bool | None) -> None:
        """The outcome of a call; None where it tells nothing about the provider, e.g. for a refused request."""
        self._is_probing = False
        if is_available:
            self._failures = 0
        elif is_available is False:
            self._failures += 1
            self._open_until = self._clock() + self._timeout


class CircuitBreakers:
    """One breaker per endpoint, shared by all runs: build it once and give it to every agent.

    Args:
        failure_threshold: exhausted calls in a row until a breaker opens.
        recovery_timeout: seconds until the first probe.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        failure_threshold: int = 5,
        recovery_timeout: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = (failure_threshold, recovery_timeout, clock)
        self._breakers: dict[Hashable, CircuitBreaker] = {}

    def breaker(self, key: Hashable) -> CircuitBreaker:
        return self._breakers.setdefault(key, CircuitBreaker(*self._settings))
