"""Runs: one execution of an assistant on a thread, held by the database so that no two run at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, func, insert, or_, select, update

from deerflow.errors import ConflictError, NotFoundError
from deerflow.storage.database import Database
from deerflow.storage.storable import storable
from deerflow.storage.tables import run_events, runs, steering, threads, tool_executions, turns, utc_now

CancelAction = Literal["interrupt", "rollback"]


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"

    @property
    def ended(self) -> bool:
        return self not in (RunStatus.PENDING, RunStatus.RUNNING)


class MultitaskStrategy(StrEnum):
    """What becomes of a run that is on its way when another one comes for its thread."""

    REJECT = "reject"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"
    ENQUEUE = "enqueue"


ACTIVE = (RunStatus.PENDING, RunStatus.RUNNING)

THREAD_STATUS = {
    RunStatus.SUCCESS: "idle",
    RunStatus.INTERRUPTED: "interrupted",
    RunStatus.ERROR: "error",
    RunStatus.TIMEOUT: "error",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A row of ``runs``. See there for what the columns mean."""

    run_id: str
    thread_id: str
    user_id: str
    assistant_id: str | None
    status: RunStatus
    attempt: int
    epoch: int
    worker: str | None
    multitask_strategy: str
    kwargs: dict[str, Any]
    metadata: dict[str, Any]
    model_name: str | None
    cancel_action: CancelAction | None
    error: str | None
    stop_reason: str | None
    due_at: datetime | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    position: int
    checkpoint_before: str | None
    checkpoint_after: str | None
    first_human_message: str | None
    last_ai_message: str | None
    message_count: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    llm_calls: int
    usage: dict[str, Any] | None

    @property
    def ended(self) -> bool:
        return self.status.ended


@dataclass(frozen=True, slots=True)
class NewRun:
    """What is asked for. ``due_at``: not before then."""

    run_id: str
    thread_id: str
    user_id: str
    assistant_id: str
    kwargs: dict[str, Any]
    metadata: dict[str, Any]
    strategy: MultitaskStrategy
    model_name: str | None = None
    due_at: datetime | None = None
    first_human_message: str | None = None


@dataclass(frozen=True, slots=True)
class Created:
    run: Run
    cancelled: list[str]
    """Runs of the thread that were told to stop; the new one waits until they have."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, and what it used."""

    status: RunStatus
    error: str | None = None
    stop_reason: str | None = None
    checkpoint_after: str | None = None
    last_ai_message: str | None = None
    message_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    llm_calls: int = 0
    usage: dict[str, Any] | None = None


class RunStore:
    """Rows of ``runs`` and what hangs on them. Knows nothing of who asks: services check the owner."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewRun) -> Created:
        """Insert a pending run; what it means for the thread's active runs follows from its strategy.

        Raises:
            ConflictError: the strategy is ``reject`` and the thread has an active run.
            NotFoundError: the thread does not exist.
        """
        return await self._database.write(lambda connection: _create(connection, new))

    async def find(self, run_id: str) -> Run | None:
        return await self._database.read(lambda connection: find(connection, run_id))

    async def of_thread(
        self, thread_id: str, *, limit: int = 10, offset: int = 0, status: str | None = None
    ) -> list[Run]:
        """Newest first."""
        query = select(runs).where(runs.c.thread_id == thread_id)
        if status is not None:
            query = query.where(runs.c.status == status)
        query = query.order_by(runs.c.position.desc()).limit(limit).offset(offset)
        return await self._database.read(lambda connection: [_run(row) for row in connection.execute(query)])

    async def active(self, thread_id: str) -> list[Run]:
        """Pending and running ones, oldest first."""
        return await self._database.read(lambda connection: _active(connection, thread_id))

    async def first_words(self, thread_ids: Collection[str]) -> dict[str, str]:
        """How the oldest run on its way in each of the threads begins."""
        query = (
            select(runs.c.thread_id, runs.c.first_human_message)
            .where(runs.c.thread_id.in_(thread_ids), runs.c.status.in_(ACTIVE), runs.c.first_human_message.is_not(None))
            .order_by(runs.c.position.desc())
        )
        return await self._database.read(lambda connection: {row[0]: row[1] for row in connection.execute(query)})

    async def unfinished(self) -> list[Run]:
        """Every pending or running run of every thread, oldest first: what a process that starts has to ring for."""
        query = select(runs).where(runs.c.status.in_(ACTIVE)).order_by(runs.c.created_at)
        return await self._database.read(lambda connection: [_run(row) for row in connection.execute(query)])

    async def claim(self, run_id: str, worker: str) -> Run | None:
        """Make the run ours: running, with a new attempt and a new epoch of its thread. Call it with the thread's lock held.

        None if there is nothing to do: it has ended, is not due, or an earlier run of its thread has not ended.
        """
        return await self._database.write(lambda connection: _claim(connection, run_id, worker))

    async def began(
        self, run: Run, checkpoint_before: str | None, *, says: Sequence[str] = (), from_checkpoint: str | None = None
    ) -> None:
        """Record the thread's newest checkpoint before the run's first step. Repeating it changes nothing.

        Args:
            says: ids of the person's messages that the run begins with.
            from_checkpoint: where they go on from, if not from the newest.
        """
        ours = update(runs).where(runs.c.run_id == run.run_id, runs.c.epoch == run.epoch)

        def note(connection: Connection) -> None:
            connection.execute(ours.values(checkpoint_before=checkpoint_before))
            for message_id in says:
                _add_turn(connection, run, message_id, from_checkpoint or checkpoint_before)

        await self._database.write(note)

    async def request_cancel(self, run_id: str, action: CancelAction) -> Run | None:
        """Ask for the end of an active run. A pending one has ended with that. None if there is none, or it had ended."""
        return await self._database.write(lambda connection: _request_cancel(connection, run_id, action))

    async def next_pending(self, thread_id: str) -> Run | None:
        """The oldest run that waits for its turn, not for a time of its own."""
        query = (
            select(runs)
            .where(runs.c.thread_id == thread_id, runs.c.status == RunStatus.PENDING, _is_due(utc_now()))
            .order_by(runs.c.position)
            .limit(1)
        )
        return await self._database.read(
            lambda connection: _run(row) if (row := connection.execute(query).first()) else None
        )

    async def delete(self, run_id: str) -> None:
        """The run and everything that is kept about it; what it said stays in its thread."""
        await self._database.write(lambda connection: delete_run(connection, run_id))

    # messages for a run on its way --------------------------------------------------------------------------------

    async def steer(self, run_id: str, message: Mapping[str, Any]) -> bool:
        """Leave a message for the run's next step. False if the run has ended, or is to be stopped."""
        return await self._database.write(lambda connection: _steer(connection, run_id, dict(message)))

    async def waiting_messages(self, run_id: str) -> list[dict[str, Any]]:
        query = select(steering.c.message).where(steering.c.run_id == run_id).order_by(steering.c.id)
        return await self._database.read(lambda connection: list(connection.execute(query).scalars()))

    async def left_over(self, run: Run) -> list[dict[str, Any]]:
        """Messages for earlier runs of the thread, which have ended without taking them up."""
        query = select(steering.c.message).where(_is_left_over(run)).order_by(steering.c.id)
        return await self._database.read(lambda connection: list(connection.execute(query).scalars()))

    async def adopt(self, run: Run) -> None:
        """Make what is left over wait for this run."""
        statement = update(steering).where(_is_left_over(run)).values(run_id=run.run_id)
        await self._database.write(lambda connection: connection.execute(statement) and None)

    async def delivered(self, message_ids: Sequence[str]) -> None:
        statement = delete(steering).where(steering.c.message_id.in_(message_ids))
        await self._database.write(lambda connection: connection.execute(statement) and None)

    async def add_turn(self, run: Run, message_id: str, checkpoint_before: str | None) -> None:
        """Record that the run took a person's message. Repeating it changes nothing."""
        await self._database.write(lambda connection: _add_turn(connection, run, message_id, checkpoint_before))


# jobs, which others compose into their transactions ---------------------------------------------------------------------


def find(connection: Connection, run_id: str) -> Run | None:
    row = connection.execute(select(runs).where(runs.c.run_id == run_id)).first()
    return _run(row) if row else None


def finish(connection: Connection, run: Run, ending: Ending) -> bool:
    """End a run that we claimed, and with it its thread's being busy.

    False, and nothing is changed, if the run is no longer ours, or a message for it came before it could end well. Messages
    that wait for a run which ended otherwise are left over for the next one.
    """
    found, _ = _locked(connection, run.run_id)
    if found is None or found.epoch != run.epoch or found.status is not RunStatus.RUNNING:
        return False
    if ending.status is RunStatus.SUCCESS:
        waiting = select(steering.c.id).where(steering.c.run_id == run.run_id).limit(1)
        if connection.execute(waiting).first():
            return False
    now = utc_now()
    values = storable({**dataclasses.asdict(ending), "status": ending.status.value})
    ours = runs.c.run_id == run.run_id
    connection.execute(update(runs).where(ours).values(**values, ended_at=now, updated_at=now))
    connection.execute(delete(tool_executions).where(tool_executions.c.run_id == run.run_id))
    _settle_thread(connection, run.thread_id, ending.status)
    return True


def delete_run(connection: Connection, run_id: str) -> None:
    for table in (run_events, tool_executions, steering, turns, runs):
        connection.execute(delete(table).where(table.c.run_id == run_id))


def _create(connection: Connection, new: NewRun) -> Created:
    thread = connection.execute(
        select(threads.c.thread_id).where(threads.c.thread_id == new.thread_id).with_for_update()
    ).first()
    if thread is None:
        raise NotFoundError(f"There is no thread {new.thread_id}.")
    now = utc_now()
    active = [run for run in _active(connection, new.thread_id) if run.due_at is None or run.due_at <= now]
    cancelled: list[str] = []
    if active and new.strategy is MultitaskStrategy.REJECT:
        raise ConflictError(
            f"Thread {new.thread_id} already has an active run. Wait for its end or stop it, or choose another "
            "multitask_strategy: interrupt, rollback or enqueue.",
            code="thread_busy",
        )
    if new.strategy in (MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK):
        action: CancelAction = "rollback" if new.strategy is MultitaskStrategy.ROLLBACK else "interrupt"
        cancelled = [run.run_id for run in active if _request_cancel(connection, run.run_id, action)]
    last = connection.execute(select(func.max(runs.c.position)).where(runs.c.thread_id == new.thread_id)).scalar()
    connection.execute(
        insert(runs).values(
            run_id=new.run_id,
            thread_id=new.thread_id,
            user_id=new.user_id,
            assistant_id=new.assistant_id,
            status=RunStatus.PENDING.value,
            multitask_strategy=new.strategy.value,
            kwargs=new.kwargs,
            metadata=new.metadata,
            model_name=new.model_name,
            due_at=new.due_at,
            first_human_message=new.first_human_message,
            created_at=now,
            updated_at=now,
            position=(last or 0) + 1,
        )
    )
    if new.due_at is None:
        _touch_thread(connection, new.thread_id, status="busy")
    made = find(connection, new.run_id)
    assert made is not None
    return Created(made, cancelled)


def _locked(connection: Connection, run_id: str) -> tuple[Run | None, int | None]:
    """The run while nobody else changes a run of its thread, and the thread's epoch. Every change of a run begins so: the
    thread first, then the run, or two of them would wait for each other."""
    run = find(connection, run_id)
    if run is None:
        return None, None
    thread = select(threads.c.epoch).where(threads.c.thread_id == run.thread_id).with_for_update()
    epoch = connection.execute(thread).scalar()
    return find(connection, run_id), epoch


def _claim(connection: Connection, run_id: str, worker: str) -> Run | None:
    run, epoch = _locked(connection, run_id)
    now = utc_now()
    if run is None or epoch is None or run.ended or (run.due_at is not None and run.due_at > now):
        return None
    if _is_behind(connection, run, now):
        return None
    connection.execute(
        update(runs)
        .where(runs.c.run_id == run_id)
        .values(
            status=RunStatus.RUNNING.value,
            attempt=run.attempt + 1,
            epoch=epoch + 1,
            worker=worker,
            started_at=run.started_at or now,
            updated_at=now,
        )
    )
    _touch_thread(connection, run.thread_id, status="busy", epoch=epoch + 1, assistant_id=run.assistant_id)
    return find(connection, run_id)


def _is_behind(connection: Connection, run: Run, now: datetime) -> bool:
    """Whether another run of the thread comes first: one that runs, or one that is due and came earlier."""
    first = select(runs.c.run_id).where(
        runs.c.thread_id == run.thread_id,
        runs.c.run_id != run.run_id,
        or_(
            runs.c.status == RunStatus.RUNNING,
            (runs.c.status == RunStatus.PENDING) & (runs.c.position < run.position) & _is_due(now),
        ),
    )
    return run.status is RunStatus.PENDING and connection.execute(first.limit(1)).first() is not None


def _request_cancel(connection: Connection, run_id: str, action: CancelAction) -> Run | None:
    run, _ = _locked(connection, run_id)
    if run is None or run.ended:
        return None
    now = utc_now()
    values: dict[str, Any] = {"cancel_action": action, "updated_at": now}
    never_began = run.status is RunStatus.PENDING
    if never_began:
        values |= {"status": RunStatus.INTERRUPTED.value, "ended_at": now, "stop_reason": "cancelled"}
    connection.execute(update(runs).where(runs.c.run_id == run_id).values(values))
    if never_began and (run.due_at is None or run.due_at <= now):
        _settle_thread(connection, run.thread_id, RunStatus.INTERRUPTED)
    return find(connection, run_id)


def _steer(connection: Connection, run_id: str, message: dict[str, Any]) -> bool:
    run, _ = _locked(connection, run_id)
    if run is None or run.ended or run.cancel_action is not None:
        return False
    said = select(steering.c.id).where(steering.c.message_id == message["id"])
    if connection.execute(said).first() is None:
        connection.execute(insert(steering).values(run_id=run_id, message_id=message["id"], message=message))
    return True


def _is_left_over(run: Run) -> ColumnElement[bool]:
    of_run = (runs.c.run_id == steering.c.run_id, runs.c.thread_id == run.thread_id)
    return exists().where(*of_run, runs.c.status.not_in(ACTIVE), runs.c.position < run.position)


def _add_turn(connection: Connection, run: Run, message_id: str, checkpoint_before: str | None) -> None:
    key = (turns.c.thread_id == run.thread_id, turns.c.message_id == message_id)
    if connection.execute(select(turns.c.run_id).where(*key)).first():
        return
    connection.execute(
        insert(turns).values(
            thread_id=run.thread_id,
            message_id=message_id,
            run_id=run.run_id,
            checkpoint_before=checkpoint_before,
            created_at=utc_now(),
        )
    )


def _active(connection: Connection, thread_id: str) -> list[Run]:
    query = select(runs).where(runs.c.thread_id == thread_id, runs.c.status.in_(ACTIVE)).order_by(runs.c.position)
    return [_run(row) for row in connection.execute(query)]


def _settle_thread(connection: Connection, thread_id: str, status: RunStatus) -> None:
    """The thread is as its last run left it, or still busy if another one waits."""
    waiting = select(runs.c.run_id).where(
        runs.c.thread_id == thread_id,
        or_(runs.c.status == RunStatus.RUNNING, (runs.c.status == RunStatus.PENDING) & _is_due(utc_now())),
    )
    busy = connection.execute(waiting.limit(1)).first() is not None
    _touch_thread(connection, thread_id, status="busy" if busy else THREAD_STATUS[status])


def _touch_thread(connection: Connection, thread_id: str, **values: Any) -> None:
    connection.execute(update(threads).where(threads.c.thread_id == thread_id).values(updated_at=utc_now(), **values))


def _is_due(now: datetime) -> ColumnElement[bool]:
    return or_(runs.c.due_at.is_(None), runs.c.due_at <= now)


def _run(row: Row[Any]) -> Run:
    fields = dict(row._mapping)
    return Run(**{**fields, "status": RunStatus(fields["status"])})
