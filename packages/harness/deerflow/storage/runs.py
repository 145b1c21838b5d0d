"""Runs: one execution of an assistant on a thread, held by the database so that no two run at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from secrets import token_hex
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection

from deerflow.errors import ConflictError, NotFoundError
from deerflow.storage import sql
from deerflow.storage.budgets import add_usage, forget_turn, keys_of, release, spent
from deerflow.storage.database import Database
from deerflow.storage.tables import run_events, runs, steering, threads, tool_executions, turns, utc_now
from deerflow.storage.threads import LEAD_AGENT, ThreadStatus, set_status

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


THREAD_STATUS: dict[RunStatus, ThreadStatus] = {
    RunStatus.SUCCESS: "idle",
    RunStatus.INTERRUPTED: "interrupted",
    RunStatus.ERROR: "error",
    RunStatus.TIMEOUT: "error",
}

CANCELLED = "cancelled"
"""``stop_reason`` of runs that were asked to stop; of those that had not begun, from that moment on."""

EMPTY_THREAD = ""
"""``checkpoint_before`` of a run on a thread that had no checkpoint."""

TURNS = "turns"
"""Key in a run's ``kwargs``: ids of the person's messages that it begins with."""

_STALLED = "stalled"
"""Key in a run's ``kwargs``: the newest checkpoint of thread and subagents at its latest claim, and how many processes died over that one."""

_STOPPED_TASKS = "stopped_tasks"
"""Key in a run's ``kwargs``: the calls whose subagents were asked to stop."""

_AND_SUBAGENTS = "(thread_id = ? OR (thread_id > ? AND thread_id < ?))"
"""Checkpoints of a thread and of its subagents; those in the background have threads beside it, ``thread:namespace``."""

_ACTIVE = "status IN ('pending', 'running')"
_STATUS = f"CASE WHEN {_ACTIVE} AND stop_reason = '{CANCELLED}' THEN 'interrupted' ELSE status END"
_IS_DUE = "(due_at IS NULL OR due_at <= ?)"


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
    """The fencing token: whoever holds an older one has lost the run."""
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
    turn_id: str | None
    ends_turn: bool | None
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
    receipts: dict[str, Any] | None
    trace_id: str | None

    @property
    def turn(self) -> str:
        """The id of its turn: that of the run which began it."""
        return self.turn_id or self.run_id

    @property
    def agent(self) -> str | None:
        """The name of the custom agent that it is for."""
        return (self.kwargs.get("agent") or {}).get("name")

    @property
    def agent_id(self) -> str:
        """Which agent's budget it uses."""
        return self.assistant_id if self.assistant_id and self.agent else LEAD_AGENT

    def __post_init__(self) -> None:
        """Cancelled before it began, it has ended for everybody but its executor, which keeps its input first."""
        withdrawn = self.stop_reason == CANCELLED and not RunStatus(self.status).ended
        object.__setattr__(self, "status", RunStatus.INTERRUPTED if withdrawn else RunStatus(self.status))

    @property
    def ended(self) -> bool:
        return self.status.ended

    @property
    def closed(self) -> bool:
        """Ended, and nothing is left to do about it."""
        return self.ended_at is not None

    @property
    def stalled(self) -> int:
        """How many processes in a row ended without a new step of the thread."""
        return (self.kwargs.get(_STALLED) or (None, 0))[1]

    @property
    def stopped_tasks(self) -> Sequence[str]:
        """The calls whose subagents were asked to stop."""
        return self.kwargs.get(_STOPPED_TASKS) or ()

    def is_due(self, now: datetime) -> bool:
        return self.due_at is None or self.due_at <= now


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that was asked for. ``due_at``: not before then."""

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
    trace_id: str = field(default_factory=lambda: token_hex(16))


@dataclass(frozen=True, slots=True)
class Created:
    """``cancelled`` are runs of the thread that were asked to stop; ``run`` waits until they have.

    ``claimed`` is the same run as its executor has it, if it was claimed in the same transaction.
    """

    run: Run
    cancelled: list[Run]
    claimed: Run | None = None


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
    receipts: Any = None
    ends_turn: bool = False
    """The turn came to a good end: nothing is open, and nothing is asked of the person."""


class RunStore:
    """Rows of ``runs`` and what belongs to them. It does not know who asks: services check the owner."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewRun, *, worker: str | None = None) -> Created:
        """Insert a pending run; what it means for the thread's active runs follows from its strategy.

        Args:
            worker: claims the run in the same transaction, if it is its turn. Call it with the thread's lock held.

        Raises:
            ConflictError: the strategy is ``reject`` and the thread has an active run.
            NotFoundError: the thread does not exist.
        """
        return await self._database.write(create, new, worker, durable=True)

    async def find(self, run_id: str) -> Run | None:
        return await self._database.read(find, run_id)

    async def of_thread(
        self, thread_id: str, *, limit: int = 10, offset: int = 0, status: str | None = None
    ) -> list[Run]:
        """Newest first."""
        wanted, values = ("", ()) if status is None else (f"AND {_STATUS} = ?", (status,))
        tail = f"WHERE thread_id = ? {wanted} ORDER BY position DESC LIMIT ? OFFSET ?"
        return await self._database.browse(_select, tail, thread_id, *values, limit, offset)

    async def after(self, run: Run, *, limit: int) -> list[Run]:
        """The runs of its thread that came after it, oldest first."""
        tail = "WHERE thread_id = ? AND position > ? ORDER BY position LIMIT ?"
        return await self._database.browse(_select, tail, run.thread_id, run.position, limit)

    async def active(self, thread_id: str) -> list[Run]:
        """Those that are not closed, oldest first."""
        return await self._database.read(_active, thread_id)

    async def first_words(self, thread_ids: Collection[str]) -> dict[str, str]:
        """How the oldest run on its way in each of the threads begins."""
        marks = ", ".join("?" * len(thread_ids))
        query = f"""SELECT thread_id, first_human_message FROM runs WHERE thread_id IN ({marks}) AND {_ACTIVE}
            AND first_human_message IS NOT NULL ORDER BY position DESC"""
        return await self._database.read(
            lambda connection: {row[0]: row[1] for row in sql.execute(connection, query, *thread_ids).fetchall()}
        )

    async def unfinished(self) -> list[Run]:
        """Every pending or running run of every thread, oldest first: what a process that starts has to enqueue."""
        return await self._database.read(_select, f"WHERE {_ACTIVE} ORDER BY created_at")

    async def claim(self, run_id: str, worker: str) -> Run | None:
        """Make the run ours: running, with a new attempt and a new fencing token. Call it with the thread's lock held.

        None if there is nothing to do: it is closed, is not due, or an earlier run of its thread has not ended.
        """
        return await self._database.write(_claim, run_id, worker)

    async def began(
        self, run: Run, checkpoint_before: str, *, message_ids: Sequence[str] = (), from_checkpoint: str | None = None
    ) -> None:
        """Record the thread's newest checkpoint before the run's first step. Repeating it changes nothing.

        Args:
            message_ids: of the person's messages that the run begins with.
            from_checkpoint: where they go on from, if not from the newest.
        """

        def note(connection: Connection) -> None:
            ours = ("run_id = ? AND epoch = ?", run.run_id, run.epoch)
            sql.update(connection, runs, {"checkpoint_before": checkpoint_before}, *ours)
            for message_id in message_ids:
                _add_turn(connection, run, message_id, from_checkpoint or checkpoint_before)

        await self._database.write(note)

    async def request_cancel(self, run_id: str, action: CancelAction) -> Run | None:
        """Ask for the end of an active run. None if there is none, or it had ended.

        A pending one has ended with that; its executor closes it, unless it was not due yet and so had said nothing.
        """
        return await self._database.write(_request_cancel, run_id, action)

    async def request_task_stop(self, thread_id: str, task_id: str) -> Run | None:
        """Ask for the end of a subagent of the thread's run on its way. None if there is no such run."""
        return await self._database.write(_request_task_stop, thread_id, task_id)

    async def delete(self, run_id: str) -> None:
        """The run and everything that is kept about it; its messages stay in their thread."""
        await self._database.write(delete_run, run_id)

    # messages for a run on its way --------------------------------------------------------------------------------

    async def steer(self, run_id: str, message: Mapping[str, Any], *, of_person: bool = False) -> bool:
        """Leave a message for the run's next step. False if the run has ended, or was asked to stop.

        Args:
            of_person: it belongs to the turn, so that it can be edited or asked again.
        """
        return await self._database.write(_steer, run_id, dict(message), of_person, durable=True)

    async def that_took(self, thread_id: str, message_id: str) -> Run | None:
        """Return the run of the thread that a person's message was given to."""
        took = "WHERE run_id = (SELECT run_id FROM turns WHERE thread_id = ? AND message_id = ?)"
        return await self._database.read(
            lambda connection: sql.first(connection, Run, runs, took, thread_id, message_id)
        )

    async def waiting_messages(self, run_id: str) -> list[dict[str, Any]]:
        return await self._database.read(_messages, "run_id = ?", run_id)

    async def left_over(self, run: Run) -> list[dict[str, Any]]:
        """Messages for earlier runs of the thread, which have ended without taking them up."""
        return await self._database.read(_messages, _LEFT_OVER, run.thread_id, run.position)

    async def adopt(self, run: Run) -> None:
        """Make what is left over wait for this run."""
        where = (_LEFT_OVER, run.thread_id, run.position)
        await self._database.write(sql.update, steering, {"run_id": run.run_id}, *where)

    async def is_answered(self, run: Run) -> bool:
        """Return whether a run waits that resumes the thread: the person has answered what ``run`` asked."""
        later = await self.of_thread(run.thread_id, limit=5)
        return any(one.status is RunStatus.PENDING and one.kwargs["request"].get("command") for one in later)

    async def delivered(self, message_ids: Sequence[str]) -> None:
        await self._database.write(deliver, message_ids)


class RunLedger:
    """The idempotency ledger of one run; see :class:`deerflow.context.ToolLedger`."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database = database
        self._run_id = run_id

    async def begin(self, tool_call_id: str) -> bool:
        statement = "INSERT INTO tool_executions (run_id, call) VALUES (?, ?) ON CONFLICT DO NOTHING"
        return await self._database.write(sql.change, statement, *self._key(tool_call_id), durable=True) == 1

    async def forget(self, tool_call_id: str) -> None:
        statement = "DELETE FROM tool_executions WHERE run_id = ? AND call = ?"
        await self._database.write(sql.change, statement, *self._key(tool_call_id))

    def _key(self, tool_call_id: str) -> tuple[str, str]:
        # Short, whatever ids a provider thinks of: each call rewrites the page that its row stands on.
        return self._run_id, sql.short_key(tool_call_id)


# parts of transactions, which others compose into theirs -----------------------------------------------------------------


def find(connection: Connection, run_id: str) -> Run | None:
    return sql.first(connection, Run, runs, "WHERE run_id = ?", run_id)


def since(connection: Connection, run: Run) -> list[Run]:
    """The run, and those of its thread behind it."""
    return _select(connection, "WHERE thread_id = ? AND position >= ? ORDER BY position", run.thread_id, run.position)


def create(connection: Connection, new: NewRun, worker: str | None = None) -> Created:
    """See :meth:`RunStore.create`."""
    now = utc_now()
    fencing_token = _lock_thread(connection, new.thread_id)
    if fencing_token is None:
        raise NotFoundError(f"There is no thread {new.thread_id}.", reason="thread_gone")
    active = [run for run in _active(connection, new.thread_id) if run.is_due(now)]
    if new.strategy is MultitaskStrategy.REJECT and not all(run.ended for run in active):
        raise ConflictError(
            f"Thread {new.thread_id} already has an active run. Wait for its end or stop it, or choose another "
            "multitask_strategy: interrupt, rollback or enqueue.",
            code="thread_busy",
        )
    asked: list[Run | None] = []
    if new.strategy in (MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK):
        action: CancelAction = "rollback" if new.strategy is MultitaskStrategy.ROLLBACK else "interrupt"
        asked = [_request_cancel(connection, run.run_id, action) for run in active]
    cancelled = [run for run in asked if run is not None]
    before = sql.execute(connection, _NEWEST, new.thread_id).fetchone()
    row = {
        **{name: getattr(new, name) for name in NewRun.__slots__ if name != "strategy"},
        "multitask_strategy": new.strategy.value,
        "status": RunStatus.PENDING.value,
        "created_at": now,
        "updated_at": now,
        "position": before[0] + 1 if before else 1,
        **dict.fromkeys(("attempt", "epoch", "message_count", "input_tokens", "output_tokens", "llm_calls"), 0),
    }
    run = Run(**{**dict.fromkeys(Run.__slots__), **row})
    if worker is not None and run.due_at is None and not active:
        claimed = _claimed(connection, run, worker, fencing_token)
        sql.insert(connection, runs, row | _claim_values(claimed))
        return Created(run, cancelled, claimed)
    sql.insert(connection, runs, row)
    if new.due_at is None:
        _busy_thread(connection, new.thread_id, assistant_id=new.assistant_id)
    return Created(run, cancelled)


def finish(connection: Connection, run: Run, ending: Ending, *, waits: bool = False) -> bool:
    """End a run that we claimed, and with it its thread's being busy. ``waits``: the person has to decide or to answer.

    False, and nothing is changed, if the run is no longer ours, or a message for it came before it could end well. Messages
    that wait for a run which ended otherwise are left over for the next one.
    """
    _lock_thread(connection, run.thread_id)
    stands = sql.execute(connection, "SELECT epoch, status FROM runs WHERE run_id = ?", run.run_id).fetchone()
    if stands != (run.epoch, RunStatus.RUNNING):
        return False
    if ending.status is RunStatus.SUCCESS and _messages(connection, "run_id = ?", run.run_id):
        return False
    now = utc_now()
    values = {name: getattr(ending, name) for name in Ending.__slots__} | {"status": ending.status.value}
    sql.update(connection, runs, sql.storable(values) | {"ended_at": now, "updated_at": now}, "run_id = ?", run.run_id)
    sql.execute(connection, "DELETE FROM tool_executions WHERE run_id = ?", run.run_id)
    add_usage(connection, run.user_id, run.agent or LEAD_AGENT, ending.usage)
    keys = keys_of(run.run_id, run.turn, run.thread_id, run.user_id, run.agent_id)
    release(connection, keys, lambda currency: spent(ending.usage, currency), ends_turn=ending.ends_turn)
    _free_thread(connection, run.thread_id, ending.status, waits)
    return True


def turn_of(connection: Connection, run: Run) -> list[Run]:
    """The runs of its turn so far, oldest first: that which began it, resumes, and answers to the agent's questions."""
    tail = "WHERE thread_id = ? AND COALESCE(turn_id, run_id) = ? ORDER BY position"
    return _select(connection, tail, run.thread_id, run.turn)


def first_words(connection: Connection, thread_id: str, run_id: str | None = None) -> str | None:
    """How the person's message of a run begins; without ``run_id`` that of the thread's first one."""
    mine, values = ("AND run_id = ?", (run_id,)) if run_id is not None else ("", ())
    words = f"""SELECT first_human_message FROM runs WHERE thread_id = ? AND first_human_message IS NOT NULL {mine}
        ORDER BY position LIMIT 1"""
    found = sql.execute(connection, words, thread_id, *values).fetchone()
    return found[0] if found else None


def is_first_good_turn(connection: Connection, run: Run) -> bool:
    """Whether no turn of the thread has come to a good end before this run."""
    if run.position == 1:
        return True
    ended = f"SELECT 1 FROM runs WHERE thread_id = ? AND position < ? AND {_ENDS_TURN} LIMIT 1"
    return sql.execute(connection, ended, run.thread_id, run.position).fetchone() is None


def next_pending(connection: Connection, thread_id: str) -> str | None:
    """The id of the oldest run that waits for its turn, not for a time of its own."""
    query = (
        f"SELECT run_id FROM runs WHERE thread_id = ? AND status = 'pending' AND {_IS_DUE} ORDER BY position LIMIT 1"
    )
    found = sql.execute(connection, query, thread_id, utc_now()).fetchone()
    return found[0] if found else None


def deliver(connection: Connection, message_ids: Sequence[str]) -> None:
    """The messages are part of their thread: they wait no longer."""
    for message_id in message_ids:
        sql.execute(connection, "DELETE FROM steering WHERE message_id = ?", message_id)


def delete_run(connection: Connection, run_id: str) -> None:
    of_thread = "thread_id = (SELECT thread_id FROM runs WHERE run_id = ?)"
    sql.execute(connection, f"DELETE FROM turns WHERE {of_thread} AND run_id = ?", run_id, run_id)
    for table in (run_events, tool_executions, steering, runs):
        sql.execute(connection, f"DELETE FROM {table.name} WHERE run_id = ?", run_id)


_NEWEST = "SELECT position, status FROM runs WHERE thread_id = ? ORDER BY position DESC LIMIT 1"
_ENDS_TURN = f"COALESCE(ends_turn, status = '{RunStatus.SUCCESS}')"
"""Also for runs of before there were turns."""
_BEFORE = f"""SELECT status, {_ENDS_TURN}, COALESCE(turn_id, run_id) FROM runs
    WHERE thread_id = ? AND position < ? ORDER BY position DESC LIMIT 1"""
_LEFT_OVER = f"""EXISTS (SELECT 1 FROM runs WHERE runs.run_id = steering.run_id AND runs.thread_id = ?
    AND NOT {_ACTIVE} AND runs.position < ?)"""


def _select(connection: Connection, tail: str, *values: Any) -> list[Run]:
    return sql.select(connection, Run, runs, tail, *values)


def _active(connection: Connection, thread_id: str) -> list[Run]:
    return _select(connection, f"WHERE thread_id = ? AND {_ACTIVE} ORDER BY position", thread_id)


def _messages(connection: Connection, where: str, *values: Any) -> list[dict[str, Any]]:
    found = sql.execute(connection, f"SELECT message FROM steering WHERE {where} ORDER BY id", *values).fetchall()
    return [sql.loads(message) for (message,) in found]


def _lock_thread(connection: Connection, thread_id: str) -> int | None:
    """The thread's fencing token, while nobody else changes a run of it. Every change of a run begins so: the thread
    first, then the run, or two of them would wait for each other."""
    query = "SELECT epoch FROM threads WHERE thread_id = ?" + sql.for_update(connection)
    found = sql.execute(connection, query, thread_id).fetchone()
    return found[0] if found else None


def _locked(connection: Connection, run_id: str) -> tuple[Run | None, int | None]:
    run = find(connection, run_id)
    if run is None:
        return None, None
    fencing_token = _lock_thread(connection, run.thread_id)
    return find(connection, run_id), fencing_token


def _claim(connection: Connection, run_id: str, worker: str) -> Run | None:
    run, fencing_token = _locked(connection, run_id)
    now = utc_now()
    if run is None or fencing_token is None or run.closed or not run.is_due(now):
        return None
    if run.attempt == 0 and any(
        other.attempt > 0 or (other.position < run.position and other.is_due(now))
        for other in _active(connection, run.thread_id)
    ):
        return None
    claimed = _claimed(connection, run, worker, fencing_token)
    sql.update(connection, runs, _claim_values(claimed), "run_id = ?", run_id)
    return claimed


def _claim_values(claimed: Run) -> dict[str, Any]:
    names = ("attempt", "epoch", "worker", "started_at", "updated_at", "turn_id", "checkpoint_before", "kwargs")
    return {"status": RunStatus.RUNNING.value, **{name: getattr(claimed, name) for name in names}}


def _claimed(connection: Connection, run: Run, worker: str, fencing_token: int) -> Run:
    """The run as its executor has it, the thread marked as busy with it."""
    now = utc_now()
    claimed = replace(
        run,
        status=RunStatus.RUNNING,
        attempt=run.attempt + 1,
        epoch=fencing_token + 1,
        worker=worker,
        started_at=run.started_at or now,
        updated_at=now,
        **_begin(connection, run) if run.attempt == 0 else {"kwargs": run.kwargs | _progress(connection, run, worker)},
    )
    _busy_thread(connection, run.thread_id, epoch=claimed.epoch, assistant_id=run.assistant_id)
    return claimed


def _progress(connection: Connection, run: Run, worker: str) -> dict[str, Any]:
    """A process that tries again, since there was no room on the disk for example, has not died: that does not count."""
    head = _newest(connection, _AND_SUBAGENTS, run.thread_id, f"{run.thread_id}:", f"{run.thread_id};")
    found, claims = run.kwargs.get(_STALLED) or (None, 0)
    before = claims if head == found else 0
    return {_STALLED: [head, before + (run.worker != worker)]}


def _begin(connection: Connection, run: Run) -> dict[str, Any]:
    """The turn of a run that begins, and what :meth:`RunStore.began` records where the thread needs no tidying first; else the
    executor has to look."""
    message_ids = run.kwargs.get(TURNS)
    before = sql.execute(connection, _BEFORE, run.thread_id, run.position).fetchone()
    status, is_over, turn_id = before or (None, True, run.run_id)
    if is_over or not _goes_on(run, asks=status == RunStatus.SUCCESS):
        if not is_over:
            forget_turn(connection, turn_id)
        turn_id = run.run_id
    begun: dict[str, Any] = {"turn_id": turn_id, "checkpoint_before": None}
    if message_ids is None:
        return begun
    head = _head(connection, run.thread_id)
    tidy = status == RunStatus.SUCCESS if before else head == EMPTY_THREAD and run.position == 1
    if not tidy:
        return begun
    for message_id in message_ids:
        _add_turn(connection, run, message_id, run.kwargs.get("fork_from") or head)
    return begun | {"checkpoint_before": head}


def _goes_on(run: Run, *, asks: bool) -> bool:
    """Whether a run goes on with the open turn before it: it brings no message of the person, or one that answers the question
    which the turn ``asks``. A run from a checkpoint begins a turn on a branch of its own."""
    return run.kwargs.get("fork_from") is None and (asks or not run.kwargs.get(TURNS))


def _head(connection: Connection, thread_id: str) -> str:
    """The thread's newest checkpoint."""
    return _newest(connection, "thread_id = ? AND checkpoint_ns = ''", thread_id)


def _newest(connection: Connection, where: str, *values: str) -> str:
    if connection.dialect.name == "sqlite":
        tables = "checkpoint_lines JOIN checkpoint_steps USING (line)"
    elif sql.execute(connection, "SELECT to_regclass('checkpoints')").fetchone()[0]:
        tables = "checkpoints"
    else:  # LangGraph makes it when the first is saved
        return EMPTY_THREAD
    query = f"SELECT checkpoint_id FROM {tables} WHERE {where} ORDER BY checkpoint_id DESC LIMIT 1"
    newest = sql.execute(connection, query, *values).fetchone()
    stored = newest[0] if newest else EMPTY_THREAD
    return str(UUID(bytes=stored)) if isinstance(stored, bytes) else stored


def _request_cancel(connection: Connection, run_id: str, action: CancelAction) -> Run | None:
    run, _ = _locked(connection, run_id)
    if run is None or run.ended:
        return None
    now = utc_now()
    changes: dict[str, Any] = {"cancel_action": action, "updated_at": now}
    if run.attempt == 0:
        changes["stop_reason"] = CANCELLED
    if not run.is_due(now):
        changes |= {"status": RunStatus.INTERRUPTED.value, "ended_at": now}
    sql.update(connection, runs, changes, "run_id = ?", run_id)
    return replace(run, **changes)


def _request_task_stop(connection: Connection, thread_id: str, task_id: str) -> Run | None:
    _lock_thread(connection, thread_id)
    for run in _active(connection, thread_id):
        if run.attempt > 0:
            kwargs = run.kwargs | {_STOPPED_TASKS: [*{*run.stopped_tasks, task_id}]}
            sql.update(connection, runs, {"kwargs": kwargs, "updated_at": utc_now()}, "run_id = ?", run.run_id)
            return replace(run, kwargs=kwargs)
    return None


def _steer(connection: Connection, run_id: str, message: dict[str, Any], of_person: bool) -> bool:
    run, _ = _locked(connection, run_id)
    if run is None or run.ended or run.cancel_action is not None:
        return False
    if of_person:
        _add_turn(connection, run, message["id"], None)
    row = {"run_id": run_id, "message_id": message["id"], "message": message}
    sql.insert(connection, steering, row, "ON CONFLICT DO NOTHING")
    return True


def _add_turn(connection: Connection, run: Run, message_id: str, checkpoint_before: str | None) -> None:
    row = {
        "thread_id": run.thread_id,
        "message_id": message_id,
        "run_id": run.run_id,
        "checkpoint_before": checkpoint_before,
        "created_at": utc_now(),
    }
    sql.insert(connection, turns, row, "ON CONFLICT DO NOTHING")


def _free_thread(connection: Connection, thread_id: str, status: RunStatus, waits: bool) -> None:
    """The thread is as its last run left it, or still busy if another one waits."""
    waiting = (
        f"SELECT 1 FROM runs WHERE thread_id = ? AND (status = 'running' OR status = 'pending' AND {_IS_DUE}) LIMIT 1"
    )
    busy = sql.execute(connection, waiting, thread_id, utc_now()).fetchone() is not None
    if busy:
        _busy_thread(connection, thread_id)
    else:
        set_status(connection, thread_id, THREAD_STATUS[status], waits=waits)


def _busy_thread(connection: Connection, thread_id: str, **values: Any) -> None:
    busy = {"updated_at": utc_now(), "status": "busy", "waits_since": None, **values}
    sql.update(connection, threads, busy, "thread_id = ?", thread_id)
