"""Work that must be done after the transaction that asks for it: at least once, later, again if it fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from deerflow.storage.tables import jobs, utc_now


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
    connection: Connection, kind: str, key: str, payload: Mapping[str, Any], *, due_at: datetime | None = None
) -> None:
    """Ask for work as part of the caller's transaction. Ring the worker's bell after the commit.

    A job of the same kind and key that waits is replaced, which puts it off to ``due_at``: a debounce. One that is being
    worked on is finished first, and then done again with this payload.

    Args:
        due_at: not before then; None: at once.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    new = {"payload": dict(payload), "due_at": due_at or utc_now(), "attempts": 0, "error": None}
    statement = insert(jobs).values(kind=kind, key=key, **new)
    # The lease stays: it belongs to the worker that does the replaced job, which sees by `attempts` that it was replaced.
    connection.execute(statement.on_conflict_do_update(index_elements=["kind", "key"], set_=new))


def lease(
    connection: Connection, kinds: Collection[str], *, now: datetime, until: datetime, limit: int = 1
) -> list[Job]:
    """Take up to ``limit`` jobs that are due and that nobody works on, those due first."""
    free = or_(jobs.c.leased_until.is_(None), jobs.c.leased_until <= now)
    found = connection.execute(
        select(jobs)
        .where(jobs.c.kind.in_(kinds), jobs.c.due_at <= now, free)
        .order_by(jobs.c.due_at, jobs.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    if found:
        taken = update(jobs).where(jobs.c.id.in_([row.id for row in found]))
        connection.execute(taken.values(leased_until=until, attempts=jobs.c.attempts + 1))
    return [Job(row.id, row.kind, row.key, row.payload, row.attempts + 1, until) for row in found]


def extend(connection: Connection, job: Job, until: datetime) -> Job | None:
    """Hold ``job`` longer. None: the lease ran out and someone else has the job."""
    held = connection.execute(update(jobs).where(_lease_of(job)).values(leased_until=until))
    return Job(job.id, job.kind, job.key, job.payload, job.attempts, until) if held.rowcount else None


def complete(connection: Connection, job: Job) -> None:
    """The job is done. One that replaced it meanwhile becomes free; one that someone else has taken stays theirs."""
    if not connection.execute(delete(jobs).where(_lease_of(job), jobs.c.attempts == job.attempts)).rowcount:
        release(connection, job)


def fail(connection: Connection, job: Job, error: str, *, retry_at: datetime) -> None:
    """The job failed and is due again at ``retry_at``, unless it was replaced meanwhile."""
    failed = update(jobs).where(_lease_of(job), jobs.c.attempts == job.attempts)
    if not connection.execute(failed.values(leased_until=None, due_at=retry_at, error=error)).rowcount:
        release(connection, job)


def release(connection: Connection, job: Job) -> None:
    """Give the job back, untried: whoever comes next may take it."""
    tries = func.max if connection.dialect.name == "sqlite" else func.greatest
    given_back = update(jobs).where(_lease_of(job))
    connection.execute(given_back.values(leased_until=None, attempts=tries(jobs.c.attempts - 1, 0)))


def next_due(connection: Connection, kinds: Collection[str]) -> datetime | None:
    """When the next job becomes due or free, which may be past. None: there is none."""
    waiting = and_(jobs.c.kind.in_(kinds), jobs.c.leased_until.is_(None))
    leased = and_(jobs.c.kind.in_(kinds), jobs.c.leased_until.is_not(None))
    moments = connection.execute(
        select(
            select(func.min(jobs.c.due_at)).where(waiting).scalar_subquery(),
            select(func.min(jobs.c.leased_until)).where(leased).scalar_subquery(),
        )
    ).one()
    return min((moment for moment in moments if moment is not None), default=None)


def _lease_of(job: Job) -> ColumnElement[bool]:
    return and_(jobs.c.id == job.id, jobs.c.leased_until == job.leased_until)
