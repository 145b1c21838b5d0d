"""What tests of queues need: an executor that does as told, processes as far as queues can tell, a database that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from deerflow.events.notify import Notifier
from deerflow.runs.postgres_queue import PostgresQueue
from deerflow.storage.database import Database
from deerflow.storage.thread_lock import FileThreadLock, PostgresThreadLock, ThreadLock
from deerflow.tasks.queue import LocalQueue, RunQueue

GUARD = 60.0


class Executor:
    """Stands for the real one: holds the thread, and does for each run what the test has told it to do."""

    def __init__(self, lock: ThreadLock) -> None:
        self._lock = lock
        self.threads: dict[str, str] = {}
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.interrupted: list[str] = []
        self.running: list[str] = []
        self.most = 0
        self.gates: dict[str, asyncio.Event] = {}
        self.fails: dict[str, int] = {}

    async def execute(self, run_id: str) -> None:
        async with self._lock.hold("u", self.threads.get(run_id, run_id)):
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
                self.ended.append(run_id)
            except asyncio.CancelledError:
                await asyncio.sleep(0.01)
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
        self._queues: list[RunQueue] = []
        self._locks: list[ThreadLock] = []
        self._databases: list[tuple[Notifier, Database]] = []
        self.lost: list[tuple[str, str]] = []

    async def unfinished(self) -> list[tuple[str, str]]:
        return self.lost

    def lock(self) -> ThreadLock:
        self._locks.append(PostgresThreadLock(self.url) if self.url else FileThreadLock(self._directory))
        return self._locks[-1]

    def queue(self) -> RunQueue:
        if self.url:
            database = Database(self.url)
            notifier = Notifier(database)
            self._databases.append((notifier, database))
            self._queues.append(PostgresQueue(database, notifier, self.unfinished, sweep=0.2))
        else:
            self._queues.append(LocalQueue())
        return self._queues[-1]

    async def worker(self, *, concurrency: int = 10) -> tuple[RunQueue, Executor]:
        queue, executor = self.queue(), Executor(self.lock())
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
