"""Checkpoints of whole threads from SQLite to PostgreSQL and back, and their digests, by which the copies are verified."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sqlalchemy import Connection, text

from deerflow.storage.checkpoints import Checkpointer
from deerflow.storage.checkpoints import sqlite_steps as steps
from deerflow.storage.checkpoints.sqlite_steps import Step, Write
from deerflow.storage.database import Database

_SERIALIZER = JsonPlusSerializer()
_SEEN = "~"
"""Sorts behind every digest: a version that a node has seen is not newer than itself."""
_WRITES = """SELECT checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, blob FROM checkpoint_writes
    WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id, task_path, task_id, idx"""
_ADD_WRITE = """INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, blob)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"""


class Kept(NamedTuple):
    """A checkpoint with what is kept beside it, whichever database it is from."""

    namespace: str
    parent_id: str | None
    checkpoint: Checkpoint
    metadata: Mapping[str, Any]
    writes: list[Write]


async def thread_ids(database: Database, saver: Checkpointer) -> list[str]:
    """Return the ids of threads that have checkpoints."""
    await saver.aget_tuple({"configurable": {"thread_id": "", "checkpoint_ns": ""}})  # makes the tables

    def job(connection: Connection) -> list[str]:
        return list(connection.scalars(text("SELECT DISTINCT thread_id FROM checkpoints")))

    return sorted(await database.read(job))


async def read_thread(database: Database, saver: Checkpointer, thread_id: str) -> list[Kept]:
    """Return all checkpoints of a thread, the oldest first."""
    if database.is_postgres:
        return await _read_postgres(database, saver, thread_id)
    found = await asyncio.wrap_future(
        database.sqlite_reader.submit(
            lambda db: steps.select_many(db, "WHERE thread_id = ?", (thread_id,), None), writes=False
        )
    )
    return [
        Kept(
            step.namespace,
            step.parent_id,
            _SERIALIZER.loads_typed((step.kind, step.checkpoint)),
            orjson.loads(step.metadata),
            writes,
        )
        for step, writes in reversed(found)
    ]


async def write_thread(database: Database, saver: Checkpointer, thread_id: str, kept: Iterable[Kept]) -> None:
    """Replace the checkpoints of a thread by these."""
    await saver.adelete_thread(thread_id)
    if database.is_postgres:
        await _write_postgres(database, saver, thread_id, kept)
    else:
        rows = [(_step(thread_id, one), one.writes) for one in kept]

        def insert(db: Any) -> None:
            for step, writes in rows:
                steps.insert_step(db, step, ())
                steps.insert_writes(db, thread_id, step.namespace, step.checkpoint_id, writes)

        await asyncio.wrap_future(database.sqlite.submit(insert))


def digest_of(kept: Iterable[Kept]) -> str:
    """Return a digest that is the same for the same checkpoints in either database."""
    found = hashlib.sha256()
    for one in sorted(kept, key=lambda each: (each.namespace, each.checkpoint["id"])):
        checkpoint: dict[str, Any] = {**one.checkpoint}
        values = checkpoint.pop("channel_values")
        checkpoint["channel_versions"] = _counted(checkpoint["channel_versions"])
        checkpoint["versions_seen"] = {node: _counted(seen) for node, seen in checkpoint["versions_seen"].items()}
        head = [one.namespace, one.parent_id, checkpoint, one.metadata]
        found.update(orjson.dumps(head, option=orjson.OPT_SORT_KEYS, default=str))
        for channel, value in sorted(values.items()):
            found.update(repr((channel, _SERIALIZER.dumps_typed(value))).encode())
        for write in sorted(one.writes):
            found.update(repr(tuple(write)).encode())
    return found.hexdigest()


def _counted(versions: Mapping[str, Any]) -> dict[str, int]:
    return {channel: int(str(version).split(".")[0]) for channel, version in versions.items()}


def _step(thread_id: str, one: Kept) -> Step:
    kind, blob = _SERIALIZER.dumps_typed(one.checkpoint)
    channels = ",".join(one.checkpoint["channel_values"])
    return Step(
        thread_id, one.namespace, one.checkpoint["id"], one.parent_id, kind, blob, orjson.dumps(one.metadata), channels
    )


# PostgreSQL ---------------------------------------------------------------------------------------------------------


async def _read_postgres(database: Database, saver: Checkpointer, thread_id: str) -> list[Kept]:
    found = [each async for each in saver.alist({"configurable": {"thread_id": thread_id}})]

    def job(connection: Connection) -> list[tuple[Any, ...]]:
        raw: Any = connection.connection.driver_connection
        return raw.execute(_WRITES, (thread_id,)).fetchall()

    writes: dict[tuple[str, str], list[Write]] = {}
    for namespace, at, task, index, path, channel, kind, value in await database.read(job):
        writes.setdefault((namespace, at), []).append(Write(task, index, path, channel, kind, bytes(value)))
    return [
        Kept(
            (where := each.config["configurable"])["checkpoint_ns"],
            each.parent_config["configurable"]["checkpoint_id"] if each.parent_config else None,
            each.checkpoint,
            each.metadata,
            writes.get((where["checkpoint_ns"], each.checkpoint["id"]), []),
        )
        for each in reversed(found)
    ]


async def _write_postgres(database: Database, saver: Checkpointer, thread_id: str, kept: Iterable[Kept]) -> None:
    rows: list[tuple[Any, ...]] = []
    for one in kept:
        where: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": one.namespace}
        where |= {"checkpoint_id": one.parent_id} if one.parent_id else {}
        checkpoint = _for_postgres(one.checkpoint)
        metadata: Any = one.metadata
        await saver.aput({"configurable": where}, checkpoint, metadata, checkpoint["channel_versions"])
        rows += [
            (thread_id, one.namespace, checkpoint["id"], w.task_id, w.idx, w.task_path, w.channel, w.kind, w.value)
            for w in one.writes
        ]

    def job(connection: Connection) -> None:
        raw: Any = connection.connection.driver_connection
        if rows:
            raw.cursor().executemany(_ADD_WRITE, rows)

    await database.write(job)


def _for_postgres(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with versions as PostgreSQL's saver needs them: of one length, or later ones would not be newer, and each
    with a digest of its value, since forks count on from the same number and share a table by version."""
    values = checkpoint["channel_values"]
    versions: dict[str, Any] = {
        channel: f"{count:032}.{_digest(values[channel]) if channel in values else '0'}"
        for channel, count in _counted(checkpoint["channel_versions"]).items()
    }
    seen: dict[str, Any] = {
        node: {channel: f"{count:032}.{_SEEN}" for channel, count in _counted(of).items()}
        for node, of in checkpoint["versions_seen"].items()
    }
    return {**checkpoint, "channel_versions": versions, "versions_seen": seen}


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(_SERIALIZER.dumps_typed(value)).encode()).hexdigest()[:16]
