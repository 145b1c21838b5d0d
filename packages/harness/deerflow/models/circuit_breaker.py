"""Circuit breakers: a provider that keeps failing is left alone for a while instead of making every run wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum

FAILURE_THRESHOLD = 5
RECOVERY_TIMEOUT = 60.0
"""Seconds."""


class CircuitState(Enum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Attempt:
    """Leave to call the provider once. Report with ``succeeded`` or ``failed``; ``release`` in any case."""

    def __init__(self, breaker: CircuitBreaker, *, probe: bool) -> None:
        self._breaker = breaker
        self._probe = probe

    def succeeded(self) -> None:
        self._breaker._close()

    def failed(self) -> None:
        """The provider is not available. Not for errors that say something about the request."""
        self._breaker._count_failure(probe=self._probe)

    def release(self) -> None:
        """The call is over, however it ended: a probe that neither succeeded nor failed makes room for the next."""
        if self._probe:
            self._breaker._free_probe()


class CircuitBreaker:
    """closed → (threshold failures in a row) → open → (timeout) → half-open: one probe → closed or open again.

    Safe to share between threads and event loops.
    """

    def __init__(self, *, failure_threshold: int, recovery_timeout: float, clock: Callable[[], float]) -> None:
        self._threshold = failure_threshold
        self._timeout = recovery_timeout
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def state(self) -> CircuitState:
        if self._open_until is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if self._clock() < self._open_until else CircuitState.HALF_OPEN

    @property
    def failures(self) -> int:
        """Failures in a row that led here."""
        return self._failures

    def attempt(self) -> Attempt | None:
        """Leave to call, or None: open, or another call is the probe."""
        with self._lock:
            if self._open_until is None:
                return Attempt(self, probe=False)
            if self._clock() < self._open_until or self._probing:
                return None
            self._probing = True
            return Attempt(self, probe=True)

    def _close(self) -> None:
        with self._lock:
            self._failures, self._open_until = 0, None

    def _count_failure(self, *, probe: bool) -> None:
        with self._lock:
            if not probe:
                self._failures += 1
            if probe or self._failures >= self._threshold:
                self._open_until = self._clock() + self._timeout

    def _free_probe(self) -> None:
        with self._lock:
            self._probing = False


class CircuitBreakers:
    """One breaker per provider and model, shared by all runs: build it once and hand it to every agent.

    Args:
        failure_threshold: exhausted calls in a row until a breaker opens.
        recovery_timeout: seconds until the first probe.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        failure_threshold: int = FAILURE_THRESHOLD,
        recovery_timeout: float = RECOVERY_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failure_threshold = failure_threshold
        self._recovery_timeout = recovery_timeout
        self._clock = clock
        self._lock = threading.Lock()
        self._breakers: dict[str, CircuitBreaker] = {}

    def breaker(self, key: str) -> CircuitBreaker:
        with self._lock:
            if key not in self._breakers:
                self._breakers[key] = CircuitBreaker(
                    failure_threshold=self._failure_threshold,
                    recovery_timeout=self._recovery_timeout,
                    clock=self._clock,
                )
            return self._breakers[key]
