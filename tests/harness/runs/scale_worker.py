"""A worker process of the scale-out tests: ``python scale_worker.py URL NAME CONCURRENCY``. SIGTERM ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import psycopg

from deerflow.events.notify import Notifier
from deerflow.runs.postgres_queue import PostgresQueue
from deerflow.storage.database import Database
from deerflow.storage.postgres_lock import PostgresThreadLock

TABLES = """
ALTER TABLE runs ADD COLUMN may_end boolean NOT NULL DEFAULT false;
CREATE TABLE effects (id bigserial PRIMARY KEY, worker text, run_id text, kind text);
"""


class Worker:
    """Each step of a run leaves a trace; a run ends when it may, whoever has begun it."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self.lock = PostgresThreadLock(url)

    async def execute(self, run_id: str) -> None:
        (thread_id,) = (await self._sql("SELECT thread_id FROM runs WHERE run_id = %s", run_id))[0]
        async with self.lock.hold("u", thread_id):
            if (await self._sql("SELECT status = 'success' FROM runs WHERE run_id = %s", run_id))[0][0]:
                return
            await self._leave(run_id, "begin")
            while not (await self._sql("SELECT may_end FROM runs WHERE run_id = %s", run_id))[0][0]:
                await self._leave(run_id, "step")
                await asyncio.sleep(0.05)
            await self._leave(run_id, "end")
            await self._sql("UPDATE runs SET status = 'success' WHERE run_id = %s RETURNING 1", run_id)

    async def _leave(self, run_id: str, kind: str) -> None:
        await self._sql(
            "INSERT INTO effects (worker, run_id, kind) VALUES (%s, %s, %s) RETURNING 1", self._name, run_id, kind
        )

    async def _sql(self, query: str, *arguments: str) -> list[Any]:
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            return await (await connection.execute(query.encode(), arguments)).fetchall()


async def main(url: str, name: str, concurrency: int) -> None:
    worker, stop = Worker(url, name), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    database = Database(url)
    notifier = Notifier(database)
    queue = PostgresQueue(database, notifier, worker.lock)
    await queue.start(worker.execute, lambda run_id: None, concurrency=concurrency)
    print("ready", flush=True)
    await stop.wait()
    await queue.aclose(grace=0.1)
    await worker.lock.aclose()
    await notifier.aclose()
    await database.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
