"""LangGraph checkpoints in SQLite, made for long threads.

Against the stock saver: one commit per superstep, a walk over a DeltaChannel's ancestors that reads their names instead
of their contents, values that this process has seen are not decoded again, and threads can be compacted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from sqlite3 import Connection
from typing import Any, TypeVar, cast

import orjson
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.sqlite.utils import search_where

from deerflow.storage.checkpoints import sqlite_steps as steps
from deerflow.storage.checkpoints.base import Checkpointer, Fence, come_after, key_of
from deerflow.storage.checkpoints.sqlite_steps import Step, Write
from deerflow.storage.sqlite_thread import Job, SqliteThread

T = TypeVar("T")

_HELD_SECONDS = 0.02
"""How long what a task wrote may wait for the checkpoint that it leads to, for the sake of one commit. It comes at once,
unless the task has siblings that still run. So waits what a run begins with: no node runs before the next checkpoint."""
_MEMO_BYTES = 3 << 20
_OBJECT_BYTES = 13 << 10
"""Memory of a message besides its text, with what steps have made of it, which stays as long as it does."""

_At = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""


class SqliteCheckpointer(Checkpointer):
    """Saves the checkpoints of all threads in one SQLite database.

    Args:
        reader: that of another connection to the same file, which finds what was written when it was asked.
    """

    def __init__(self, database: SqliteThread, reader: SqliteThread | None = None) -> None:
        super().__init__()
        self._db = database
        self._reader = reader or self._db
        self._memo = _Memo(_MEMO_BYTES)
        self._begun: dict[_At, tuple[Step, Sequence[Write]]] = {}
        """Checkpoints of input, by their own ids, which wait for the one that follows."""
        self._held: dict[_At, list[Write]] = {}
        self._alone: dict[_At, list[Future[None]]] = {}
        """What was held and then stored without the checkpoint that follows, until that has succeeded."""

    async def aclose(self) -> None:
        self._settled(None)
        await asyncio.to_thread(self._db.close)

    # reading --------------------------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await self._aread(config, lambda db: steps.select_one(db, *_place(config)))
        if found is None:
            return None
        come_after(found[0].checkpoint_id)
        return self._tuple(*found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        condition = search_where(config and _as_stored(config), filter, before and _as_stored(before))
        for row in await self._aread(config, lambda db: steps.select_many(db, *condition, limit)):
            yield self._tuple(*row)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        rows = await self._aread(config, lambda db: steps.select_history(db, *_place(config), channels))
        return {channel: self._history(channel, *rows[channel]) for channel in channels}

    async def _aread(self, config: RunnableConfig | None, job: Job[T]) -> T:
        if alone := self._settled(config):
            await asyncio.gather(*map(_kept, alone), return_exceptions=True)
        return await asyncio.wrap_future(self._reader.submit(job, writes=False))

    def _settled(self, config: RunnableConfig | None) -> Sequence[Future[None]]:
        """Store what is held of the thread, or of all. What is on its way then."""
        thread_id = None if config is None else str(config["configurable"]["thread_id"])
        for at in [at for at in {**self._begun, **self._held} if thread_id in (None, at[0])]:
            self._store_held(at)
        return [stored for at, several in [*self._alone.items()] if thread_id in (None, at[0]) for stored in [*several]]

    def _tuple(self, step: Step, writes: Sequence[Write]) -> CheckpointTuple:
        return CheckpointTuple(
            _config(step.thread_id, step.namespace, step.checkpoint_id),
            self.serde.loads_typed((step.kind, step.checkpoint)),
            cast(CheckpointMetadata, orjson.loads(step.metadata)),
            _config(step.thread_id, step.namespace, step.parent_id) if step.parent_id else None,
            [(write.task_id, write.channel, self.serde.loads_typed((write.kind, write.value))) for write in writes],
        )

    def _history(self, channel: str, writes: Sequence[Write], seed: tuple[str, bytes] | None) -> DeltaChannelHistory:
        history: DeltaChannelHistory = {
            "writes": [(write.task_id, channel, self._loads(write.kind, write.value)) for write in writes]
        }
        if seed is not None:
            value = self._loads(*seed)["channel_values"][channel]
            copied = type(value)(list(value.value)) if isinstance(getattr(value, "value", None), list) else value
            history["seed"] = copied
        return history

    def _loads(self, kind: str, blob: bytes) -> Any:
        value = self._memo.get(blob)
        if value is None:
            value = self.serde.loads_typed((kind, blob))
            self._memo.put(blob, value)
        return value

    # writing --------------------------------------------------------------------------------------------------------

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        where = config["configurable"]
        thread_id, namespace, parent = str(where["thread_id"]), where["checkpoint_ns"], where.get("checkpoint_id")
        kind, blob = self.serde.dumps_typed(checkpoint)
        known = orjson.dumps(get_checkpoint_metadata(config, metadata), default=str)
        channels = ",".join(checkpoint["channel_values"])
        step = Step(thread_id, namespace, checkpoint["id"], parent, kind, blob, known, channels)
        at = (thread_id, namespace, parent or "")
        while alone := self._alone.get(at):
            await _kept(alone[0])  # without them the checkpoint would be that of another state
        begun, writes = self._begun.pop(at, None), self._held.pop(at, ())
        made = _config(thread_id, namespace, checkpoint["id"])
        if metadata.get("source") == "input":
            at = (thread_id, namespace, checkpoint["id"])
            self._begun[at] = (step, writes)
            asyncio.get_running_loop().call_later(_HELD_SECONDS, self._store_held, at)
            return made

        def insert(db: Connection) -> None:
            if begun is not None:
                steps.insert_step(db, *begun)
            steps.insert_step(db, step, writes)

        await _kept(self._db.submit(insert))
        return made

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Returns before it is durable: that it is with the checkpoint that follows, or a moment later."""
        where = config["configurable"]
        at = (str(where["thread_id"]), str(where["checkpoint_ns"]), str(where["checkpoint_id"]))
        rows = [self._write(task_id, task_path, index, *write) for index, write in enumerate(writes)]
        special = [channel in WRITES_IDX_MAP for channel, _ in writes]
        if any(special):
            newest_counts = all(special)
            await _kept(self._db.submit(lambda db: steps.insert_writes(db, *at, rows, replace=newest_counts)))
            return
        if at not in self._held:
            asyncio.get_running_loop().call_later(_HELD_SECONDS, self._store_held, at)
        self._held.setdefault(at, []).extend(rows)

    def _store_held(self, at: _At) -> None:
        """Store what waits for the checkpoint after this one, without that."""
        begun, rows = self._begun.pop(at, None), self._held.pop(at, ())
        if begun is None and not rows:
            return

        def store(db: Connection) -> None:
            if begun is not None:
                steps.insert_step(db, *begun)
            steps.insert_writes(db, *at, rows)

        stored = self._db.submit(store)
        self._alone.setdefault(at, []).append(stored)
        stored.add_done_callback(partial(self._forget, at))

    def _forget(self, at: _At, stored: Future[None]) -> None:
        if stored.exception() is None and (others := self._alone.get(at)):
            others.remove(stored)
            if not others:
                self._alone.pop(at, None)

    def _write(self, task_id: str, task_path: str, index: int, channel: str, value: Any) -> Write:
        kind, blob = self.serde.dumps_typed(value)
        if isinstance(value, list) and value and isinstance(value[0], BaseMessage):
            self._memo.put(blob, value)
        return Write(task_id, WRITES_IDX_MAP.get(channel, index), task_path, channel, kind, blob)

    # whole threads --------------------------------------------------------------------------------------------------

    async def adelete_thread(self, thread_id: str) -> None:
        await self._awrite(lambda db: steps.delete_thread(db, str(thread_id)))

    async def adelete_before(self, config: RunnableConfig) -> None:
        """See :class:`Checkpointer`. Also gives the space back to the file system."""
        where = config["configurable"]
        place = str(where["thread_id"]), where.get("checkpoint_ns", ""), where["checkpoint_id"]
        await self._awrite(lambda db: steps.delete_all_but(db, *place))
        await asyncio.wrap_future(self._db.submit(_return_free_pages, alone=True))

    async def adelete_after(self, thread_id: str, checkpoint_id: str | None) -> None:
        """See :class:`Checkpointer`."""
        if checkpoint_id is None:
            return await self.adelete_thread(thread_id)
        await self._awrite(lambda db: steps.delete_after(db, thread_id, checkpoint_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See :class:`Checkpointer`."""
        await self._awrite(lambda db: steps.copy_thread(db, source_thread_id, target_thread_id))

    async def _awrite(self, job: Job[None]) -> None:
        self._settled(None)
        await asyncio.wrap_future(self._db.submit(job))

    def per_run(self, fence: Fence | None = None) -> SqliteCheckpointer:
        """See :class:`Checkpointer`."""
        return self

    def get_next_version(self, current: str | None, channel: None) -> str:
        if current is not None and len(current) > 8:  # of a thread that began before versions were short
            return f"{int(current.split('.')[0]) + 1:032}.0"
        return f"{int(current or 0) + 1:08}"


class _Memo:
    """Values by their encoded form, bounded by about the memory that they take. Only for values that nobody changes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[bytes, Any] = OrderedDict()

    def get(self, blob: bytes) -> Any:
        return self._values.get(blob)

    def put(self, blob: bytes, value: Any) -> None:
        if blob in self._values:
            return
        self._values[blob] = value
        self._size += _taken(blob)
        while self._size > self._limit:
            oldest, _ = self._values.popitem(last=False)
            self._size -= _taken(oldest)


def _taken(blob: bytes) -> int:
    """Bytes of a value in memory, with its encoded form."""
    return 2 * len(blob) + _OBJECT_BYTES


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}


def _kept(stored: Future[T]) -> asyncio.Future[T]:
    """To be awaited: what is queued is written also when the one who waits for it is cancelled."""
    return asyncio.shield(asyncio.wrap_future(stored))


def _place(config: RunnableConfig) -> tuple[str, str, str | None]:
    where = config["configurable"]
    return str(where["thread_id"]), where.get("checkpoint_ns", ""), get_checkpoint_id(config)


def _as_stored(config: RunnableConfig) -> RunnableConfig:
    where = config["configurable"]
    checkpoint_id = get_checkpoint_id(config)
    return {"configurable": {**where, "checkpoint_id": key_of(checkpoint_id)} if checkpoint_id else where}


def _return_free_pages(db: Connection) -> None:
    # executescript steps the pragma to its end; execute would free a single page.
    db.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")
