"""The scheduler: starts the runs of crons that are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, select

from deerflow.capability import Capability
from deerflow.errors import InvalidRequestError, NotFoundError, RequestError
from deerflow.features.schedules.rows import CRONS, GOES, Cron, CronRepository, look_when_due
from deerflow.features.schedules.times import next_due
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.json_filter import matches
from deerflow.storage.tables import crons, runs, utc_now
from deerflow.storage.visibility import readable_by
from deerflow.tasks.jobs import HopelessError, Job, enqueue

logger = logging.getLogger(__name__)

CRON = "cron"
"""The kind of task that starts a run."""
LOOK_AGAIN = timedelta(seconds=20)
"""After crons could not be read."""
BATCH = 100


StartRun = Callable[[Principal, dict[str, Any], str | None], Awaitable[Any]]


class Scheduler(Capability):
    """Two background tasks. A due cron moves on to its next time and enqueues its run in one transaction, which one process
    alone wins.

    What fell due several times while no process ran is started once. The next time is after both the time that was
    due and the present: a clock that is set back starts nothing twice.

    Args:
        start_run: starts a run: the owner, the body of the request, the thread or None for one of the run's own.
        wake: called when there are tasks, of kind ``cron``, for :meth:`fire`.
    """

    name = "schedules"
    needs_server = True

    def __init__(
        self,
        database: Database,
        start_run: StartRun,
        wake: Callable[[], None],
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database = database
        self._start_run = start_run
        self._wake = wake
        self._clock = clock
        self.jobs = {CRONS: self.look, CRON: self.fire}

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
        while due := await self._database.read(_due, self._clock()):
            now = self._clock()
            following = await asyncio.to_thread(lambda: [(cron, _following(cron, now)) for cron in due])  # noqa: B023
            if await self._database.write(_move_on, following, now):
                self._wake()
            if len(due) < BATCH:
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
            mine = readable_by(principal, runs), matches(connection, runs.c.metadata, same)
            return connection.execute(select(runs.c.run_id).where(*mine).limit(1)).first() is not None

        return await self._database.read(job)

    async def _disable(self, principal: Principal, cron_id: str) -> None:
        changes = {"enabled": False, "next_run_at": None, "updated_at": self._clock()}
        with suppress(NotFoundError):
            await CronRepository(self._database).update(principal, cron_id, changes)
            logger.warning("Cron %s is disabled: its thread is gone.", cron_id)


def _due(connection: Connection, now: datetime) -> list[Cron]:
    """Crons of all users whose time has come, longest due first."""
    tail = f"WHERE {GOES} AND next_run_at <= ? ORDER BY next_run_at LIMIT ?"
    return sql.select(connection, Cron, crons, tail, now, BATCH)


def _following(cron: Cron, now: datetime) -> datetime | None:
    try:
        following = next_due(cron.schedule, cron.timezone, max(now, cron.next_run_at or now))
    except InvalidRequestError as error:
        logger.warning("Cron %s does not go on: %s", cron.cron_id, error)
        return None
    return None if cron.end_time is not None and following > cron.end_time else following


def _move_on(connection: Connection, following: Sequence[tuple[Cron, datetime | None]], now: datetime) -> bool:
    """Move crons on to their next times. Whether there are runs to start, and they are ours to start them."""
    return any([_starts(connection, cron, next_at, now) for cron, next_at in following])


def _starts(connection: Connection, cron: Cron, next_at: datetime | None, now: datetime) -> bool:
    """False if another process moved it on first, it was changed or deleted, or it has ended."""
    same = "cron_id = ? AND enabled AND next_run_at = ? AND updated_at = ?"
    as_it_was = cron.cron_id, cron.next_run_at, cron.updated_at
    if not sql.update(connection, crons, {"next_run_at": next_at}, same, *as_it_was) or cron.next_run_at is None:
        return False
    if cron.end_time is not None and now > cron.end_time:
        return False
    date = cron.next_run_at.isoformat()
    body = {
        **cron.payload,
        "context": {"time_zone": cron.timezone or "UTC", **(cron.payload.get("context") or {})},
        "assistant_id": cron.assistant_id,
        "metadata": {**cron.metadata, "cron_id": cron.cron_id, "cron_run_date": date},
    }
    if cron.thread_id is None:
        body["on_completion"] = cron.on_run_completed
    payload = {"user_id": cron.user_id, "cron_id": cron.cron_id, "thread_id": cron.thread_id, "body": body}
    enqueue(connection, CRON, f"{cron.cron_id}@{date}", payload)
    return True
