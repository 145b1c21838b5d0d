"""LangGraph's own checkpoints in PostgreSQL, over the connections of the database, with operations on whole threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.base import BasePostgresSaver
from psycopg import Cursor
from psycopg.errors import DivisionByZero
from psycopg.rows import DictRow

from deerflow.event_loop import to_its_end
from deerflow.storage.checkpoints.base import Checkpointer, Fence, come_after, refuse_to_merge, written_later
from deerflow.storage.database import Database
from deerflow.storage.errors import explained
from deerflow.storage.thread_lock import LockLostError

T = TypeVar("T")

_LOCK = 0x6465657266_02
_LOOK_AGAIN = 0.1
"""Seconds. Waiting inside of the database would make the one who builds an index concurrently wait for us."""

_COPY: tuple[LiteralString, ...] = (
    """
    INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    SELECT %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM checkpoints WHERE thread_id = %(source)s
    """,
    """
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(target)s, checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs WHERE thread_id = %(source)s
    """,
    """
    INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT %(target)s, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM checkpoint_writes WHERE thread_id = %(source)s
    """,
)

_DELETE: LiteralString = """
WITH deleted AS (
    DELETE FROM checkpoints WHERE thread_id = %(thread)s AND ({gone})
    RETURNING checkpoint_ns, checkpoint -> 'channel_versions' AS versions
), garbage AS (
    SELECT checkpoint_ns, v.key, v.value FROM deleted CROSS JOIN LATERAL jsonb_each_text(versions) v
    EXCEPT
    SELECT checkpoint_ns, v.key, v.value FROM checkpoints
    CROSS JOIN LATERAL jsonb_each_text(checkpoint -> 'channel_versions') v
    WHERE thread_id = %(thread)s AND NOT ({gone})
), blobs AS (
    DELETE FROM checkpoint_blobs b USING garbage g
    WHERE b.thread_id = %(thread)s AND b.checkpoint_ns = g.checkpoint_ns AND b.channel = g.key AND b.version = g.value
)
DELETE FROM checkpoint_writes WHERE thread_id = %(thread)s AND ({gone})
"""
"""A blob is shared by the checkpoints since its channel last changed."""

_BEFORE: LiteralString = (
    "(checkpoint_ns = %(namespace)s AND checkpoint_id <> %(checkpoint)s)"
    " OR (%(namespace)s = '' AND checkpoint_ns LIKE '%%:%%')"
)
_AFTER: LiteralString = "checkpoint_id > %(checkpoint)s"

_IS_OURS = "SELECT 1 / count(*) FROM runs WHERE run_id = %s AND epoch = %s"
"""Fails, and with it all that is written in the same pipeline, if the run has another fencing token."""

_ORPHAN = """
UPDATE checkpoints SET parent_checkpoint_id = NULL
WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s AND checkpoint_id = %(checkpoint)s
"""


class PostgresCheckpointer(BasePostgresSaver, Checkpointer):
    """Saves the checkpoints of all threads by LangGraph's saver, on the threads of the database: psycopg's asynchronous
    connections take three times the CPU.

    Args:
        database: whose connections it uses.
        fence: see :meth:`Checkpointer.per_run`.
    """

    def __init__(self, database: Database, *, fence: Fence | None = None) -> None:
        super().__init__()
        self._database = database
        self._fence = fence

    def per_run(self, fence: Fence | None = None) -> PostgresCheckpointer:
        """See :class:`Checkpointer`."""
        return PostgresCheckpointer(self._database, fence=fence)

    async def aclose(self) -> None:
        """The connections are the database's."""

    # LangGraph's interface --------------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await self._saver(lambda saver: saver.get_tuple(config))
        if found is not None:
            come_after(found.config["configurable"]["checkpoint_id"])
        return found

    async def alist(self, config: RunnableConfig | None, **wanted: Any) -> AsyncIterator[CheckpointTuple]:
        for found in await self._saver(lambda saver: list(saver.list(config, **wanted))):
            yield found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._saver(lambda saver: saver.get_delta_channel_history(config=config, channels=channels))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._saver(lambda saver: saver.put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._saver(lambda saver: saver.put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._saver(lambda saver: saver.delete_thread(thread_id))

    # whole threads ----------------------------------------------------------------------------------------------------

    async def adelete_before(self, config: RunnableConfig) -> None:
        """See :class:`Checkpointer`."""
        where = config["configurable"]
        key = {
            "thread": str(where["thread_id"]),
            "namespace": where.get("checkpoint_ns", ""),
            "checkpoint": where["checkpoint_id"],
        }

        def delete(connection: Any) -> None:
            connection.execute(_DELETE.format(gone=_BEFORE), key)
            connection.execute(_ORPHAN, key)

        await self._transaction(delete)

    async def adelete_after(self, thread_id: str, checkpoint_id: str | None) -> None:
        """See :class:`Checkpointer`."""
        if checkpoint_id is None:
            return await self.adelete_thread(thread_id)
        key: dict[str, Any] = {"thread": thread_id, "checkpoint": checkpoint_id}
        of_checkpoint: LiteralString = "FROM checkpoint_writes WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id = %(checkpoint)s"

        def delete(connection: Any) -> None:
            connection.execute(_DELETE.format(gone=_AFTER), key)
            writes = connection.execute(f"SELECT task_id, idx, channel {of_checkpoint}", key).fetchall()
            for task_id, index in written_later(checkpoint_id, writes):
                one = key | {"task": task_id, "index": index}
                connection.execute(f"DELETE {of_checkpoint} AND task_id = %(task)s AND idx = %(index)s", one)

        await self._transaction(delete)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See :class:`Checkpointer`."""
        key = {"source": source_thread_id, "target": target_thread_id}

        def copy(connection: Any) -> None:
            if connection.execute("SELECT 1 FROM checkpoints WHERE thread_id = %(target)s LIMIT 1", key).fetchone():
                raise refuse_to_merge(target_thread_id)
            for statement in _COPY:
                connection.execute(statement, key)

        await self._transaction(copy)

    # connections ------------------------------------------------------------------------------------------------------

    async def _saver(self, work: Callable[[PostgresSaver], T]) -> T:
        def job(connection: Any) -> T:
            raw = connection.connection.driver_connection
            self._database.postgres.once("checkpoints", lambda: _set_up(raw, self._database.direct))
            return work(_FencedSaver(raw, self.serde, self._fence))

        with explained(self._database.location):
            return await to_its_end(asyncio.wrap_future(self._database.postgres.submit(job)))

    async def _transaction(self, work: Callable[[Any], None]) -> None:
        def job(connection: Any) -> None:
            raw = connection.connection.driver_connection
            raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            work(raw)

        await self._saver(lambda _: None)  # the tables are there
        with explained(self._database.location):
            await to_its_end(asyncio.wrap_future(self._database.postgres.write(job)))


class _FencedSaver(PostgresSaver):
    def __init__(self, connection: Any, serde: Any, fence: Fence | None) -> None:
        super().__init__(connection, serde=serde)
        self._fence = fence

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        try:
            with super()._cursor(pipeline=pipeline) as cursor:
                if pipeline and self._fence is not None:  # what writes
                    cursor.execute(_IS_OURS, self._fence)
                yield cursor
        except DivisionByZero:
            raise LockLostError("Another process has taken over the run.") from None


def _set_up(connection: Any, url: str) -> None:
    """Make LangGraph's tables, in a session of its own: its lock must outlive transactions."""
    if not _is_set_up(connection):
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as session:
            _set_up_alone(session)


def _set_up_alone(connection: Any) -> None:
    while not _value(connection, "SELECT pg_try_advisory_lock(%s)", _LOCK):
        time.sleep(_LOOK_AGAIN)
    try:
        PostgresSaver(connection).setup()
    finally:
        _value(connection, "SELECT pg_advisory_unlock(%s)", _LOCK)


def _is_set_up(connection: Any) -> bool:
    if not _value(connection, "SELECT to_regclass('checkpoint_migrations') IS NOT NULL"):
        return False
    version = _value(connection, "SELECT max(v) FROM checkpoint_migrations")
    return version is not None and version >= len(BasePostgresSaver.MIGRATIONS) - 1


def _value(connection: Any, query: LiteralString, *parameters: Any) -> Any:
    row = connection.execute(query, parameters).fetchone()
    return row and row[0]
