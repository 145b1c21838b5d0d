"""What people think of answers: a thumb up or down for a run, with a comment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, select, update

from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import feedback, runs, utc_now


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
    created_at: datetime


class FeedbackRepository:
    """Every method sees the runs of ``principal`` alone; others raise NotFoundError, like those that do not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

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

        def job(connection: Connection) -> Feedback:
            _check_run(connection, principal, run_id, thread_id, lock=True)
            mine = _mine(principal, run_id)
            new = {"rating": rating, "comment": comment} | ({"message_id": message_id} if message_id else {})
            if not connection.execute(update(feedback).where(mine).values(**new)).rowcount:
                ids = {"run_id": run_id, "thread_id": thread_id, "user_id": principal.user_id}
                row = {"feedback_id": str(uuid4()), "created_at": utc_now(), **ids, **new}
                connection.execute(insert(feedback).values(**row))
            return _feedback(connection.execute(select(feedback).where(mine)).one())

        return await self._database.write(job)

    async def list(self, principal: Principal, run_id: str, *, thread_id: str | None = None) -> list[Feedback]:
        def job(connection: Connection) -> list[Feedback]:
            _check_run(connection, principal, run_id, thread_id)
            return [_feedback(row) for row in connection.execute(select(feedback).where(_mine(principal, run_id)))]

        return await self._database.browse(job)

    async def of_thread(self, principal: Principal, thread_id: str) -> Mapping[str, Feedback]:
        """All feedback on runs of a thread, by run id. Empty for a thread of someone else."""
        mine = and_(feedback.c.thread_id == thread_id, feedback.c.user_id == principal.user_id)

        def job(connection: Connection) -> Mapping[str, Feedback]:
            return {row.run_id: _feedback(row) for row in connection.execute(select(feedback).where(mine))}

        return await self._database.browse(job)

    async def delete(
        self, principal: Principal, thread_id: str, run_id: str, *, feedback_id: str | None = None
    ) -> None:
        """Withdraw feedback. Raises NotFoundError if there is none (of that id)."""

        def job(connection: Connection) -> None:
            _check_run(connection, principal, run_id, thread_id)
            wanted = _mine(principal, run_id)
            if feedback_id is not None:
                wanted = and_(wanted, feedback.c.feedback_id == feedback_id)
            if not connection.execute(delete(feedback).where(wanted)).rowcount:
                raise NotFoundError("No feedback found for this run.")

        await self._database.write(job)


def _check_run(
    connection: Connection, principal: Principal, run_id: str, thread_id: str | None, *, lock: bool = False
) -> None:
    mine = select(runs.c.run_id).where(runs.c.run_id == run_id, runs.c.user_id == principal.user_id)
    if thread_id is not None:
        mine = mine.where(runs.c.thread_id == thread_id)
    # Locked, two clicks at once are an insert and an update instead of two inserts.
    if connection.execute(mine.with_for_update() if lock else mine).one_or_none() is None:
        raise NotFoundError(f"Run {run_id} not found.")


def _mine(principal: Principal, run_id: str) -> ColumnElement[bool]:
    return and_(feedback.c.run_id == run_id, feedback.c.user_id == principal.user_id)


def _feedback(row: Row[tuple[object, ...]]) -> Feedback:
    return Feedback(**row._asdict())
