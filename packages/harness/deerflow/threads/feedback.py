"""Feedback of people on runs and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection

from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.moment import Moment
from deerflow.storage.tables import feedback, runs, utc_now
from deerflow.storage.visibility import changeable, readable, values_of


@dataclass(frozen=True, slots=True)
class Feedback:
    feedback_id: str
    run_id: str
    thread_id: str
    user_id: str
    message_id: str | None
    rating: int
    """1 or -1."""
    comment: str | None
    created_at: Moment


_READABLE = f"WHERE run_id = ? AND {readable(feedback)}"
_CHANGEABLE = f"run_id = ? AND {changeable(feedback)}"
_RUN = f"SELECT 1 FROM runs WHERE run_id = ? AND {readable(runs)}"


@dataclass(frozen=True)
class FeedbackRepository:
    """Every method sees the runs of ``principal`` alone; others raise NotFoundError, like those that do not exist."""

    database: Database

    async def put(
        self,
        principal: Principal,
        thread_id: str,
        run_id: str,
        *,
        rating: int,
        comment: str | None = None,
        message_id: str | None = None,
    ) -> Feedback:
        """Give feedback on a run, or change what was given. Without ``message_id`` the former one stays."""
        new = {"rating": rating, "comment": comment} | ({"message_id": message_id} if message_id else {})

        def job(connection: Connection) -> Feedback:
            _check_run(connection, principal, run_id, thread_id, lock=True)
            if not sql.update(connection, feedback, new, _CHANGEABLE, run_id, *values_of(principal)):
                ids = {"thread_id": thread_id, "run_id": run_id, "user_id": principal.user_id}
                first = {"feedback_id": str(uuid4()), "created_at": utc_now()}
                sql.insert(connection, feedback, {**first, **ids, **new})
            return _of_run(connection, principal, run_id)[0]

        return await self.database.write(job)

    async def list(self, principal: Principal, run_id: str, *, thread_id: str | None = None) -> list[Feedback]:
        def job(connection: Connection) -> list[Feedback]:
            _check_run(connection, principal, run_id, thread_id)
            return _of_run(connection, principal, run_id)

        return await self.database.browse(job)

    async def of_thread(self, principal: Principal, thread_id: str) -> Mapping[str, Feedback]:
        """All feedback on runs of a thread, by run id. Empty for a thread of someone else."""
        mine = (f"WHERE thread_id = ? AND {readable(feedback)}", thread_id, *values_of(principal))
        found = await self.database.browse(lambda connection: sql.select(connection, Feedback, feedback, *mine))
        return {given.run_id: given for given in found}

    async def delete(
        self, principal: Principal, thread_id: str, run_id: str, *, feedback_id: str | None = None
    ) -> None:
        """Withdraw feedback. Raises NotFoundError if there is none (of that id)."""
        wanted, values = _CHANGEABLE, [run_id, *values_of(principal)]
        if feedback_id is not None:
            wanted, values = f"{wanted} AND feedback_id = ?", [*values, feedback_id]

        def job(connection: Connection) -> None:
            _check_run(connection, principal, run_id, thread_id)
            if not sql.execute(connection, f"DELETE FROM feedback WHERE {wanted}", *values).rowcount:
                raise NotFoundError("No feedback found for this run.")

        await self.database.write(job)


def _check_run(
    connection: Connection, principal: Principal, run_id: str, thread_id: str | None, *, lock: bool = False
) -> None:
    mine, values = _RUN, [run_id, *values_of(principal)]
    if thread_id is not None:
        mine, values = f"{mine} AND thread_id = ?", [*values, thread_id]
    # Locked, two clicks at once are an insert and an update instead of two inserts.
    locked = sql.for_update(connection) if lock else ""
    if sql.execute(connection, mine + locked, *values).fetchone() is None:
        raise NotFoundError(f"Run {run_id} not found.")


def _of_run(connection: Connection, principal: Principal, run_id: str) -> list[Feedback]:
    return sql.select(connection, Feedback, feedback, _READABLE, run_id, *values_of(principal))
