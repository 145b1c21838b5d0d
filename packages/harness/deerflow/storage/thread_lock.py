"""One execution of a thread at a time, whoever does it: two at once would overwrite each other's steps."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from deerflow.errors import ConflictError

FIRST_POLL, LONGEST_POLL = 0.01, 0.2
"""Seconds between two tries to get a file that another process has locked."""


class ThreadBusyError(ConflictError):
    """A run of the thread is being executed, in this process or in another one."""

    code = "thread_busy"

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"Thread {thread_id} is busy: another turn of it is running, here or in another process. "
            "Wait for its end, stop it, or start a new thread."
        )


class LockLostError(RuntimeError):
    """The lock of a thread was lost while it was held; another process may hold it by now."""


class ThreadLock(Protocol):
    def hold(self, user_id: str, thread_id: str, *, wait: float | None = None) -> AbstractAsyncContextManager[None]:
        """Be the only executor of a thread. The lock goes with the process that holds it, however that one ends.

        Not re-entrant: who holds a thread and asks for it again waits for ever.

        Args:
            user_id: whose thread it is.
            thread_id: the thread.
            wait: seconds to wait for another holder; None: as long as it takes.

        Raises:
            ThreadBusyError: there is still another holder after that.
            LockLostError: the lock was lost while it was held. What runs inside is cancelled before.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what belongs to the locks of this process, which nobody holds any more."""
        ...


class KeyQueue:
    """Who is next, for each key: first come, first served, whichever event loops of this process they are on."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queues: dict[str, deque[_Waiting]] = {}

    @asynccontextmanager
    async def hold(self, key: str, thread_id: str, *, wait: float | None) -> AsyncIterator[None]:
        """Raises ThreadBusyError when others still come first after ``wait`` seconds."""
        turn = _Waiting()
        with self._guard:
            queue = self._queues.setdefault(key, deque())
            queue.append(turn)
            is_first = queue[0] is turn
        try:
            if not is_first:
                try:
                    async with asyncio.timeout(wait):
                        await turn.come
                except TimeoutError:
                    raise ThreadBusyError(thread_id) from None
            yield
        finally:
            with self._guard:
                was_first = queue[0] is turn
                queue.remove(turn)
                while was_first and queue and not queue[0].call():
                    queue.popleft()
                if not queue:
                    self._queues.pop(key, None)


class _Waiting:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.come: asyncio.Future[None] = self._loop.create_future()

    def call(self) -> bool:
        """False if the loop of the one who waits is gone."""
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            return False
        return True

    def _set(self) -> None:
        if not self.come.done():
            self.come.set_result(None)


class FileThreadLock:
    """A :class:`ThreadLock` for the processes of one machine, by a locked file in each thread's directory.

    Args:
        directory: finds the directory of a thread from user id and thread id, and makes it if it is not there. Called
            on a worker thread. What runs in the thread's sandbox must not be able to reach a file in it.
    """

    def __init__(self, directory: Callable[[str, str], Path]) -> None:
        self._directory = directory
        self._turns = KeyQueue()

    @asynccontextmanager
    async def hold(self, user_id: str, thread_id: str, *, wait: float | None = None) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        deadline = None if wait is None else loop.time() + wait
        file = _LockFile(lambda: self._directory(user_id, thread_id))
        async with self._turns.hold(f"{user_id}/{thread_id}", thread_id, wait=wait):
            try:
                pause = FIRST_POLL
                while not await asyncio.to_thread(file.lock):
                    if deadline is not None and loop.time() >= deadline:
                        raise ThreadBusyError(thread_id)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_POLL)
                yield
            finally:
                file.close()

    async def aclose(self) -> None:
        """Nothing outlives a holder."""


class _LockFile:
    """Locked on a worker thread, which goes on when the one who waits for it is cancelled; closed all the same."""

    def __init__(self, directory: Callable[[], Path]) -> None:
        self._directory = directory
        self._guard = threading.Lock()
        self._handle: int | None = None
        self._is_closed = False

    def lock(self) -> bool:
        """Try once. Blocks only for the file system."""
        path = self._directory() / ".turn"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            return False
        keep = False
        try:
            keep = _is_locked(handle, path)
        finally:
            with self._guard:
                if keep and not self._is_closed:
                    self._handle = handle
                else:
                    os.close(handle)
        return keep

    def close(self) -> None:
        with self._guard:
            self._is_closed = True
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _is_locked(handle: int, path: Path) -> bool:
    """Lock it now, if it can be and is still the thread's file: the last holder may have deleted the thread."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
