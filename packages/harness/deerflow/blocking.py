"""Asynchronous code from synchronous callers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


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


def off_loop(function: Callable[[T], Any]) -> Callable[[T], Awaitable[Any]]:
    """The asynchronous form of a function of one argument that blocks: it runs on a thread, in the same context."""

    async def call(argument: T) -> Any:
        return await asyncio.to_thread(function, argument)

    return call
