"""Work that must be done after the transaction that asks for it: at least once, later, again if it fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from deerflow.storage import sql
from deerflow.storage.tables import jobs, utc_now

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
    connection: Connection, kind: str, key: str, payload: Mapping[str, Any], *, due_at: datetime | None = None
) -> None:
    """Ask for work as part of the caller's transaction. Ring the worker's bell after the commit.

    A job of the same kind and key that waits is replaced, which puts it off to ``due_at``: a debounce. One that is being
    worked on is finished first, and then done again with this payload.

    Args:
        due_at: not before then; None: at once.
    """
    row = {"kind": kind, "key": key, "payload": dict(payload), "due_at": due_at or utc_now(), "attempts": 0}
    # The lease stays: it belongs to the worker that does the replaced job, which sees by `attempts` that it was replaced.
    new = "payload = excluded.payload, due_at = excluded.due_at, attempts = 0, error = NULL"
    sql.insert(connection, jobs, row, f"ON CONFLICT (kind, key) DO UPDATE SET {new}")


def lease(
    connection: Connection,
    kinds: Collection[str],
    *,
    now: datetime,
    until: datetime,
    limit: int | Mapping[str, int] = 1,
    but: Collection[int] = (),
) -> list[Job]:
    """Take up to ``limit`` jobs, of all kinds or of each, that are due and that nobody works on, those due first.

    Args:
        but: ids of jobs that the caller works on: a clock that was set forward does not make them free.
    """
    most = limit if isinstance(limit, int) else sum(limit.values())
    found = sql.select(
        connection,
        Job,
        jobs,
        f"WHERE kind IN ({_marks(kinds)}) AND due_at <= ? AND (leased_until IS NULL OR leased_until <= ?) "
        f"{f'AND id NOT IN ({_marks(but)})' if but else ''} "
        f"ORDER BY due_at, id LIMIT ?{sql.for_update(connection, 'UPDATE SKIP LOCKED')}",
        *(*kinds, now, now, *but, most),
    )
    if not isinstance(limit, int):
        found = [job for kind in kinds for job in [job for job in found if job.kind == kind][: limit[kind]]]
    if found:
        taken = f"UPDATE jobs SET leased_until = ?, attempts = attempts + 1 WHERE id IN ({_marks(found)})"
        sql.execute(connection, taken, until, *(job.id for job in found))
    return [replace(job, attempts=job.attempts + 1, leased_until=until) for job in found]


def extend(connection: Connection, job: Job, until: datetime) -> Job | None:
    """Hold ``job`` longer. None: the lease ran out and someone else has the job."""
    held = sql.update(connection, jobs, {"leased_until": until}, _LEASED, job.id, job.leased_until)
    return replace(job, leased_until=until) if held.rowcount else None


def complete(connection: Connection, job: Job) -> bool:
    """The job is done. False: it was replaced meanwhile, and becomes free, or someone else has taken it, whose it stays."""
    done = f"DELETE FROM jobs WHERE {_LEASED} AND attempts = ?"
    if sql.execute(connection, done, job.id, job.leased_until, job.attempts).rowcount:
        return True
    release(connection, job)
    return False


def fail(connection: Connection, job: Job, error: str, *, retry_at: datetime) -> None:
    """The job failed and is due again at ``retry_at``, unless it was replaced meanwhile."""
    failed = {"leased_until": None, "due_at": retry_at, "error": error}
    same = f"{_LEASED} AND attempts = ?"
    if not sql.update(connection, jobs, failed, same, job.id, job.leased_until, job.attempts).rowcount:
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


def _marks(values: Collection[Any]) -> str:
    return ", ".join("?" * len(values))
