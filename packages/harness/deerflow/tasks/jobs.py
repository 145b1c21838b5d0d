"""Work that must be done after the transaction that asks for it: at least once, later, again if it fails.

The rows that ask for it, and the worker that does it in this process, next to those of other processes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVarTuple

from sqlalchemy import Connection

from deerflow.event_loop import end
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import jobs, utc_now

logger = logging.getLogger(__name__)

Args = TypeVarTuple("Args")

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""When a job is due again that failed for good and is kept for what its ``error`` says."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was leased: its holder alone works on it until ``leased_until``."""

    id: int
    kind: str
    key: str
    payload: dict[str, Any]
    attempts: int
    """This one included."""
    leased_until: datetime


def enqueue(
    connection: Connection,
    kind: str,
    key: str,
    payload: Mapping[str, Any],
    *,
    due_at: datetime | None = None,
    puts_off: bool = True,
) -> None:
    """Ask for work as part of the caller's transaction. Ring the worker's bell after the commit.

    A job of the same kind and key that waits is replaced, which puts it off to ``due_at``: a debounce. One that is being
    worked on is finished first, and then done again with this payload.

    Args:
        due_at: not before then; None: at once.
        puts_off: False leaves a job that is due before then its time.
    """
    row = {"kind": kind, "key": key, "payload": dict(payload), "due_at": due_at or utc_now(), "attempts": 0}
    # The lease stays: it belongs to the worker that does the replaced job, which sees by `attempts` that it was replaced.
    sooner = "CASE WHEN jobs.due_at < excluded.due_at THEN jobs.due_at ELSE excluded.due_at END"
    due = "excluded.due_at" if puts_off else sooner
    new = f"payload = excluded.payload, due_at = {due}, attempts = 0, error = NULL"
    sql.insert(connection, jobs, row, f"ON CONFLICT (kind, key) DO UPDATE SET {new}")


def bring_forward(connection: Connection, kind: str, key: str, due_at: datetime) -> None:
    """Make a job that waits due at ``due_at``, if that is sooner."""
    sql.update(connection, jobs, {"due_at": due_at}, "kind = ? AND key = ? AND due_at > ?", kind, key, due_at)


def lease(
    connection: Connection,
    most: Mapping[str, int],
    *,
    now: datetime,
    until: datetime,
    but: Collection[int] = (),
) -> list[Job]:
    """Take jobs that are due and that nobody works on, those due first.

    Args:
        most: how many of each kind.
        but: ids of jobs that the caller works on: a clock that was set forward does not make them free.
    """
    due = sql.select(
        connection,
        Job,
        jobs,
        f"WHERE kind IN ({_marks(most)}) AND due_at <= ? AND (leased_until IS NULL OR leased_until <= ?) "
        f"{f'AND id NOT IN ({_marks(but)})' if but else ''} "
        f"ORDER BY due_at, id LIMIT ?{sql.for_update(connection, 'UPDATE SKIP LOCKED')}",
        *(*most, now, now, *but, sum(most.values())),
    )
    found = [job for kind in most for job in [job for job in due if job.kind == kind][: most[kind]]]
    if found:
        taken = f"UPDATE jobs SET leased_until = ?, attempts = attempts + 1 WHERE id IN ({_marks(found)})"
        sql.execute(connection, taken, until, *(job.id for job in found))
    return [replace(job, attempts=job.attempts + 1, leased_until=until) for job in found]


def extend(connection: Connection, job: Job, until: datetime) -> Job | None:
    """Hold ``job`` longer. None: the lease ran out and someone else has the job."""
    held = sql.update(connection, jobs, {"leased_until": until}, _LEASED, job.id, job.leased_until)
    return replace(job, leased_until=until) if held else None


def complete(connection: Connection, job: Job) -> bool:
    """The job is done. False: it was replaced meanwhile, and becomes free, or someone else has taken it, whose it stays."""
    done = f"DELETE FROM jobs WHERE {_LEASED} AND attempts = ?"
    if sql.change(connection, done, job.id, job.leased_until, job.attempts):
        return True
    release(connection, job)
    return False


def fail(connection: Connection, job: Job, error: str, retry_at: datetime) -> None:
    """The job failed and is due again at ``retry_at``, unless it was replaced meanwhile."""
    failed = {"leased_until": None, "due_at": retry_at, "error": error}
    same = f"{_LEASED} AND attempts = ?"
    if not sql.update(connection, jobs, failed, same, job.id, job.leased_until, job.attempts):
        release(connection, job)


def release(connection: Connection, job: Job) -> None:
    """Give the job back, untried: whoever comes next may take it."""
    tries = "CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
    given_back = f"UPDATE jobs SET leased_until = NULL, attempts = {tries} WHERE {_LEASED}"
    sql.execute(connection, given_back, job.id, job.leased_until)


def next_due(connection: Connection, kinds: Collection[str]) -> datetime | None:
    """When the next job becomes due or free, which may be past. None: there is none."""
    of = f"FROM jobs WHERE kind IN ({_marks(kinds)}) AND leased_until"
    query = f"SELECT (SELECT min(due_at) {of} IS NULL), (SELECT min(leased_until) {of} IS NOT NULL)"
    moments = sql.execute(connection, query, *kinds, *kinds).fetchone()
    return min((sql.moment(moment) for moment in moments if moment is not None), default=None)


_LEASED = "id = ? AND leased_until = ?"


def _marks(values: Sized) -> str:
    return ", ".join("?" * len(values))


# worker -----------------------------------------------------------------------------------------------------------------

MAX_ATTEMPTS = 8
LEASE = timedelta(seconds=60)
POLL_SECONDS = 15.0
"""How long a job that another process asked for may lie before this one notices."""


Handler = Callable[[Job], Awaitable[None]]


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
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = 4,
        lease: timedelta = LEASE,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database = database
        self._handlers = dict(handlers)
        self._concurrency = concurrency
        self._lease = lease
        self._clock = clock
        self._awake = asyncio.Event()
        self._working: dict[asyncio.Task[None], _Held] = {}
        self._loop: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin. Must be called on the event loop; further calls do nothing."""
        self._loop = self._loop or asyncio.create_task(self._run(), name="jobs")

    def wake(self, due: datetime | None = None) -> None:
        """Look for work now, or when it is due, instead of within some seconds. Call it after the commit that asked for it."""
        seconds = (due - self._clock()).total_seconds() if due is not None else 0.0
        if seconds <= 0:
            self._awake.set()
        elif seconds < POLL_SECONDS:
            asyncio.get_running_loop().call_later(seconds, self._awake.set)

    async def aclose(self, *, grace: float = 10.0) -> None:
        """Take no more jobs, wait ``grace`` seconds for those in hand, then give them back. Idempotent."""
        self._stopping = True
        self._awake.set()
        if self._loop is not None:
            await asyncio.wait([self._loop], timeout=grace)
            self._loop.cancel()
        await end([*self._working], grace)

    async def _run(self) -> None:
        while not self._stopping:
            self._awake.clear()
            try:
                pause = await self._take()
            except Exception:
                logger.warning("Jobs cannot be read from the database; trying again.", exc_info=True)
                pause = POLL_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._awake.wait()

    async def _take(self) -> float:
        """Begin what is due. Seconds until the next may be."""
        if not (free := self._free()) or self._stopping:
            return POLL_SECONDS
        now, ours = self._clock(), [held.job.id for held in self._working.values()]

        def take(connection: Connection) -> tuple[list[Job], datetime | None]:
            leased = lease(connection, free, now=now, until=now + self._lease, but=ours)
            return leased, next_due(connection, free)

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
            self._awake.set()

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
            held.is_gone = bool(await self._settle(complete, job))
        elif isinstance(outcome, asyncio.CancelledError):
            await self._settle(release, job)
        elif isinstance(outcome, KeptError):
            logger.warning("Gave up on %s %s: %s", job.kind, job.key, outcome)
            await self._settle(fail, job, str(outcome), NEVER)
        elif isinstance(outcome, HopelessError):
            logger.warning("Gave up on %s %s: %s", job.kind, job.key, outcome)
            await self._settle(complete, job)
        else:
            await self._failed(job, outcome)

    async def _handle(self, job: Job) -> None:
        if job.attempts > MAX_ATTEMPTS:
            raise HopelessError(f"{MAX_ATTEMPTS} processes died or lost their lease while they worked on it.")
        await self._handlers[job.kind](job)

    async def _renew(self, held: _Held, handling: asyncio.Future[None]) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            async with held.renewing:
                try:
                    renewed = await self._database.write(extend, held.job, self._clock() + self._lease)
                except Exception:
                    logger.warning("Cannot renew the lease of %s %s.", held.job.kind, held.job.key, exc_info=True)
                    continue
                if renewed is None:
                    handling.cancel()
                    return
                held.job = renewed

    async def _failed(self, job: Job, error: BaseException) -> None:
        if job.attempts >= MAX_ATTEMPTS:
            logger.error("Gave up on %s %s after %d attempts.", job.kind, job.key, job.attempts, exc_info=error)
            await self._settle(complete, job)
            return
        retry_at = self._clock() + backoff(job.attempts)
        logger.info("%s %s failed, again at %s: %s", job.kind, job.key, retry_at.isoformat(), error)
        text = f"{type(error).__name__}: {error}"[:1000]
        await self._settle(fail, job, text, retry_at)

    async def _settle(self, write: Callable[[Connection, *Args], object], *args: *Args) -> object:
        """Write how it ended. If that fails, the lease runs out and the job is done again."""
        try:
            return await self._database.write(write, *args)
        except Exception:
            logger.warning("Cannot note how a job ended; it will be done again.", exc_info=True)


@dataclass(slots=True)
class _Held:
    """A job with its newest lease. ``is_gone``: done, and nothing is left of it."""

    job: Job
    renewing: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_gone: bool = False


def backoff(attempts: int) -> timedelta:
    """How long to wait after that many attempts: 4 s, 16 s, 64 s … at most an hour."""
    return timedelta(seconds=min(3600, 4**attempts))
