"""The durable part of the event log: rows of several events each, compressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import zstandard
from sqlalchemy import Connection, delete, func, insert, select

from deerflow.events.record import RunEvent
from deerflow.storage.tables import run_events, threads

ROW_BYTES = 65_536
PAGE_ROWS = 8


class LostRunError(Exception):
    """The thread has been claimed anew (or deleted) since this run was: whoever executes the run must stop."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a writer has to say."""

    thread_id: str
    epoch: int
    rows: list[dict[str, object]]
    last_seq: int
    replaces_after: int | None = None
    """Rows of the thread that begin after this position go: ``rows`` say the same, and more."""


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
        events.append(RunEvent.encoded(known["seq"], known["run_id"], known["method"], json, namespace))
    return events


# jobs ---------------------------------------------------------------------------------------------------------------


def is_ours(connection: Connection, thread_id: str, epoch: int) -> bool:
    """Whether nobody has claimed the thread since; it stays so until the transaction ends."""
    query = select(threads.c.epoch).where(threads.c.thread_id == thread_id).with_for_update(key_share=True)
    return connection.execute(query).scalar() == epoch


def write_batch(connection: Connection, batch: Batch) -> None:
    """Raises LostRunError, and the transaction must be rolled back, if the thread is no longer the writer's."""
    if not is_ours(connection, batch.thread_id, batch.epoch):
        raise LostRunError(f"Thread {batch.thread_id} has been claimed by another run.")
    _insert(connection, [batch])


def write_free_batches(connection: Connection, batches: Sequence[Batch]) -> tuple[set[str], set[str]]:
    """Write the batches of several threads, waiting for nobody.

    Returns:
        The threads that are no longer their writer's, and those whose row somebody else has locked just now.
    """
    wanted = {batch.thread_id: batch.epoch for batch in batches}
    query = select(threads.c.thread_id, threads.c.epoch).where(threads.c.thread_id.in_(wanted))
    free = _epochs(connection.execute(query.with_for_update(key_share=True, skip_locked=True)))
    rest = wanted.keys() - free.keys()
    locked = _epochs(connection.execute(query.where(threads.c.thread_id.in_(rest)))) if rest else {}
    lost = {thread_id for thread_id, epoch in wanted.items() if (free | locked).get(thread_id) != epoch}
    _insert(connection, [batch for batch in batches if batch.thread_id in free and batch.thread_id not in lost])
    return lost, locked.keys() - lost


def _epochs(rows: Iterable[Any]) -> dict[str, int]:
    return {row.thread_id: row.epoch for row in rows}


def _insert(connection: Connection, batches: Sequence[Batch]) -> None:
    for batch in batches:
        if batch.replaces_after is not None:
            ours = (run_events.c.thread_id == batch.thread_id, run_events.c.first_seq > batch.replaces_after)
            connection.execute(delete(run_events).where(*ours))
    if rows := [row for batch in batches for row in batch.rows]:
        connection.execute(insert(run_events), rows)


def read_page(connection: Connection, thread_id: str, run_id: str | None, after: int, until: int | None) -> list[bytes]:
    """The next rows, in order, that hold events after a position and begin by another; ``run_id``: only of that run."""
    of_thread = run_events.c.thread_id == thread_id
    query = select(run_events.c.data).where(of_thread, run_events.c.last_seq > after)
    start = select(func.max(run_events.c.first_seq)).where(of_thread, run_events.c.first_seq <= after + 1)
    if run_id is not None:
        query = query.where(run_events.c.run_id == run_id)
        if after <= 0:
            start = select(func.min(run_events.c.first_seq)).where(of_thread, run_events.c.run_id == run_id)
    # Without it, the database would walk through all that the thread has ever said.
    first = connection.execute(start).scalar() or 0
    if until is not None:
        query = query.where(run_events.c.first_seq <= until)
    query = query.where(run_events.c.first_seq >= first).order_by(run_events.c.first_seq).limit(PAGE_ROWS)
    return [bytes(data) for data in connection.execute(query).scalars()]


def delete_events(connection: Connection, thread_id: str, run_id: str | None) -> None:
    statement = delete(run_events).where(run_events.c.thread_id == thread_id)
    connection.execute(statement if run_id is None else statement.where(run_events.c.run_id == run_id))
