"""Starting the runs of crons when their time has come, once each, however many processes look at the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, select

from deerflow.errors import InvalidRequestError, NotFoundError, RequestError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.json_filter import matches
from deerflow.storage.tables import runs, utc_now
from deerflow.tasks.cron_rows import CRONS, Cron, CronRepository, claim, due, look_when_due, next_due
from deerflow.tasks.job_rows import Job, enqueue
from deerflow.tasks.worker import HopelessError

logger = logging.getLogger(__name__)

CRON = "cron"
"""The kind of task that starts a run."""
LOOK_AGAIN = timedelta(seconds=20)
"""After crons could not be read."""
BATCH = 100

StartRun = Callable[[Principal, dict[str, Any], str | None], Awaitable[Any]]


class Scheduler:
    """Two background tasks. A due cron moves on to its next time and enqueues its run in one transaction, which one process
    alone wins.

    What fell due several times while no process ran is started once. The next time is after both the time that was
    due and the present: a clock that is set back starts nothing twice.

    Args:
        start_run: starts a run: the owner, the body of the request, the thread or None for one of the run's own.
        ring: called when there are tasks, of kind ``cron``, for :meth:`fire`.
    """

    def __init__(
        self,
        database: Database,
        start_run: StartRun,
        ring: Callable[[], None],
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database = database
        self._start_run = start_run
        self._ring = ring
        self._clock = clock

    async def look(self, _: Job | None = None) -> None:
        """Handler of the task ``crons``, of which there is one: it comes again when the next cron is due."""
        try:
            await self.tick()
        except Exception:
            logger.warning("Crons cannot be read from the database; trying again.", exc_info=True)
            again = self._clock() + LOOK_AGAIN
            await self._database.write(lambda connection: enqueue(connection, CRONS, "", {}, due_at=again))
        else:
            await self._database.write(look_when_due)

    async def tick(self) -> None:
        """Turn each cron whose time has come into a job."""
        while crons := await self._database.read(lambda connection: due(connection, self._clock(), limit=BATCH)):
            now = self._clock()
            following = await asyncio.to_thread(lambda: [_following(cron, now) for cron in crons])  # noqa: B023

            def move_on(connection: Connection) -> bool:
                pairs = zip(crons, following, strict=True)  # noqa: B023
                return any([_move_on(connection, cron, next_at, now) for cron, next_at in pairs])  # noqa: B023

            if await self._database.write(move_on):
                self._ring()
            if len(crons) < BATCH:
                return

    async def fire(self, job: Job) -> None:
        """Handler of ``cron`` jobs: start the run."""
        principal = Principal(job.payload["user_id"], source="internal")
        thread_id, body = job.payload["thread_id"], job.payload["body"]
        # A process that died after it had started the run left the job behind.
        if job.attempts > 1 and await self._has_started(principal, body["metadata"]):
            return
        try:
            await self._start_run(principal, body, thread_id)
        except (RequestError, ValidationError) as error:
            if isinstance(error, NotFoundError) and thread_id is not None:
                await self._disable(principal, job.payload["cron_id"])
            if isinstance(error, RequestError) and (error.status >= 500 or error.status == 429):
                raise
            raise HopelessError(f"Its run cannot be started: {error}") from error

    async def _has_started(self, principal: Principal, metadata: dict[str, Any]) -> bool:
        same = {name: metadata[name] for name in ("cron_id", "cron_run_date")}

        def job(connection: Connection) -> bool:
            mine = (runs.c.user_id == principal.user_id, matches(connection, runs.c.metadata, same))
            return connection.execute(select(runs.c.run_id).where(*mine).limit(1)).first() is not None

        return await self._database.read(job)

    async def _disable(self, principal: Principal, cron_id: str) -> None:
        changes = {"enabled": False, "next_run_at": None, "updated_at": self._clock()}
        with suppress(NotFoundError):
            await CronRepository(self._database).update(principal, cron_id, changes)
            logger.warning("Cron %s is disabled: its thread is gone.", cron_id)


def _following(cron: Cron, now: datetime) -> datetime | None:
    try:
        following = next_due(cron.schedule, cron.timezone, max(now, cron.next_run_at or now))
    except InvalidRequestError as error:
        logger.warning("Cron %s does not go on: %s", cron.cron_id, error)
        return None
    return None if cron.end_time is not None and following > cron.end_time else following


def _move_on(connection: Connection, cron: Cron, next_at: datetime | None, now: datetime) -> bool:
    """Whether there is a run to start, and it is ours to start it."""
    if not claim(connection, cron, next_at) or cron.next_run_at is None:
        return False
    if cron.end_time is not None and now > cron.end_time:
        return False
    date = cron.next_run_at.isoformat()
    body = {
        **cron.payload,
        "assistant_id": cron.assistant_id,
        "metadata": {**cron.metadata, "cron_id": cron.cron_id, "cron_run_date": date},
    }
    if cron.thread_id is None:
        body["on_completion"] = cron.on_run_completed
    payload = {"user_id": cron.user_id, "cron_id": cron.cron_id, "thread_id": cron.thread_id, "body": body}
    enqueue(connection, CRON, f"{cron.cron_id}@{date}", payload)
    return True
