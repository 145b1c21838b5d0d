"""LangGraph's own checkpoints in PostgreSQL, over a pool that opens when it is first used, with operations on whole threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, LiteralString

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.postgres.base import BasePostgresSaver
from psycopg import AsyncConnection, AsyncCursor, Capabilities, IsolationLevel
from psycopg.errors import DivisionByZero
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from deerflow.storage.checkpoints.base import Checkpointer, Fence, refuse_to_merge, written_later
from deerflow.storage.errors import explained
from deerflow.storage.thread_lock import LockLostError

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


class PostgresCheckpointer(AsyncPostgresSaver, Checkpointer):
    """Saves the checkpoints of all threads. Belongs to the event loop that uses it first.

    Args:
        location: the URL of the database, or another checkpointer whose connections this one uses, too.
        pool_size: connections at most.
    """

    def __init__(
        self, location: str | PostgresCheckpointer, *, pool_size: int = 10, fence: Fence | None = None
    ) -> None:
        self._fence = fence
        BasePostgresSaver.__init__(self)
        self._shared = _Pool(location, pool_size) if isinstance(location, str) else location._shared
        self.conn = self._shared.pool
        self.pipe = None
        self.lock = asyncio.Lock()
        self.supports_pipeline = Capabilities().has_pipeline()

    def per_run(self, fence: Fence | None = None) -> PostgresCheckpointer:
        """See :class:`Checkpointer`. LangGraph's saver does one thing at a time, even with a pool."""
        return PostgresCheckpointer(self, fence=fence)

    async def aclose(self) -> None:
        await self._shared.pool.close()

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        # Everything that LangGraph's saver does begins here.
        self.loop = asyncio.get_running_loop()
        await self._shared.ready()
        try:
            async with super()._cursor(pipeline=pipeline) as cursor:
                if pipeline and self._fence is not None:  # what writes
                    await cursor.execute(_IS_OURS, self._fence)
                yield cursor
        except DivisionByZero:
            raise LockLostError("Another process has taken over the run.") from None

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection[DictRow]]:
        await self._shared.ready()
        async with self._shared.pool.connection() as connection:
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            try:
                async with connection.transaction():
                    yield connection
            finally:
                await connection.set_isolation_level(None)

    async def adelete_before(self, config: RunnableConfig) -> None:
        """See :class:`Checkpointer`."""
        where = config["configurable"]
        key = {
            "thread": str(where["thread_id"]),
            "namespace": where.get("checkpoint_ns", ""),
            "checkpoint": where["checkpoint_id"],
        }
        async with self._transaction() as connection:
            await connection.execute(_DELETE.format(gone=_BEFORE), key)
            await connection.execute(_ORPHAN, key)

    async def adelete_after(self, thread_id: str, checkpoint_id: str | None) -> None:
        """See :class:`Checkpointer`."""
        if checkpoint_id is None:
            return await self.adelete_thread(thread_id)
        key: dict[str, Any] = {"thread": thread_id, "checkpoint": checkpoint_id}
        of_checkpoint: LiteralString = "FROM checkpoint_writes WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id = %(checkpoint)s"
        async with self._transaction() as connection:
            await connection.execute(_DELETE.format(gone=_AFTER), key)
            found = await connection.execute(f"SELECT task_id, idx, channel {of_checkpoint}", key)
            writes = [(row["task_id"], row["idx"], row["channel"]) for row in await found.fetchall()]
            for task_id, index in written_later(checkpoint_id, writes):
                one = key | {"task": task_id, "index": index}
                await connection.execute(f"DELETE {of_checkpoint} AND task_id = %(task)s AND idx = %(index)s", one)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See :class:`Checkpointer`."""
        key = {"source": source_thread_id, "target": target_thread_id}
        async with self._transaction() as connection:
            found = await connection.execute("SELECT 1 FROM checkpoints WHERE thread_id = %(target)s LIMIT 1", key)
            if await found.fetchone():
                raise refuse_to_merge(target_thread_id)
            for statement in _COPY:
                await connection.execute(statement, key)


class _Pool:
    """The connections that the checkpointers of a process share. The tables are made before the first is given away."""

    def __init__(self, url: str, size: int) -> None:
        self._location = url
        self._opening = asyncio.Lock()
        self._is_ready = False
        self.pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
            url,
            connection_class=AsyncConnection[DictRow],
            min_size=1,
            max_size=size,
            open=False,
            check=_check,
            # Prepared at once, and dict rows: what LangGraph's saver asks of its connections.
            kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        )

    async def ready(self) -> None:
        if self._is_ready:
            return
        async with self._opening:
            if not self._is_ready:
                with explained(self._location):
                    await self.pool.open()
                    async with self.pool.connection() as connection:
                        await _set_up(connection)
                self._is_ready = True


async def _check(connection: AsyncConnection[DictRow]) -> None:
    """Raises if the server has gone or was started anew: the pool then takes another connection."""
    await connection.execute("")


async def _set_up(connection: AsyncConnection[DictRow]) -> None:
    if await _is_set_up(connection):
        return
    while not await _value(connection, "SELECT pg_try_advisory_lock(%s) AS value", _LOCK):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_AGAIN)
    try:
        await AsyncPostgresSaver(connection).setup()
    finally:
        await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


async def _is_set_up(connection: AsyncConnection[DictRow]) -> bool:
    if not await _value(connection, "SELECT to_regclass('checkpoint_migrations') IS NOT NULL AS value"):
        return False
    version = await _value(connection, "SELECT max(v) AS value FROM checkpoint_migrations")
    return version is not None and version >= len(BasePostgresSaver.MIGRATIONS) - 1


async def _value(connection: AsyncConnection[DictRow], query: LiteralString, *parameters: Any) -> Any:
    row = await (await connection.execute(query, parameters)).fetchone()
    return row and row["value"]
