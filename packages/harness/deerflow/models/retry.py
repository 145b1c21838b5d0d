"""Trying a provider call again: plain calls, and streams as long as nothing of them was passed on."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

MAX_RETRY_AFTER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon a failed call is tried again.

    Args:
        attempts: calls in all, at least 1.
        base_delay: seconds before the second attempt; doubles each time.
        is_retryable: whether the same request may succeed later.
        retry_after: the provider's own wish in seconds, if the error carries one.
    """

    attempts: int
    base_delay: float
    is_retryable: Callable[[Exception], bool]
    retry_after: Callable[[Exception], float | None]

    def delay(self, error: Exception, attempt: int) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1); None if it is to be raised."""
        if attempt >= self.attempts or not self.is_retryable(error):
            return None
        asked = self.retry_after(error)
        if asked is None:
            return self.base_delay * 2 ** (attempt - 1) * random.uniform(1, 1.2)
        # A provider that wants minutes is out of quota: whoever called may take another model instead.
        return asked if asked <= MAX_RETRY_AFTER_SECONDS else None


def retry(call: Callable[[], T], policy: RetryPolicy) -> T:
    """The result of ``call``, or its last error."""
    for attempt in range(1, policy.attempts + 1):
        try:
            return call()
        except Exception as error:
            delay = policy.delay(error, attempt)
            if delay is None:
                raise
        time.sleep(delay)
    raise ValueError("A retry policy needs at least one attempt.")


async def aretry(call: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
    """Like :func:`retry`."""
    for attempt in range(1, policy.attempts + 1):
        try:
            return await call()
        except Exception as error:
            delay = policy.delay(error, attempt)
            if delay is None:
                raise
        await asyncio.sleep(delay)
    raise ValueError("A retry policy needs at least one attempt.")


def retry_stream(
    open_stream: Callable[[], Generator[T]], policy: RetryPolicy, is_empty: Callable[[T], bool]
) -> Iterator[T]:
    """The items of a stream that is opened again on failure until its first item with content.

    Empty leading items (a provider's "message starts") are held back, so they neither count nor appear twice.
    """
    for attempt in range(1, policy.attempts + 1):
        held: list[T] = []
        started = False
        try:
            with closing(open_stream()) as stream:
                for item in stream:
                    if not started and is_empty(item):
                        held.append(item)
                        continue
                    if not started:
                        started = True
                        yield from held
                    yield item
            if not started:
                yield from held
            return
        except Exception as error:
            delay = None if started else policy.delay(error, attempt)
            if delay is None:
                raise
        time.sleep(delay)


async def aretry_stream(
    open_stream: Callable[[], AsyncGenerator[T]], policy: RetryPolicy, is_empty: Callable[[T], bool]
) -> AsyncIterator[T]:
    """Like :func:`retry_stream`."""
    for attempt in range(1, policy.attempts + 1):
        held: list[T] = []
        started = False
        try:
            async with aclosing(open_stream()) as stream:
                async for item in stream:
                    if not started and is_empty(item):
                        held.append(item)
                        continue
                    if not started:
                        started = True
                        for first in held:
                            yield first
                    yield item
            if not started:
                for last in held:
                    yield last
            return
        except Exception as error:
            delay = None if started else policy.delay(error, attempt)
            if delay is None:
                raise
        await asyncio.sleep(delay)


def parse_retry_after(value: str | None) -> float | None:
    """Seconds of a ``Retry-After`` header (RFC 9110); None for its date form and for nonsense."""
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
