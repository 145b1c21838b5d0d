"""The lock of a thread among all processes of an installation: an advisory lock of PostgreSQL.

It belongs to a session of the database. A process that is killed loses its session and with it all its locks in the same
moment. One that is frozen shows no sign of life there, and others end its session (:data:`END_FROZEN`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection

from deerflow.storage.thread_lock import LockLostError, ThreadBusyError, Turns

logger = logging.getLogger(__name__)

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
    """A :class:`~deerflow.storage.thread_lock.ThreadLock` for all processes that use one database, on one event loop.

    All locks of the process live in one session, kept by one task, which asks for and returns them. Ids of threads are
    unique in the database, so the user does not matter here.

    Args:
        url: of the database. A connection pooler in between must pool sessions, not transactions.
    """

    def __init__(self, url: str) -> None:
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
                connection = await AsyncConnection.connect(
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
            except (psycopg.Error, OSError) as error:
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
                lock.grant()

    async def _answer(self, connection: AsyncConnection[Any], query: str, names: set[str]) -> list[Any]:
        asking = asyncio.ensure_future(_rows(connection, query, sorted(names)))
        try:
            for _ in range(2):
                await asyncio.wait({asking}, timeout=ANSWERS_WITHIN)
                if asking.done():
                    return asking.result()
            self._lose()
            raise psycopg.OperationalError(f"no answer in {2 * ANSWERS_WITHIN:.0f} s")
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
            lock.lose()


class _Lock:
    """One holder, or one who wants to be."""

    def __init__(self, name: str, wait: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._deadline = None if wait is None else self._loop.time() + wait
        self.name = name
        self.answer: asyncio.Future[None] = self._loop.create_future()
        self.scope = asyncio.timeout(None)

    def grant(self) -> None:
        if not self.answer.done():
            self.answer.set_result(None)

    def refuse(self) -> bool:
        """Say that another process holds it, if there is no more time to wait."""
        if self._deadline is None or self._loop.time() < self._deadline:
            return False
        if not self.answer.done():
            self.answer.set_exception(ThreadBusyError(self.name))
        return True

    def lose(self) -> None:
        self.scope.reschedule(self._loop.time())


async def _rows(connection: AsyncConnection[Any], query: str, names: list[str]) -> list[Any]:
    cursor = await connection.execute(query.encode(), [names])
    return await cursor.fetchall()
