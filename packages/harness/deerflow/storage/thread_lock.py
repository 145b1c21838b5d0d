"""One execution of a thread at a time, whoever does it: two at once would overwrite each other's steps."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from deerflow.errors import ConflictError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

logger = logging.getLogger(__name__)

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


class Turns:
    """Who is next, for each key: first come, first served, whichever event loops of this process they are on."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queues: dict[str, deque[_Turn]] = {}

    @asynccontextmanager
    async def hold(self, key: str, thread_id: str, *, wait: float | None) -> AsyncIterator[None]:
        """Raises ThreadBusyError when others still come first after ``wait`` seconds."""
        turn = _Turn()
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


class _Turn:
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
        self._turns = Turns()

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


# PostgreSQL -------------------------------------------------------------------------------------------------------------

POLL = 0.1
"""Seconds between two tries to get a lock that another process holds."""

HEARTBEAT = 0.5
"""Seconds between two looks whether the session is still there, while it holds locks; each is a sign of life there."""

LEASE = 15
"""Seconds without a sign of life after which a process that holds locks counts as frozen."""

ANSWERS_WITHIN = 10.0
"""Seconds the server has to answer, twice: a process that was frozen finds the answer waiting when it goes on.

The sum is less than what the server waits for a client that is gone, so who loses its locks knows it first.
"""

CONNECTION: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
    "prepare_threshold": None,
}
"""How long-lived connections notice that the other side is gone. The usual limits are hours."""

_NAME = "deerflow locks"
FROZEN = f"""SELECT pid, state_change::text FROM pg_stat_activity
WHERE application_name = '{_NAME}' AND datname = current_database() AND usename = current_user
AND state = 'idle' AND state_change < clock_timestamp() - make_interval(secs => ?)
AND EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = pg_stat_activity.pid AND locktype = 'advisory' AND granted)"""
"""SQL: the sessions of processes that hold threads and have shown no sign of life for some seconds, and since when."""
END_FROZEN = f"SELECT pg_terminate_backend(pid) FROM ({FROZEN}) AS frozen WHERE pid = ?"

_KEEPALIVE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4"
_KEY = "hashtextextended({name}, 17478)"
_TRY = f"SELECT name, pg_try_advisory_lock({_KEY.format(name='name')}) FROM unnest(%s::text[]) AS name"
_UNLOCK = f"SELECT name, pg_advisory_unlock({_KEY.format(name='name')}) FROM unnest(%s::text[]) AS name"

IS_HELD = f"""EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) | objid::bigint = {_KEY}
)"""
"""SQL: whether some process holds the thread whose id is ``{name}``."""


class PostgresThreadLock:
    """A :class:`ThreadLock` for all processes that use one database, on one event loop: an advisory lock of PostgreSQL.

    It belongs to a session of the database. A process that is killed loses its session and with it all its locks in the
    same moment. One that is frozen shows no sign of life there, and others end its session (:data:`END_FROZEN`).

    All locks of the process live in one session, kept by one task, which asks for and returns them. Ids of threads are
    unique in the database, so the user does not matter here.

    Args:
        url: of the database. A connection pooler in between must pool sessions, not transactions.
    """

    def __init__(self, url: str) -> None:
        import psycopg

        self._psycopg = psycopg
        self._url = url
        self._turns = Turns()
        self._wanted: dict[str, _Lock] = {}
        self._held: dict[str, _Lock] = {}
        self._returned: set[str] = set()
        self._bell = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self, user_id: str, thread_id: str, *, wait: float | None = None) -> AsyncIterator[None]:
        async with self._turns.hold(thread_id, thread_id, wait=wait):
            lock = _Lock(thread_id, wait)
            self._wanted[thread_id] = lock
            self._ring()
            try:
                async with lock.scope:
                    await lock.answer
                    yield
            except TimeoutError:
                if lock.scope.expired():
                    raise LockLostError(
                        f"The connection to the database, and with it the lock of thread {thread_id}, was lost."
                    ) from None
                raise
            finally:
                self._give_back(lock)

    async def aclose(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
            self._keeper = None

    def _give_back(self, lock: _Lock) -> None:
        if self._wanted.get(lock.name) is lock:
            del self._wanted[lock.name]
        if self._held.get(lock.name) is lock:
            del self._held[lock.name]
            self._returned.add(lock.name)
            self._ring()

    def _ring(self) -> None:
        self._bell.set()
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep(), name="thread locks")

    async def _keep(self) -> None:
        is_logged = False
        while True:
            try:
                connection = await self._psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, application_name=_NAME, **CONNECTION
                )
                try:
                    await connection.execute(_KEEPALIVE)
                    is_logged = False
                    while True:
                        await self._serve(connection)
                        await self._pause()
                finally:
                    self._lose()
                    await connection.close()
            except (self._psycopg.Error, OSError) as error:
                if not is_logged:
                    logger.warning("No locks of threads can be held until the database is back: %s", error)
                is_logged = True
                await asyncio.sleep(HEARTBEAT)

    async def _serve(self, connection: AsyncConnection[Any]) -> None:
        self._bell.clear()
        if self._returned:
            names, self._returned = self._returned, set()
            await self._answer(connection, _UNLOCK, names)
        for name, is_ours in await self._answer(connection, _TRY, set(self._wanted)):
            lock = self._wanted.get(name)
            if not is_ours:
                if lock is not None and lock.refuse():
                    del self._wanted[name]
            elif lock is None:
                # Whoever wanted it was cancelled meanwhile.
                self._returned.add(name)
                self._bell.set()
            else:
                del self._wanted[name]
                self._held[name] = lock
                if not lock.answer.done():
                    lock.answer.set_result(None)

    async def _answer(self, connection: AsyncConnection[Any], query: str, names: set[str]) -> list[Any]:
        asking = asyncio.ensure_future(_rows(connection, query, sorted(names)))
        try:
            for _ in range(2):
                await asyncio.wait({asking}, timeout=ANSWERS_WITHIN)
                if asking.done():
                    return asking.result()
            self._lose()
            raise self._psycopg.OperationalError(f"no answer in {2 * ANSWERS_WITHIN:.0f} s")
        finally:
            if not asking.done():
                await connection.close()
                asking.cancel()
                await asyncio.wait({asking})

    async def _pause(self) -> None:
        seconds = POLL if self._wanted else HEARTBEAT if self._held else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._bell.wait()

    def _lose(self) -> None:
        held, self._held = self._held, {}
        self._returned.clear()
        for lock in held.values():
            lock.scope.reschedule(asyncio.get_running_loop().time())


class _Lock:
    """One holder, or one who wants to be."""

    def __init__(self, name: str, wait: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._deadline = None if wait is None else self._loop.time() + wait
        self.name = name
        self.answer: asyncio.Future[None] = self._loop.create_future()
        self.scope = asyncio.timeout(None)

    def refuse(self) -> bool:
        """Say that another process holds it, if there is no more time to wait."""
        if self._deadline is None or self._loop.time() < self._deadline:
            return False
        if not self.answer.done():
            self.answer.set_exception(ThreadBusyError(self.name))
        return True


async def _rows(connection: AsyncConnection[Any], query: str, names: list[str]) -> list[Any]:
    cursor = await connection.execute(query.encode(), [names])
    return await cursor.fetchall()
