"""The queue of a product that is many processes: jobs of Procrastinate in the PostgreSQL that they share.

A job is a bell, nothing else: it names a run and a thread and is deleted when the run has been executed. Jobs of workers
that died are rung again as soon as the lock of their thread is free, and runs that lost their job at the next sweep.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, LiteralString, cast

import procrastinate
import psycopg
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job
from procrastinate.schema import SchemaManager
from psycopg import AsyncConnection, sql

from deerflow.storage.postgres_thread_lock import CONNECTION, END_FROZEN, FROZEN, IS_HELD, LEASE
from deerflow.tasks.queue import Execute, Interrupt, retry_delay

logger = logging.getLogger(__name__)

QUEUE = "runs"
CANCEL_CHANNEL = "deerflow_cancel"

POLL = 0.3
"""Seconds between two looks for jobs that became due or free; new ones are announced by the database."""

LOOK = 0.5
"""Seconds between two looks for jobs whose worker died."""

LOOKS = 3
"""How often in a row the lock of a job's thread must be free: between its start and its end there is a moment without."""

PATIENCE = 5.0
"""Seconds a ring waits for a database that does not answer. Then the sweep has to find the run."""

SWEEP = 10
"""Seconds between two looks for runs that have no job, by one of the workers; a divisor of 60."""

NOW, LATER = 1, 0
"""Priorities. Jobs of one run wait for each other, and one that is due later must not hold up one that is due now."""

Unfinished = Callable[[], Awaitable[Iterable[tuple[str, str]]]]
"""Ids of runs and their threads that are due, have not ended and were last touched some seconds ago."""


class ProcrastinateQueue:
    """A :class:`~deerflow.tasks.queue.RunQueue` for all processes that use one PostgreSQL database.

    What executes a run must hold its thread's :class:`~deerflow.storage.postgres_thread_lock.PostgresThreadLock` of the
    same database while it does: a run that is taken and whose thread nobody holds is given to another worker.

    Args:
        url: of the database. The tables are kept in a schema of their own, made at the first use.
        unfinished: finds the runs that should have a job.
        sweep: seconds between two calls of ``unfinished`` in the whole installation; a divisor of 60.
    """

    def __init__(self, url: str, unfinished: Unfinished, *, sweep: int = SWEEP) -> None:
        self._conninfo = url
        self._unfinished = unfinished
        self._schema, self._ddl = "", ""
        self._connector = _PatientConnector(
            conninfo=self._conninfo,
            kwargs=CONNECTION,
            configure=self._configure,
            min_size=1,
            max_size=4,
            timeout=1,
        )
        self._app = procrastinate.App(connector=self._connector)
        self._task = self._app.task(name="run_agent", queue=QUEUE, retry=_Again())(self._run)
        sweeping = self._app.task(name="sweep", queue=QUEUE, queueing_lock="sweep")(self._sweep)
        self._app.periodic(cron=f"* * * * * */{sweep}")(sweeping)
        self._opening = asyncio.Lock()
        self._is_open = self._is_closing = False
        self._execute: Execute | None = None
        self._concurrency = 0
        self._interrupt: Interrupt | None = None
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._worker: asyncio.Task[None] | None = None
        self._helpers: list[asyncio.Task[None]] = []

    async def defer(self, run_id: str, thread_id: str, *, at: datetime | None = None) -> None:
        is_later = at is not None and at > datetime.now(UTC)
        job = self._task.configure(
            lock=run_id, priority=LATER if is_later else NOW, schedule_at=at if is_later else None
        )
        await self._ring(run_id, lambda: job.defer_async(run_id=run_id, thread_id=thread_id))

    def begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> bool:
        if self._execute is None or self._is_closing or len(self._running) >= self._concurrency:
            return False
        self._running[run_id] = asyncio.create_task(self._begin(run_id, thread_id, work), name=f"run {run_id}")
        return True

    async def cancel(self, run_id: str) -> None:
        query = "SELECT pg_notify(%(channel)s, %(run_id)s)"
        await self._ring(
            run_id, lambda: self._connector.execute_query_async(query, channel=CANCEL_CHANNEL, run_id=run_id)
        )

    async def start(self, execute: Execute, interrupt: Interrupt, *, concurrency: int) -> None:
        self._execute, self._interrupt, self._concurrency = execute, interrupt, concurrency
        await self._open()
        self._worker = asyncio.create_task(self._work(concurrency), name="runs worker")
        self._helpers = [
            asyncio.create_task(self._hear_cancellations(), name="cancellations of runs"),
            asyncio.create_task(self._look_for_dead_workers(), name="jobs of dead workers"),
        ]

    async def aclose(self, *, grace: float) -> None:
        self._is_closing = True
        for helper in self._helpers:
            helper.cancel()
        if self._worker is not None:
            # It stops fetching, waits for its jobs and raises.
            self._worker.cancel()
            await asyncio.wait({self._worker, *self._running.values()}, timeout=grace)
            self._connector.is_patient = False
            executions = [*self._running.values()]
            for execution in executions:
                execution.cancel()
            await asyncio.wait({self._worker, *executions})
        await asyncio.gather(*self._helpers, return_exceptions=True)
        if self._is_open:
            await self._app.close_async()
            self._is_open = False

    # rings ----------------------------------------------------------------------------------------------------------

    async def _ring(self, run_id: str, ring: Callable[[], Awaitable[Any]]) -> None:
        """The run's row says what is to be done, so a database that is away is no error: see ``SWEEP``."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._open()
                await ring()
        except (ConnectorException, psycopg.Error, OSError) as error:
            logger.warning("No worker could be told of run %s, one will find it: %r", run_id, error)

    async def _open(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self._make_schema()
                await self._app.open_async()
                self._is_open = True

    async def _make_schema(self) -> None:
        """A version of Procrastinate has its own schema: bells need no migration, runs that lose theirs are swept."""
        if not self._schema:
            self._ddl = await asyncio.to_thread(SchemaManager.get_schema)
            self._schema = f"deerflow_queue_{hashlib.sha256(self._ddl.encode()).hexdigest()[:8]}"
        async with await AsyncConnection.connect(self._conninfo, **CONNECTION) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [self._schema])
            found = await connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", [self._schema])
            if (await found.fetchone()) != (True,):
                await connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._schema)))
                await self._set_path(connection)
                await connection.execute(cast(LiteralString, self._ddl))

    async def _configure(self, connection: AsyncConnection[Any]) -> None:
        await self._set_path(connection)
        await connection.commit()

    async def _set_path(self, connection: AsyncConnection[Any]) -> None:
        await connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))

    # work -----------------------------------------------------------------------------------------------------------

    async def _work(self, concurrency: int) -> None:
        while not self._is_closing:
            try:
                await self._app.run_worker_async(
                    queues=[QUEUE],
                    concurrency=concurrency,
                    install_signal_handlers=False,
                    fetch_job_polling_interval=POLL,
                    delete_jobs="always",
                )
            except Exception:
                if not self._is_closing:
                    logger.exception("The worker stopped and is started again.")
            await asyncio.sleep(1)

    async def _run(self, run_id: str, thread_id: str) -> None:
        task = asyncio.current_task()
        assert task is not None and self._execute is not None
        while other := self._running.get(run_id):
            await asyncio.wait({other})
        if self._is_closing:
            raise asyncio.CancelledError
        self._running[run_id] = task
        try:
            await self._execute(run_id)
        finally:
            del self._running[run_id]

    async def _begin(self, run_id: str, thread_id: str, work: Callable[[], Awaitable[None]]) -> None:
        """Execute a run without a job, which it gets when it does not come to its end here. Should this process die, the
        sweep finds it."""
        try:
            await work()
        except (Exception, asyncio.CancelledError) as error:
            if not isinstance(error, asyncio.CancelledError):
                logger.exception("Run %s could not be executed and is tried again.", run_id)
            await self.defer(run_id, thread_id)
        finally:
            del self._running[run_id]

    async def _hear_cancellations(self) -> None:
        is_told = False
        while True:
            try:
                async with await AsyncConnection.connect(self._conninfo, autocommit=True, **CONNECTION) as connection:
                    await connection.execute(f"LISTEN {CANCEL_CHANNEL}")
                    is_told = False
                    # What was said before is not heard any more, but every run can look for itself.
                    for run_id in list(self._running):
                        self._tell(run_id)
                    async for notice in connection.notifies():
                        self._tell(notice.payload)
            except (psycopg.Error, OSError) as error:
                if not is_told:
                    logger.warning("Cancellations cannot be heard until the database is back: %s", error)
                is_told = True
            await asyncio.sleep(POLL)

    def _tell(self, run_id: str) -> None:
        if run_id in self._running and self._interrupt is not None:
            self._interrupt(run_id)

    # what got lost --------------------------------------------------------------------------------------------------

    async def _look_for_dead_workers(self) -> None:
        """Give jobs to others whose worker does not hold the thread: it died, is frozen, or lost its connection and let go."""
        free: dict[tuple[int, int], int] = {}
        silent: dict[tuple[int, str], int] = {}
        while True:
            await asyncio.sleep(LOOK)
            try:
                rows = await self._connector.execute_query_all_async(FROZEN, lease=LEASE)
                keys = [(row["pid"], row["state_change"]) for row in rows]
                silent = {key: silent.get(key, 0) + 1 for key in keys}
                for pid in [pid for (pid, _), looks in silent.items() if looks >= LOOKS]:
                    logger.warning("A worker has shown no sign of life for %d s: others take its runs.", LEASE)
                    await self._connector.execute_query_all_async(END_FROZEN, lease=LEASE, pid=pid)
                rows = await self._connector.execute_query_all_async(_ORPHANS)
                found = [(row["id"], row["attempts"]) for row in rows]
                free = {job: free.get(job, 0) + 1 for job in found}
                for job_id, attempts in [job for job, looks in free.items() if looks >= LOOKS]:
                    logger.warning("The worker of job %d is gone, another one goes on.", job_id)
                    await self._connector.execute_query_async(_RETRY, id=job_id, attempts=attempts)
            except ConnectorException:
                logger.exception("Jobs of dead workers could not be looked for.")

    async def _sweep(self, timestamp: int) -> None:
        """Ring for runs that have no job, and whose thread nobody holds: the ring was lost, or nobody was there when their thread became free."""
        await self._connector.execute_query_async(_FORGET_SWEEPS)
        runs = dict(await self._unfinished())
        threads = list(set(runs.values()))
        rows = await self._connector.execute_query_all_async(_WITH_JOB, run_ids=list(runs), thread_ids=threads)
        known = {row["id"] for row in rows}
        for run_id in [run_id for run_id in runs if not {run_id, runs[run_id]} & known]:
            await self.defer(run_id, runs[run_id])


_ORPHANS = f"""SELECT id, attempts FROM procrastinate_jobs
WHERE status = 'doing' AND task_name = 'run_agent' AND NOT {IS_HELD.format(name="args->>'thread_id'")}"""

_RETRY = """UPDATE procrastinate_jobs SET status = 'todo', attempts = attempts + 1, worker_id = NULL
WHERE id = %(id)s AND attempts = %(attempts)s AND status = 'doing'"""

_WITH_JOB = f"""SELECT args->>'run_id' AS id FROM procrastinate_jobs
WHERE lock = ANY(%(run_ids)s) AND status IN ('todo', 'doing')
UNION ALL SELECT thread_id FROM unnest(%(thread_ids)s::text[]) AS thread_id WHERE {IS_HELD.format(name="thread_id")}"""
"""Those of the runs that have a job, and of the threads that somebody holds."""

_FORGET_SWEEPS = "DELETE FROM procrastinate_jobs WHERE status = 'doing' AND task_name = 'sweep' AND worker_id IS NULL"

_LOCK_INDEX = "procrastinate_jobs_lock_idx_v1"


class _Again(procrastinate.BaseRetryStrategy):
    """A cancelled job goes to another worker at once, a failed one is tried again later."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> procrastinate.RetryDecision | None:
        if isinstance(exception, asyncio.CancelledError):
            return procrastinate.RetryDecision(retry_in={"seconds": 0})
        logger.error("Run %s could not be executed.", job.task_kwargs.get("run_id"), exc_info=exception)
        return procrastinate.RetryDecision(retry_in={"seconds": int(retry_delay(job.attempts + 1))}, priority=LATER)


class _PatientConnector(procrastinate.PsycopgConnector):
    """Waits for a database that is away. A worker of Procrastinate ends at its first failed query."""

    is_patient = True

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        """Used for what becomes of a job: nobody waits for an answer."""
        try:
            await self._try(lambda: super(_PatientConnector, self).execute_query_async(query, **arguments))
        except ConnectorException as error:
            was_taken_over = isinstance(error.__cause__, psycopg.errors.RaiseException)
            if self.is_patient and not was_taken_over:
                raise
            logger.info("What became of a job could not be recorded: %s", error.__cause__ or error)

    async def execute_query_one_async(self, query: LiteralString, **arguments: Any) -> dict[str, Any]:
        return await self._try(lambda: super(_PatientConnector, self).execute_query_one_async(query, **arguments))

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[dict[str, Any]]:
        return await self._try(lambda: super(_PatientConnector, self).execute_query_all_async(query, **arguments))

    async def listen_notify(self, on_notification: Any, channels: Iterable[str]) -> None:
        channels = list(channels)
        await self._try(lambda: super(_PatientConnector, self).listen_notify(on_notification, channels))

    async def _try(self, query: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await query()
            except ConnectorException as error:
                if not self.is_patient or not _is_passing(error):
                    raise
            await asyncio.sleep(POLL)


def _is_passing(error: ConnectorException) -> bool:
    """The database is away, or two workers took two jobs of one run in the same moment: one of them did not get it."""
    if isinstance(error, UniqueViolation):
        return error.constraint_name == _LOCK_INDEX
    return isinstance(error.__cause__, psycopg.OperationalError | psycopg.InterfaceError)
