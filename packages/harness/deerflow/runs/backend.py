"""How the processes of an installation work together: one process on SQLite, or many on one PostgreSQL."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta

from deerflow.config import AppConfig, Paths
from deerflow.events.notify import Notifier
from deerflow.storage.database import Database
from deerflow.storage.runs import RunStore
from deerflow.storage.tables import utc_now
from deerflow.storage.thread_lock import FileThreadLock, ThreadLock
from deerflow.tasks.queue import LocalQueue, RunQueue

logger = logging.getLogger(__name__)

FORGOTTEN = timedelta(seconds=15)
"""A run that nobody touched for so long should have a job; the sweep looks."""


class Connections:
    """Lock, queue and notifier of an installation; which, follows from its database."""

    lock: ThreadLock
    queue: RunQueue
    notifier: Notifier | None

    def __init__(self, database: Database, config: AppConfig, paths: Paths) -> None:
        if not database.is_postgres:
            self.lock = FileThreadLock(lambda user_id, thread_id: paths.ensure_thread_dirs(thread_id, user_id))
            self.queue = LocalQueue()
            self.notifier = None
            return
        from deerflow.storage.postgres_thread_lock import PostgresThreadLock
        from deerflow.tasks.procrastinate import ProcrastinateQueue

        self.lock = PostgresThreadLock(database.location)
        self.queue = ProcrastinateQueue(database.location, lambda: forgotten(RunStore(database)))
        self.notifier = Notifier(database)
        if config.stream_bridge.type == "redis":
            logger.warning("stream_bridge is ignored: processes notify each other through PostgreSQL.")


async def forgotten(runs: RunStore) -> Iterable[tuple[str, str]]:
    """Ids of runs and threads that should have begun, or gone on, a while ago."""
    now = utc_now()
    return [
        (run.run_id, run.thread_id)
        for run in await runs.unfinished()
        # What was touched in the future was touched before the clock was set back.
        if abs(run.updated_at - now) > FORGOTTEN and (run.due_at is None or run.due_at < now - FORGOTTEN)
    ]
