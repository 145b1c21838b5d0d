"""The worker that does what :mod:`deerflow.tasks.job_rows` holds, in this process, next to those of other processes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now
from deerflow.tasks import job_rows as jobs
from deerflow.tasks.job_rows import Job

if TYPE_CHECKING:
    from sqlalchemy import Connection

logger = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[Job], Awaitable[None]]

MAX_ATTEMPTS = 8
LEASE = timedelta(seconds=60)
POLL_SECONDS = 15.0
"""How long a job that another process asked for may lie before this one notices."""


class HopelessError(Exception):
    """Raised by a handler: the job cannot succeed, do not try again. ``str`` says why, for the log."""


class KeptError(HopelessError):
    """Likewise, and the job stays with what ``str`` says, until it is replaced or deleted."""


class JobWorker:
    """Args:
    handlers: what to do for each kind of job. A handler may be called twice for one job, if a process dies at the
        wrong moment. Whatever it raises, except HopelessError, is a reason to try again later.
    concurrency: jobs of a kind at a time; those that wait for a slow service hold up no others.
    lease: how long a job is held without a sign of life; it is renewed while its handler works.
    most_attempts: after so many a job that fails is given up.
    pause: how long to wait after that many attempts.
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = 4,
        lease: timedelta = LEASE,
        most_attempts: float = MAX_ATTEMPTS,
        pause: Callable[[int], timedelta] | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database = database
        self._handlers = dict(handlers)
        self._concurrency = concurrency
        self._lease = lease
        self._most_attempts = most_attempts
        self._pause = pause or backoff
        self._clock = clock
        self._bell = asyncio.Event()
        self._working: dict[asyncio.Task[None], _Held] = {}
        self._loop: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin. Must be called on the event loop; further calls do nothing."""
        self._loop = self._loop or asyncio.create_task(self._run(), name="jobs")

    def ring(self, due: datetime | None = None) -> None:
        """Look for work now, or when it is due, instead of within some seconds. Call it after the commit that asked for it."""
        seconds = (due - self._clock()).total_seconds() if due is not None else 0.0
        if seconds <= 0:
            self._bell.set()
        elif seconds < POLL_SECONDS:
            asyncio.get_running_loop().call_later(seconds, self._bell.set)

    async def aclose(self, *, grace: float = 10.0) -> None:
        """Take no more jobs, wait ``grace`` seconds for those in hand, then give them back. Idempotent."""
        self._stopping = True
        self._bell.set()
        if self._loop is not None:
            await asyncio.wait([self._loop], timeout=grace)
            self._loop.cancel()
        if self._working:
            await asyncio.wait([*self._working], timeout=grace)
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _run(self) -> None:
        while not self._stopping:
            self._bell.clear()
            try:
                pause = await self._take()
            except Exception:
                logger.warning("Jobs cannot be read from the database; trying again.", exc_info=True)
                pause = POLL_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._bell.wait()

    async def _take(self) -> float:
        """Begin what is due. Seconds until the next may be."""
        if not (free := self._free()) or self._stopping:
            return POLL_SECONDS
        now, ours = self._clock(), [held.job.id for held in self._working.values()]

        def take(connection: Connection) -> tuple[list[Job], datetime | None]:
            leased = jobs.lease(connection, free, now=now, until=now + self._lease, limit=free, but=ours)
            return leased, jobs.next_due(connection, free)

        leased, due = await self._database.write(take)
        for job in leased:
            self._begin(job)
        if due is None:
            return POLL_SECONDS
        return min(POLL_SECONDS, max(0.05, (due - self._clock()).total_seconds()))

    def _free(self) -> dict[str, int]:
        """How many jobs of which kinds may begin."""
        in_hand = Counter(held.job.kind for held in self._working.values())
        free = {kind: self._concurrency - in_hand[kind] for kind in self._handlers}
        return {kind: number for kind, number in free.items() if number > 0}

    def _begin(self, job: Job) -> None:
        held = _Held(job)
        task = asyncio.create_task(self._work(held), name=f"job {job.kind}")
        self._working[task] = held
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        held, had_room = self._working[task], self._free()
        del self._working[task]
        if not held.is_gone or held.job.kind not in had_room:
            self._bell.set()

    async def _work(self, held: _Held) -> None:
        handling = asyncio.ensure_future(self._handle(held.job))
        renewing = asyncio.create_task(self._renew(held, handling))
        outcome: BaseException | None = None
        try:
            await handling
        except (Exception, asyncio.CancelledError) as error:
            outcome = error
        async with held.renewing:
            renewing.cancel()
        job = held.job
        if outcome is None:
            held.is_gone = bool(await self._settle(lambda connection: jobs.complete(connection, job)))
        elif isinstance(outcome, asyncio.CancelledError):
            await self._settle(lambda connection: jobs.release(connection, job))
        elif isinstance(outcome, HopelessError):
            logger.warning("Gave up on %s %s: %s", job.kind, job.key, outcome)
            await self._settle(self._given_up(job, outcome))
        else:
            await self._failed(job, outcome)

    async def _handle(self, job: Job) -> None:
        if job.attempts > self._most_attempts:
            raise HopelessError(f"{self._most_attempts} processes died or lost their lease while they worked on it.")
        await self._handlers[job.kind](job)

    async def _renew(self, held: _Held, handling: asyncio.Future[None]) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            async with held.renewing:
                job, until = held.job, self._clock() + self._lease
                try:
                    renewed = await self._database.write(lambda connection: jobs.extend(connection, job, until))  # noqa: B023
                except Exception:
                    logger.warning("Cannot renew the lease of %s %s.", job.kind, job.key, exc_info=True)
                    continue
                if renewed is None:
                    handling.cancel()
                    return
                held.job = renewed

    async def _failed(self, job: Job, error: BaseException) -> None:
        if job.attempts >= self._most_attempts:
            logger.error("Gave up on %s %s after %d attempts.", job.kind, job.key, job.attempts, exc_info=error)
            await self._settle(lambda connection: jobs.complete(connection, job))
            return
        retry_at = self._clock() + self._pause(job.attempts)
        logger.info("%s %s failed, again at %s: %s", job.kind, job.key, retry_at.isoformat(), error)
        text = f"{type(error).__name__}: {error}"[:1000]
        await self._settle(lambda connection: jobs.fail(connection, job, text, retry_at=retry_at))

    def _given_up(self, job: Job, why: HopelessError) -> Callable[[Connection], object]:
        if isinstance(why, KeptError):
            return lambda connection: jobs.fail(connection, job, str(why), retry_at=jobs.NEVER)
        return lambda connection: jobs.complete(connection, job)

    async def _settle(self, write: Callable[[Connection], T]) -> T | None:
        """Write how it ended. If that fails, the lease runs out and the job is done again."""
        try:
            return await self._database.write(write)
        except Exception:
            logger.warning("Cannot note how a job ended; it will be done again.", exc_info=True)


class _Held:
    """A job with its newest lease."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.renewing = asyncio.Lock()
        self.is_gone = False
        """Done, and nothing is left of it."""


def backoff(attempts: int) -> timedelta:
    """How long to wait after that many attempts: 4 s, 16 s, 64 s … at most an hour."""
    return timedelta(seconds=min(3600, 4**attempts))
