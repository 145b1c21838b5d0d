"""The lock of threads for all processes that use one PostgreSQL: advisory locks of one session for each process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deerflow.storage.thread_lock import KeyQueue, LockLostError, ThreadBusyError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

logger = logging.getLogger(__name__)

POLL = 0.1
"""Seconds between two tries to get a lock that another process holds."""

HEARTBEAT = 1.0
"""Longest silence, in seconds, in a session that holds locks: each answer is a sign of life there, and of the session here."""

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
"""Limits by which long-lived connections notice that the other side is gone. The usual ones are hours."""

_NAME = "deerflow locks"
FROZEN = f"""SELECT pid, state_change::text FROM pg_stat_activity
WHERE application_name = '{_NAME}' AND datname = current_database() AND usename = current_user
AND state = 'idle' AND state_change < clock_timestamp() - make_interval(secs => ?)
AND EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = pg_stat_activity.pid AND locktype = 'advisory' AND granted)"""
"""SQL: the sessions of processes that hold threads and have shown no sign of life for some seconds, and since when."""
END_FROZEN = f"SELECT pg_terminate_backend(pid) FROM ({FROZEN}) AS frozen WHERE pid = ?"

_KEEPALIVE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4"
_KEY = "hashtextextended({name}, 17478)"
_TRY = f"SELECT name, pg_try_advisory_lock({_KEY.format(name='name')}) FROM unnest(%(names)s::text[]) AS name"
_UNLOCK = f"SELECT name, pg_advisory_unlock({_KEY.format(name='name')}) FROM unnest(%(names)s::text[]) AS name"

IS_TAKEN = f"pg_try_advisory_lock({_KEY.format(name='thread_id')})"
"""SQL: whether the thread ``thread_id`` is free, and from now on held by this session."""


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
        self._turns = KeyQueue()
        self._wanted: dict[str, _Lock] = {}
        self._held: dict[str, _Lock] = {}
        self._taken: set[str] = set()
        """Threads that :meth:`take` has locked and that are not held yet."""
        self._returned: set[str] = set()
        self._ask: _Ask | None = None
        self._answered_at = 0.0
        self._bell = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self, user_id: str, thread_id: str, *, wait: float | None = None) -> AsyncIterator[None]:
        async with self._turns.hold(thread_id, thread_id, wait=wait):
            lock = _Lock(thread_id, wait)
            if thread_id in self._taken:
                self._taken.discard(thread_id)
                self._grant(lock)
            else:
                self._wanted[thread_id] = lock
                self._wake()
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

    async def take(self, query: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Lock threads before they are held, by a query that finds them: each belongs to who holds it next, or is left.

        One call at a time. It waits while the database is away.

        Args:
            query: SQL that returns (anything, thread id) of threads it has locked (:data:`IS_TAKEN`). The threads in ``ours`` it must
                leave out in a materialized step before that: a session gets again what it has, and the server may test two
                conditions of one step in either order.
            values: its other parameters.
        """
        ask = self._ask = _Ask(query, values, asyncio.get_running_loop().create_future())
        self._wake()
        try:
            return await ask.answer
        except asyncio.CancelledError:
            if ask.answer.done() and not ask.answer.cancelled():
                for _, thread_id in ask.answer.result():
                    self.leave(thread_id)
            raise

    def leave(self, thread_id: str) -> None:
        """Return a thread that was taken, unless it was held meanwhile."""
        if thread_id in self._taken:
            self._taken.discard(thread_id)
            self._return(thread_id)

    async def aclose(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
            self._keeper = None

    def _grant(self, lock: _Lock) -> None:
        self._wanted.pop(lock.name, None)
        self._held[lock.name] = lock
        if not lock.answer.done():
            lock.answer.set_result(None)

    def _give_back(self, lock: _Lock) -> None:
        if self._wanted.get(lock.name) is lock:
            del self._wanted[lock.name]
        if self._held.get(lock.name) is lock:
            del self._held[lock.name]
            self._return(lock.name)

    def _return(self, name: str) -> None:
        self._returned.add(name)
        self._wake()

    def _wake(self) -> None:
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
                await asyncio.sleep(HEARTBEAT / 2)

    async def _serve(self, connection: AsyncConnection[Any]) -> None:
        self._bell.clear()
        if self._returned:
            names, self._returned = self._returned, set()
            await self._answer(connection, _UNLOCK, {"names": sorted(names)})
        if self._ask is not None and not self._ask.answer.done():
            await self._take(connection, self._ask)
        names = sorted(self._wanted.keys() - self._returned)  # a session gets again what it has not returned yet
        if not names and self._silence() < HEARTBEAT:
            return
        for name, is_ours in await self._answer(connection, _TRY, {"names": names}):
            lock = self._wanted.get(name)
            if not is_ours:
                if lock is not None and lock.refuse():
                    del self._wanted[name]
            elif lock is None:  # the one that wanted it was cancelled meanwhile
                self._return(name)
            else:
                self._grant(lock)

    async def _take(self, connection: AsyncConnection[Any], ask: _Ask) -> None:
        ours = [*self._held, *self._wanted, *self._taken, *self._returned]
        try:
            rows = await self._answer(connection, ask.query, {**ask.values, "ours": ours})
        except self._psycopg.ProgrammingError as error:
            self._ask = None
            ask.answer.set_exception(error)
            return
        if self._ask is ask:
            self._ask = None
        for _, thread_id in rows:
            if (lock := self._wanted.get(thread_id)) is not None:
                self._grant(lock)
            elif ask.answer.done():  # the one that asked was cancelled meanwhile
                self._return(thread_id)
            else:
                self._taken.add(thread_id)
        if not ask.answer.done():
            ask.answer.set_result(rows)

    async def _answer(self, connection: AsyncConnection[Any], query: str, values: Mapping[str, Any]) -> list[Any]:
        asking = asyncio.ensure_future(_rows(connection, query, values))
        try:
            for _ in range(2):
                await asyncio.wait({asking}, timeout=ANSWERS_WITHIN)
                if asking.done():
                    self._answered_at = asyncio.get_running_loop().time()
                    return asking.result()
            self._lose()
            raise self._psycopg.OperationalError(f"no answer in {2 * ANSWERS_WITHIN:.0f} s")
        finally:
            if not asking.done():
                await connection.close()
                asking.cancel()
                await asyncio.wait({asking})

    def _silence(self) -> float:
        return asyncio.get_running_loop().time() - self._answered_at

    async def _pause(self) -> None:
        rest = max(0.0, HEARTBEAT - self._silence())
        seconds = POLL if self._wanted else rest if self._held or self._taken else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._bell.wait()

    def _lose(self) -> None:
        held, self._held = self._held, {}
        self._returned.clear()
        self._taken.clear()
        for lock in held.values():
            lock.scope.reschedule(asyncio.get_running_loop().time())


@dataclass(frozen=True, slots=True)
class _Ask:
    """A call of :meth:`PostgresThreadLock.take`."""

    query: str
    values: Mapping[str, Any]
    answer: asyncio.Future[list[Any]]


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


async def _rows(connection: AsyncConnection[Any], query: str, values: Mapping[str, Any]) -> list[Any]:
    cursor = await connection.execute(query.encode(), values)
    return await cursor.fetchall()
