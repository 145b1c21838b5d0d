"""What every checkpointer of ours can do besides what LangGraph asks for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Self
from uuid import UUID, uuid5

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base import id as ids
from sqlalchemy import Connection

from deerflow.storage.sql import execute

_INPUT, _INTERRUPT = "__input__", "__interrupt__"
_KEY = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"

Fence = tuple[str, int]
"""A run's id and its fencing token."""

Key = bytes | str
"""What stands for an id in SQLite."""


class Checkpointer(BaseCheckpointSaver[str]):
    """LangGraph's checkpoints of all threads, with operations on whole threads. All are safe on threads with a DeltaChannel."""

    @abstractmethod
    def per_run(self, fence: Fence | None = None) -> Self:
        """A checkpointer over the same data for one run, so that runs do not wait for each other.

        Args:
            fence: writing raises LockLostError when the run has another token: a process that was frozen may wake up. On
                SQLite no process can lose a run while it lives.
        """

    @abstractmethod
    async def adelete_before(self, config: RunnableConfig) -> None:
        """Forget every checkpoint of the namespace but the one that ``config`` names, and the finished calls of subgraphs.

        That checkpoint must hold full snapshots, and have no task to do.
        """

    @abstractmethod
    async def adelete_after(self, thread_id: str, checkpoint_id: str | None) -> None:
        """Make the thread what it was when this was its newest checkpoint: delete what is newer, in all namespaces, and what
        later steps wrote to it. None: delete everything."""

    @abstractmethod
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints, as they are at one moment. Raises ValueError if the target has some."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close what this opened itself. Idempotent."""


def refuse_to_merge(thread_id: str) -> ValueError:
    return ValueError(f"Thread {thread_id} has checkpoints already; copy to a new one.")


def written_later(checkpoint_id: str, writes: Iterable[tuple[str, int, str]]) -> list[tuple[str, int]]:
    """Which of a checkpoint's writes the step after it made that began a run, an update or the answer to an interrupt.

    LangGraph stores on a checkpoint not only what its own tasks write, but also the input of the run that goes on from it
    (a DeltaChannel reads it from there) and the answers to its interrupts.

    Args:
        writes: ``(task id, index, channel)`` of each.
    """
    rows = list(writes)
    asking = {task_id for task_id, _, channel in rows if channel == _INTERRUPT}
    begun = {str(uuid5(UUID(checkpoint_id), name)) for name in (_INPUT, _INTERRUPT)}
    return [
        (task_id, index)
        for task_id, index, channel in rows
        # The id of no task, those of durability "exit", which begin with the step or end all others, and those of input.
        if task_id.startswith(("0000", "ffffffff-"))
        or task_id in begun
        or (task_id in asking and channel != _INTERRUPT)
    ]


def come_after(checkpoint_id: str) -> None:
    """Let the next checkpoints of this process sort behind one that it has read: the clock may have been set back since.

    LangGraph names checkpoints by the time, which it lets grow within a process only.
    """
    with suppress(ValueError):
        ids._last_v6_timestamp = max(ids._last_v6_timestamp or 0, ids.UUID(checkpoint_id).time)


def key_of(id_: str) -> Key:
    """What stands for an id in the tables of SQLite: sorted like it."""
    try:
        uuid = UUID(id_)
    except ValueError:
        return id_
    return uuid.bytes if str(uuid) == id_ else id_


def annotate(connection: Connection, thread_id: str, ns: str, checkpoint_id: str, metadata: Mapping[str, Any]) -> None:
    """Merge ``metadata`` into that of a checkpoint. Nothing happens if it is not there."""
    if connection.dialect.name == "postgresql":
        update = f"UPDATE checkpoints SET metadata = metadata || ? {_KEY}"
        execute(connection, update, dict(metadata), thread_id, ns, checkpoint_id)
        return
    key = key_of(checkpoint_id)
    known = execute(connection, f"SELECT line, metadata FROM checkpoints {_KEY}", thread_id, ns, key).fetchone()
    if known is not None:
        merged = orjson.dumps(orjson.loads(known[1]) | metadata)
        where = "WHERE line = ? AND checkpoint_id = ?"
        execute(connection, f"UPDATE checkpoint_steps SET metadata = ? {where}", merged, known[0], key)
