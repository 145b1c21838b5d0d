"""An event loop on a thread of its own, for synchronous callers of asynchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import aclosing
from queue import SimpleQueue
from typing import Any, TypeVar, cast

T = TypeVar("T")


class LoopThread:
    """Started at the first use. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result. KeyboardInterrupt in the caller cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate from synchronous code. Leaving the loop early closes the asynchronous iterator."""
        queue: SimpleQueue[tuple[str, Any]] = SimpleQueue()

        async def pump() -> None:
            try:
                async with aclosing(items):  # type: ignore[type-var]
                    async for item in items:
                        queue.put(("item", item))
                queue.put(("end", None))
            except BaseException as error:
                queue.put(("error", error))
                raise

        future = asyncio.run_coroutine_threadsafe(pump(), self._running())
        try:
            while True:
                kind, value = queue.get()
                if kind == "end":
                    return
                if kind == "error":
                    raise cast(BaseException, value)
                yield value
        finally:
            future.cancel()

    def close(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="deerflow-client", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
