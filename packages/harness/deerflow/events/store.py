"""Events of runs and their durable form: rows of several events each, compressed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import zstandard
from sqlalchemy import Connection, delete, func, select

from deerflow.events.jsonable import encode
from deerflow.storage import sql
from deerflow.storage.tables import run_events

EVENTS_PER_CLAIM = 100_000_000
"""Positions that the log of a thread has for each claim; ``seq // EVENTS_PER_CLAIM`` is the claim's fencing token."""
ROW_BYTES = 65_536
PAGE_ROWS = 8


class RunEvent:
    """Something that happened in a run. Immutable once it has its position; its data is encoded once, for the log and all its readers.

    Args:
        seq: position in the thread's log; strictly grows, with gaps.
        run_id: the run.
        method: metadata, messages, updates, values, custom, tasks, checkpoints, debug, events, input, error or end.
        data: anything; see :func:`encode` for what becomes of what JSON does not know.
        namespace: of the subgraph; () is the root.
        at: when, in milliseconds since 1970; 0: not known. Of the chunks of a message the first one has a time.
    """

    __slots__ = ("at", "json", "method", "namespace", "run_id", "seq")

    json: bytes
    """The data, as one line of UTF-8 JSON."""

    def __init__(
        self, seq: int, run_id: str, method: str, data: Any, namespace: tuple[str, ...] = (), at: int = 0
    ) -> None:
        self.at = at
        self.seq = seq
        self.run_id = run_id
        self.method = method
        self.namespace = namespace
        self.json = b"null" if data is None else encode(data)

    @classmethod
    def encoded(
        cls, seq: int, run_id: str, method: str, json: bytes, namespace: tuple[str, ...] = (), at: int = 0
    ) -> RunEvent:
        """An event whose data is JSON already."""
        event = cls(seq, run_id, method, None, namespace, at)
        event.json = json
        return event

    @property
    def data(self) -> Any:
        """Decoded at each call, so that a reader may change it."""
        return orjson.loads(self.json)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunEvent) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.run_id, self.seq))

    def __repr__(self) -> str:
        return f"RunEvent{self._fields()}"

    def _fields(self) -> tuple[Any, ...]:
        return self.seq, self.run_id, self.method, self.namespace, self.json


class LostRunError(Exception):
    """Another process has claimed the thread (or it was deleted): whoever executes the run must stop."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a writer wants to have written."""

    thread_id: str
    fencing_token: int
    rows: list[dict[str, object]]
    last_seq: int
    replaces_after: int | None = None
    """Rows of the thread that begin after this position go: ``rows`` hold the same events, and more."""


def encode_rows(thread_id: str, events: Sequence[RunEvent]) -> list[dict[str, object]]:
    """Rows of ``run_events``, each of at most 64 KiB of events or of one that is larger.

    A row is zstd over two lines of JSON per event: what it is, and its data.
    """
    rows: list[dict[str, object]] = []
    lines: list[bytes] = []
    size, first = 0, 0
    for index, event in enumerate(events):
        head: dict[str, object] = {"seq": event.seq, "run_id": event.run_id, "method": event.method}
        if event.namespace:
            head["namespace"] = event.namespace
        if event.at:
            head["at"] = event.at
        lines += (orjson.dumps(head), event.json)
        size += len(event.json)
        if index + 1 == len(events) or size + len(events[index + 1].json) > ROW_BYTES:
            rows.append(
                {
                    "thread_id": thread_id,
                    "first_seq": events[first].seq,
                    "last_seq": event.seq,
                    "run_id": event.run_id,
                    "ends": event.method == "end",
                    "data": zstandard.ZstdCompressor(level=3).compress(b"\n".join(lines)),
                }
            )
            lines, size, first = [], 0, index + 1
    return rows


def decode_row(data: bytes) -> list[RunEvent]:
    lines = zstandard.ZstdDecompressor().decompress(data).split(b"\n")
    events = []
    for head, json in zip(lines[::2], lines[1::2], strict=True):
        known = orjson.loads(head)
        namespace = tuple(known.get("namespace", ()))
        events.append(
            RunEvent.encoded(known["seq"], known["run_id"], known["method"], json, namespace, known.get("at", 0))
        )
    return events


# jobs ---------------------------------------------------------------------------------------------------------------


def write_batches(
    connection: Connection, batches: Sequence[Batch], *, skip_locked: bool = False
) -> tuple[set[str], set[str]]:
    """Write the batches of several threads, as far as the threads are still their writers'.

    Args:
        skip_locked: leave out threads whose row somebody else has locked, rather than wait.

    Returns:
        The threads that another claim has taken (or that were deleted), and those that were left out.
    """
    wanted = {batch.thread_id: batch.fencing_token for batch in batches}

    def tokens(thread_ids: Collection[str], tail: str = "") -> dict[str, int]:
        marks = ", ".join("?" * len(thread_ids))
        query = f"SELECT thread_id, epoch FROM threads WHERE thread_id IN ({marks}){tail}"
        return dict(sql.execute(connection, query, *thread_ids).fetchall())

    # The lock keeps the threads from being claimed before this transaction ends.
    lock = sql.for_update(connection, "NO KEY UPDATE SKIP LOCKED" if skip_locked else "NO KEY UPDATE")
    free = tokens(wanted, lock) if wanted else {}
    rest = wanted.keys() - free.keys()
    locked = tokens(rest) if rest and skip_locked else {}
    lost = {thread_id for thread_id, token in wanted.items() if (free | locked).get(thread_id) != token}
    ours = [batch for batch in batches if batch.thread_id in free and batch.thread_id not in lost]
    for batch in ours:
        if batch.replaces_after is not None:
            same = "thread_id = ? AND first_seq > ?"
            sql.execute(connection, f"DELETE FROM run_events WHERE {same}", batch.thread_id, batch.replaces_after)
        for row in batch.rows:
            sql.insert(connection, run_events, row, _AGAIN)
    return lost, locked.keys() - lost


_AGAIN = """ON CONFLICT (thread_id, first_seq) DO UPDATE
    SET last_seq = excluded.last_seq, ends = excluded.ends, data = excluded.data"""
"""A commit whose answer was lost is written again: its rows begin where those of the first try did."""


def read_page(connection: Connection, thread_id: str, run_id: str | None, after: int, until: int | None) -> list[bytes]:
    """The next rows, in order, that hold events after a position and begin by another; ``run_id``: only of that run."""
    of_thread = run_events.c.thread_id == thread_id
    query = select(run_events.c.data).where(of_thread, run_events.c.last_seq > after)
    # Without a start, the database would walk through all events of the thread. It is found in the same statement: between two,
    # the rows may be replaced.
    start = select(func.max(run_events.c.first_seq)).where(of_thread, run_events.c.first_seq <= after + 1)
    if run_id is not None:
        query = query.where(run_events.c.run_id == run_id)
        if after <= 0:
            start = select(func.min(run_events.c.first_seq)).where(of_thread, run_events.c.run_id == run_id)
    first = func.coalesce(start.scalar_subquery(), 0)
    if until is not None:
        query = query.where(run_events.c.first_seq <= until)
    query = query.where(run_events.c.first_seq >= first).order_by(run_events.c.first_seq).limit(PAGE_ROWS)
    return [bytes(data) for data in connection.execute(query).scalars()]


def delete_events(connection: Connection, thread_id: str, run_id: str | None) -> None:
    statement = delete(run_events).where(run_events.c.thread_id == thread_id)
    connection.execute(statement if run_id is None else statement.where(run_events.c.run_id == run_id))
