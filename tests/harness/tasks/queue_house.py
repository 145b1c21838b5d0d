"""What tests of queues need: an executor that does as told, processes as far as queues can tell, a database that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from deerflow.events.notify import Notifier
from deerflow.runs.postgres_queue import PostgresQueue
from deerflow.storage.database import Database
from deerflow.storage.postgres_lock import PostgresThreadLock
from deerflow.storage.thread_lock import FileThreadLock, ThreadLock
from deerflow.tasks.queue import LocalQueue, RunQueue

GUARD = 60.0


class Rows:
    """The rows of runs, whatever happens to the address by which queues reach them. ``message_count`` counts the rings."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def add(self, run_id: str, thread_id: str, *, user_id: str = "u", due_at: datetime | None = None) -> None:
        """Make a run that waits, or let one wait again."""
        await self._sql(_THREAD, {"thread": thread_id, "user": user_id})
        await self._sql(_RUN, {"run": run_id, "thread": thread_id, "user": user_id, "due": due_at})

    async def find(self, run_id: str) -> tuple[str, int]:
        """Return the thread of a run, and how often it was rung for."""
        return (await self._sql("SELECT thread_id, message_count FROM runs WHERE run_id = %(run)s", {"run": run_id}))[0]

    async def end(self, run_id: str, rings: int) -> None:
        """End a run, unless it was rung for since there were so many rings."""
        await self._sql(_END, {"run": run_id, "rings": rings})

    async def _sql(self, query: str, values: dict[str, Any]) -> list[Any]:
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            found = await connection.execute(query.encode(), values)
            return await found.fetchall() if found.description else []


_THREAD = """INSERT INTO threads (thread_id, user_id, status, metadata, epoch, created_at, updated_at)
VALUES (%(thread)s, %(user)s, 'idle', '{}', 0, now(), now()) ON CONFLICT DO NOTHING"""
_RUN = """INSERT INTO runs (run_id, thread_id, user_id, status, attempt, epoch, multitask_strategy, kwargs, metadata, created_at,
    updated_at, due_at, position, message_count, input_tokens, output_tokens, llm_calls)
VALUES (%(run)s, %(thread)s, %(user)s, 'pending', 0, 0, 'enqueue', '{}', '{}', clock_timestamp(), now(), %(due)s,
    1000000 * extract(epoch FROM clock_timestamp()), 1, 0, 0, 0)
ON CONFLICT (run_id) DO UPDATE SET status = 'pending', due_at = excluded.due_at, message_count = runs.message_count + 1"""
_END = "UPDATE runs SET status = 'success' WHERE run_id = %(run)s AND message_count = %(rings)s"


class TableQueue(PostgresQueue):
    """Rung for as services do: the row is there first."""

    rows: Rows
    lock: PostgresThreadLock

    async def defer(self, run_id: str, thread_id: str, *, at: datetime | None = None) -> None:
        await self.rows.add(run_id, thread_id, due_at=at)
        await super().defer(run_id, thread_id, at=at)


class Executor:
    """Stands for the real one: holds the thread, and does for each run what the test asks of it.

    Args:
        rows: what it ends; None if there are none, and each run has a thread of its own.
    """

    def __init__(self, lock: ThreadLock, rows: Rows | None) -> None:
        self._lock = lock
        self._rows = rows
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.interrupted: list[str] = []
        self.running: list[str] = []
        self.most = 0
        self.gates: dict[str, asyncio.Event] = {}
        self.fails: dict[str, int] = {}
        self.left: set[str] = set()
        """Runs whose execution returns without ending them."""

    async def execute(self, run_id: str) -> None:
        thread_id, rings = await self._rows.find(run_id) if self._rows else (run_id, 0)
        async with self._lock.hold("u", thread_id):
            assert run_id not in self.running, "two executions of one run at the same time"
            self.begun.append(run_id)
            self.running.append(run_id)
            self.most = max(self.most, len(self.running))
            try:
                if self.fails.get(run_id, 0) > 0:
                    self.fails[run_id] -= 1
                    raise ValueError("on purpose")
                if gate := self.gates.get(run_id):
                    await gate.wait()
                if self._rows and run_id not in self.left:
                    await self._rows.end(run_id, rings)
                self.ended.append(run_id)
            except asyncio.CancelledError:
                try:
                    await asyncio.sleep(0.01)
                finally:
                    self.cancelled.append(run_id)
                raise
            finally:
                self.running.remove(run_id)

    def gate(self, *run_ids: str) -> asyncio.Event:
        """Executions of these runs wait for it."""
        gate = asyncio.Event()
        self.gates.update(dict.fromkeys(run_ids, gate))
        return gate

    def interrupt(self, run_id: str) -> None:
        self.interrupted.append(run_id)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(GUARD):
        while not condition():
            await asyncio.sleep(0.01)


class House:
    """Makes queues over one place, each with an executor: processes of one installation, as far as they can tell."""

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self._root = root
        self.rows = Rows(url) if url else None
        self._queues: list[RunQueue] = []
        self._locks: list[ThreadLock] = []
        self._databases: list[tuple[Notifier, Database]] = []

    def queue(self) -> RunQueue:
        if self.url:
            database = Database(self.url)
            notifier, lock = Notifier(database), PostgresThreadLock(self.url)
            self._databases.append((notifier, database))
            self._locks.append(lock)
            queue = TableQueue(database, notifier, lock)
            assert self.rows is not None
            queue.rows, queue.lock = self.rows, lock
            self._queues.append(queue)
        else:
            self._queues.append(LocalQueue())
        return self._queues[-1]

    def executor(self, queue: RunQueue) -> Executor:
        if isinstance(queue, TableQueue):
            return Executor(queue.lock, self.rows)
        self._locks.append(FileThreadLock(self._directory))
        return Executor(self._locks[-1], None)

    async def worker(self, *, concurrency: int = 10) -> tuple[RunQueue, Executor]:
        queue = self.queue()
        executor = self.executor(queue)
        await queue.start(executor.execute, executor.interrupt, concurrency=concurrency)
        return queue, executor

    def _directory(self, user_id: str, thread_id: str) -> Path:
        path = self._root / thread_id
        path.mkdir(exist_ok=True)
        return path

    async def aclose(self) -> None:
        for queue in self._queues:
            await queue.aclose(grace=0)
        for lock in self._locks:
            await lock.aclose()
        for notifier, database in self._databases:
            await notifier.aclose()
            await database.aclose()


class Door:
    """A port in front of the database's, which can be closed."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> str:
        """The URL of the database behind the door: the same each time."""
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self._url._replace(netloc=f"postgres@127.0.0.1:{self._port}").geturl()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(self._url.hostname, self._url.port)
        self._writers += [writer, inner_writer]
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
