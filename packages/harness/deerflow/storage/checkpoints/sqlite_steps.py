"""How checkpoints lie in SQLite: a row per superstep, which holds the checkpoint and the writes that led to it.

A superstep is one commit, and each commit writes every page that it touches: one row instead of several, ids as 16 bytes
and compressed values are what keeps that small. Writes that come without a checkpoint (those of a task whose siblings
still run, interrupts, errors) have rows of their own, which belong to the checkpoint they were made at.

Functions of a connection. Ids are given and returned as LangGraph knows them, as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from sqlite3 import Connection
from typing import Any, NamedTuple
from uuid import UUID

import ormsgpack
import zstandard
from langgraph.checkpoint.base import writes_sort_key

from deerflow.storage.checkpoints.base import Key, key_of, refuse_to_merge, written_later

_ANCESTORS = """
WITH RECURSIVE path(id, parent, channels) AS (
    SELECT checkpoint_id, parent_id, channels FROM checkpoint_steps WHERE line = ?1 AND checkpoint_id = ?2
    UNION
    SELECT s.checkpoint_id, s.parent_id, s.channels FROM path p CROSS JOIN checkpoint_steps s
    ON s.line = ?1 AND s.checkpoint_id = p.parent
)
SELECT id, channels FROM path
"""
_WRITE = "task_id, idx, task_path, channel, type, value"
_NOT_ROOT = "(SELECT line FROM checkpoint_lines WHERE thread_id = ? AND checkpoint_ns LIKE '%:%')"
_OF_THREAD = "(SELECT line FROM checkpoint_lines WHERE thread_id = ?)"
_TABLES = ("checkpoint_steps", "checkpoint_writes")


class Write(NamedTuple):
    """What a task wrote to a channel. ``kind`` and ``value`` are the serializer's."""

    task_id: str
    idx: int
    task_path: str
    channel: str
    kind: str
    value: bytes


class Step(NamedTuple):
    """A checkpoint as it is stored. ``metadata`` is JSON; ``kind`` and ``checkpoint`` are the serializer's."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    kind: str
    checkpoint: bytes
    metadata: bytes
    channels: str


Found = tuple[Step, list[Write]]
"""A checkpoint, and what the tasks that follow it have written so far."""


def _id(key: Key) -> str:
    return str(UUID(bytes=key)) if isinstance(key, bytes) else key


# packing ----------------------------------------------------------------------------------------------------------------

_WORDS = (
    b"usage_metadata input_tokens output_tokens total_tokens input_token_details output_token_details cache_read reasoning"
    b" invalid_tool_calls langgraph.types Send finish_reason stop model_name model_provider openai anthropic name id"
    b" additional_kwargs response_metadata tool_calls langchain_core.messages.human HumanMessage user-input timestamp"
    b" facts date run_id langchain_core.messages.tool ToolMessage tool_call_id artifact status success error"
    b" langchain_core.messages.ai AIMessage content type ai model_validate_json v ts 2026- +00:00 id channel_values title"
    b" channel_versions versions_seen updated_channels __start__ messages title branch:to:model __pregel_tasks __input__"
    b" __start__ model tools args description command path type tool_call"
)
"""Never to be changed: what is stored cannot be read without it. The most frequent stand last."""

_DICTIONARY = zstandard.ZstdCompressionDict(_WORDS, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
_LEVEL = 3


def pack(data: bytes) -> bytes:
    """Smaller by half even where ``data`` is a few hundred bytes."""
    return zstandard.ZstdCompressor(level=_LEVEL, dict_data=_DICTIONARY, write_dict_id=False).compress(data)


def unpack(packed: bytes) -> bytes:
    return zstandard.ZstdDecompressor(dict_data=_DICTIONARY).decompress(packed)


# writing ----------------------------------------------------------------------------------------------------------------


def insert_step(db: Connection, step: Step, writes: Sequence[Write]) -> None:
    """Args:
    writes: what the tasks of the checkpoint's parent wrote that was not stored yet.
    """
    line = _made_line(db, step.thread_id, step.namespace)
    parent = None if step.parent_id is None else key_of(step.parent_id)
    key = (line, key_of(step.checkpoint_id))
    values = (parent, step.kind, step.channels, step.metadata, pack(step.checkpoint))
    if _of_step(db, "1", *key):
        changes = "parent_id = ?, type = ?, channels = ?, metadata = ?, checkpoint = ?"
        db.execute(f"UPDATE checkpoint_steps SET {changes} WHERE line = ? AND checkpoint_id = ?", (*values, *key))
        if step.parent_id is not None:
            insert_writes(db, step.thread_id, step.namespace, step.parent_id, writes)
        return
    packed = pack(ormsgpack.packb([tuple(write) for write in writes])) if writes else None
    db.execute("INSERT INTO checkpoint_steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*key, *values, packed))


def insert_writes(
    db: Connection,
    thread_id: str,
    namespace: str,
    checkpoint_id: str,
    writes: Iterable[Write],
    *,
    replace: bool = False,
) -> None:
    """Args:
    replace: the newest value counts, not the first.
    """
    line, at = _made_line(db, thread_id, namespace), key_of(checkpoint_id)
    db.executemany(
        f"INSERT OR {'REPLACE' if replace else 'IGNORE'} INTO checkpoint_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(line, at, key_of(w.task_id), w.idx, w.task_path, w.channel, w.kind, pack(w.value)) for w in writes],
    )


def delete_thread(db: Connection, thread_id: str) -> None:
    for table in _TABLES:
        db.execute(f"DELETE FROM {table} WHERE line IN {_OF_THREAD}", (thread_id,))
    db.execute("DELETE FROM checkpoint_lines WHERE thread_id = ?", (thread_id,))


def delete_all_but(db: Connection, thread_id: str, namespace: str, checkpoint_id: str) -> None:
    line = _line(db, thread_id, namespace)
    if line is None:
        return
    key = (line, key_of(checkpoint_id))
    for table in _TABLES:
        db.execute(f"DELETE FROM {table} WHERE line = ? AND checkpoint_id <> ?", key)
        if not namespace:
            db.execute(f"DELETE FROM {table} WHERE line IN {_NOT_ROOT}", (thread_id,))
    if not namespace:
        db.execute(f"DELETE FROM checkpoint_lines WHERE line IN {_NOT_ROOT}", (thread_id,))
    db.execute("UPDATE checkpoint_steps SET parent_id = NULL, writes = NULL WHERE line = ? AND checkpoint_id = ?", key)


def delete_after(db: Connection, thread_id: str, checkpoint_id: str) -> None:
    at = key_of(checkpoint_id)
    for table in _TABLES:
        db.execute(f"DELETE FROM {table} WHERE line IN {_OF_THREAD} AND checkpoint_id > ?", (thread_id, at))
    line = _line(db, thread_id, "")
    if line is None:
        return
    # What later steps wrote together with a checkpoint of theirs has gone with it.
    of_checkpoint = "FROM checkpoint_writes WHERE line = ? AND checkpoint_id = ?"
    writes = db.execute(f"SELECT task_id, idx, channel {of_checkpoint}", (line, at)).fetchall()
    for task_id, idx in written_later(checkpoint_id, [(_id(task), idx, channel) for task, idx, channel in writes]):
        db.execute(f"DELETE {of_checkpoint} AND task_id = ? AND idx = ?", (line, at, key_of(task_id), idx))


def copy_thread(db: Connection, source: str, target: str) -> None:
    if db.execute(f"SELECT 1 FROM checkpoint_steps WHERE line IN {_OF_THREAD} LIMIT 1", (target,)).fetchone():
        raise refuse_to_merge(target)
    lines = db.execute("SELECT line, checkpoint_ns FROM checkpoint_lines WHERE thread_id = ?", (source,)).fetchall()
    for line, namespace in lines:
        copied = _made_line(db, target, namespace)
        for table in _TABLES:
            columns = ", ".join(row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] != "line")
            db.execute(
                f"INSERT INTO {table} (line, {columns}) SELECT ?, {columns} FROM {table} WHERE line = ?", (copied, line)
            )


# reading ----------------------------------------------------------------------------------------------------------------

_COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, parent_id, type, checkpoint, metadata, channels"


def select_one(db: Connection, thread_id: str, namespace: str, checkpoint_id: str | None) -> Found | None:
    """The newest checkpoint, or the one that is named."""
    line = _line(db, thread_id, namespace)
    named, key = ("", ()) if checkpoint_id is None else (" AND checkpoint_id = ?", (key_of(checkpoint_id),))
    query = f"SELECT {_COLUMNS} FROM checkpoints WHERE line = ?{named} ORDER BY checkpoint_id DESC LIMIT 1"
    if line is None or (row := db.execute(query, (line, *key)).fetchone()) is None:
        return None
    steps = "SELECT writes FROM checkpoint_steps WHERE line = ? AND checkpoint_id > ? AND parent_id = ?"
    packed = [writes for (writes,) in db.execute(steps, (line, row[2], row[2]))]
    return _step(row), _united(_own_writes(db, line, row[2]), packed)


def select_many(db: Connection, condition: str, parameters: Sequence[Any], limit: int | None) -> list[Found]:
    """Newest first.

    Args:
        condition: ``WHERE …`` over the columns of ``checkpoints``, in which ids are :func:`key_of` them.
    """
    tail, extra = (" LIMIT ?", (limit,)) if limit is not None else ("", ())
    query = f"SELECT {_COLUMNS}, line FROM checkpoints {condition} ORDER BY checkpoint_id DESC{tail}"
    rows = db.execute(query, (*parameters, *extra)).fetchall()
    oldest: dict[int, Key] = {row[-1]: row[2] for row in rows}
    led_on: dict[tuple[int, Key], list[bytes | None]] = {}
    for line, start in oldest.items():
        steps = "SELECT parent_id, writes FROM checkpoint_steps WHERE line = ? AND checkpoint_id > ?"
        for parent, writes in db.execute(steps, (line, start)):
            led_on.setdefault((line, parent), []).append(writes)
    return [
        (_step(row[:-1]), _united(_own_writes(db, row[-1], row[2]), led_on.get((row[-1], row[2]), ()))) for row in rows
    ]


def select_history(
    db: Connection, thread_id: str, namespace: str, checkpoint_id: str | None, channels: Sequence[str]
) -> dict[str, tuple[list[Write], tuple[str, bytes] | None]]:
    """Per channel: the writes since its last full value, oldest first, and the checkpoint that holds that value."""
    line = _line(db, thread_id, namespace)
    target = key_of(checkpoint_id) if checkpoint_id is not None else _newest(db, line)
    walked: list[Key] = []
    ends: dict[str, int] = {}
    for position, (key, held) in enumerate(db.execute(_ANCESTORS, (line, target))):
        walked.append(key)
        ends |= {name: position for name in channels if position and name not in ends and name in held.split(",")}
        if len(ends) == len(channels):
            break
    # What followed an ancestor stands with it, or in the step that came after it on this path.
    written = [
        _united(_own_writes(db, line, ancestor), _of_step(db, "writes", line, after))
        for after, ancestor in pairwise(walked)
    ]
    return {
        name: (
            [write for writes in reversed(written[: ends.get(name)]) for write in writes if write.channel == name],
            _checkpoint(db, line, walked[ends[name]]) if name in ends else None,
        )
        for name in channels
    }


def _line(db: Connection, thread_id: str, namespace: str) -> int | None:
    query = "SELECT line FROM checkpoint_lines WHERE thread_id = ? AND checkpoint_ns = ?"
    row = db.execute(query, (thread_id, namespace)).fetchone()
    return row[0] if row else None


def _made_line(db: Connection, thread_id: str, namespace: str) -> int:
    line = _line(db, thread_id, namespace)
    if line is None:
        statement = "INSERT INTO checkpoint_lines (thread_id, checkpoint_ns) VALUES (?, ?)"
        line = db.execute(statement, (thread_id, namespace)).lastrowid
        assert line is not None
    return line


def _newest(db: Connection, line: int | None) -> Key | None:
    return db.execute("SELECT max(checkpoint_id) FROM checkpoint_steps WHERE line = ?", (line,)).fetchone()[0]


def _of_step(db: Connection, columns: str, line: int | None, key: Key) -> Any:
    query = f"SELECT {columns} FROM checkpoint_steps WHERE line = ? AND checkpoint_id = ?"
    return db.execute(query, (line, key)).fetchone()


def _checkpoint(db: Connection, line: int | None, key: Key) -> tuple[str, bytes]:
    kind, packed = _of_step(db, "type, checkpoint", line, key)
    return kind, unpack(packed)


def _step(row: tuple[Any, ...]) -> Step:
    thread_id, namespace, key, parent, kind, packed, metadata, channels = row
    return Step(
        thread_id,
        namespace,
        _id(key),
        None if parent is None else _id(parent),
        kind,
        unpack(packed),
        metadata,
        channels,
    )


def _own_writes(db: Connection, line: int | None, key: Key) -> list[Write]:
    query = f"SELECT {_WRITE} FROM checkpoint_writes WHERE line = ? AND checkpoint_id = ?"
    rows = db.execute(query, (line, key))
    return [Write(_id(task), idx, path, channel, kind, unpack(value)) for task, idx, path, channel, kind, value in rows]


def _united(own: list[Write], led_on: Iterable[bytes | None]) -> list[Write]:
    """All writes at a checkpoint, in LangGraph's order. Steps that branch off it may have repeated a task: the first counts."""
    united = {(write.task_id, write.idx): write for write in own}
    for packed in led_on:
        for fields in ormsgpack.unpackb(unpack(packed)) if packed is not None else ():
            write = Write(*fields)
            united.setdefault((write.task_id, write.idx), write)
    return sorted(united.values(), key=lambda write: writes_sort_key(write.task_path, write.task_id, write.idx))
