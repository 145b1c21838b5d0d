"""Trying provider calls again, and circuit breakers that leave a failing provider alone for a while."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from deerflow.models.failures import classify

T = TypeVar("T")

MAX_RETRY_AFTER_SECONDS = 60.0
"""A provider that wants minutes is out of quota: the caller may take another model instead."""
FAILURE_THRESHOLD = 5
RECOVERY_TIMEOUT = 60.0
"""Seconds."""


def retry_policy(attempts: int, base_delay: float) -> dict[str, Any]:
    """Arguments for tenacity: ``Retry-After`` where the provider states it, else exponential backoff with jitter.

    Args:
        attempts: calls in all, at least 1.
        base_delay: seconds before the second attempt; doubles each time.
    """

    def is_worth_it(error: BaseException) -> bool:
        failure = classify(error)
        return failure.retriable and (failure.retry_after or 0) <= MAX_RETRY_AFTER_SECONDS

    def seconds(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = classify(error).retry_after if error else None
        backoff = base_delay * 2 ** (state.attempt_number - 1) * random.uniform(1, 1.2)
        return backoff if asked is None else asked

    return {
        "stop": stop_after_attempt(attempts),
        "wait": seconds,
        "retry": retry_if_exception(is_worth_it),
        "reraise": True,
    }


def retry_stream(
    open_stream: Callable[[], Generator[T]], policy: dict[str, Any], is_empty: Callable[[T], bool]
) -> Iterator[T]:
    """The items of a stream that is opened again on failure until its first item with content.

    Empty leading items (a provider's "message starts") are held back, so they neither count nor appear twice.
    """

    def begin() -> tuple[list[T], Generator[T]]:
        stream, held = open_stream(), list[T]()
        for item in stream:
            held.append(item)
            if not is_empty(item):
                break
        return held, stream

    held, stream = Retrying(**policy)(begin)
    with closing(stream):
        yield from held
        yield from stream


async def aretry_stream(
    open_stream: Callable[[], AsyncGenerator[T]], policy: dict[str, Any], is_empty: Callable[[T], bool]
) -> AsyncIterator[T]:
    """Like :func:`retry_stream`."""

    async def begin() -> tuple[list[T], AsyncGenerator[T]]:
        stream, held = open_stream(), list[T]()
        async for item in stream:
            held.append(item)
            if not is_empty(item):
                break
        return held, stream

    held, stream = await AsyncRetrying(**policy)(begin)
    async with aclosing(stream):
        for item in held:
            yield item
        async for item in stream:
            yield item


class CircuitBreaker:
    """closed → (threshold failures in a row) → open → (timeout) → one probe → closed, or open again."""

    def __init__(self, threshold: int, timeout: float, clock: Callable[[], float]) -> None:
        self._threshold, self._timeout, self._clock = threshold, timeout, clock
        self._failures, self._open_until = 0, 0.0
        self._is_probing = False

    def admit(self) -> bool:
        """Whether the provider may be called now. Each admitted call must ``report``."""
        if self._failures < self._threshold:
            return True
        if self._is_probing or self._clock() < self._open_until:
            return False
        self._is_probing = True
        return True

    def report(self, is_available: bool | None) -> None:
        """The outcome of a call; None where it tells nothing about the provider, e.g. for a refused request."""
        self._is_probing = False
        if is_available:
            self._failures = 0
        elif is_available is False:
            self._failures += 1
            self._open_until = self._clock() + self._timeout


class CircuitBreakers:
    """One breaker per provider and model, shared by all runs: build it once and give it to every agent.

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
        self._settings = (failure_threshold, recovery_timeout, clock)
        self._breakers: dict[str, CircuitBreaker] = {}

    def breaker(self, key: str) -> CircuitBreaker:
        return self._breakers.setdefault(key, CircuitBreaker(*self._settings))
