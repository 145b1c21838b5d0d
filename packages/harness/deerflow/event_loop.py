"""Sharing the event loop, ending what runs on it, and using it from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class LoopTurns:
    """Whoever is about to keep the event loop busy takes a turn first: one is given in each of its rounds.

    A round runs everything that is ready. Where hundreds become ready together, it would take seconds, in which nobody is
    heard. Without a crowd a turn costs nothing. Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._given = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for the turn, behind those that came before."""
        loop = asyncio.get_running_loop()
        if not self._given:
            self._given = True
            loop.call_soon(self._next, loop)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # who was cancelled has left
                turn.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._given = False


async def to_its_end(work: Awaitable[T]) -> T:
    """Wait for ``work``, also when cancelled: what comes next must find it done."""
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


@asynccontextmanager
async def begun(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Yield a task that does ``work`` beside the block. If the block ends first, it is cancelled; an error that nobody has awaited is
    dropped."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        if not task.cancel() and not task.cancelled():
            task.exception()


async def end(tasks: Collection[asyncio.Task[None]], grace: float) -> None:
    """Wait ``grace`` seconds for tasks, then cancel those that are late and wait for their unwinding."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=grace)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` to its end and return its result, also where an event loop already runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(copy_context().run, asyncio.run, coroutine).result()


def blocking_twin(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The synchronous form of an asynchronous function, with its signature."""

    @functools.wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_blocking(function(*args, **kwargs))

    return twin
