"""The state of threads: read as it is or was, changed by hand, forked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.types import StateSnapshot, StateUpdate

from deerflow.agents.factory import Agent
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.events.jsonable import HIDDEN_KEYS, MessageCache
from deerflow.identity import Principal
from deerflow.storage.checkpoints.base import annotate
from deerflow.storage.database import Database
from deerflow.storage.provenance import CLIENT
from deerflow.storage.runs import RunStore
from deerflow.storage.sql import storable
from deerflow.storage.tables import utc_now
from deerflow.storage.thread_lock import ThreadLock
from deerflow.storage.threads import Thread, ThreadRepository, set_status, set_title, shortened
from deerflow.threads.checkpoint import StateView, checkpoint_of, read_history, state_view, waits, without_computed
from deerflow.threads.input import OWN_KEYS, client_messages

Graph = Callable[[], Awaitable[Agent]]
"""Gives an agent's graph with a checkpointer: whose, does not matter, since all have the same state."""

LOCK_WAIT = 10.0
"""Seconds. A run that has just ended needs a moment to let go of its thread."""


_NO_PARENT: Any = {"configurable": {}}


@dataclass(eq=False)
class ThreadStates:
    """Args:
    graph: see :data:`Graph`.
    lock: so that nothing executes on a thread while its state is changed.
    changed: called with its owner and id when a thread got another title.
    """

    database: Database
    threads: ThreadRepository
    graph: Graph
    lock: ThreadLock
    changed: Callable[[str, str], None]

    async def get(
        self,
        principal: Principal,
        thread_id: str,
        *,
        checkpoint: Mapping[str, Any] | None = None,
        subgraphs: bool = False,
    ) -> StateView:
        """The thread's state, as it is or was at ``checkpoint``: ``{checkpoint_id, checkpoint_ns}``, both optional.

        Raises:
            NotFoundError: no such thread or checkpoint.
        """
        thread = await self.threads.get(principal, thread_id)
        snapshot = await self.snapshot(thread_id, checkpoint, subgraphs=subgraphs)
        state = await asyncio.to_thread(state_view, snapshot, thread)
        if checkpoint is None and thread.status == "busy" and not state["next"]:
            # A run is on its way and has saved nothing yet: who reads the state to see whether to follow it must see it.
            state["next"] = ["__start__"]
        return state

    async def snapshot(
        self, thread_id: str, checkpoint: Mapping[str, Any] | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """Whoever's thread it is. Raises NotFoundError for a checkpoint that is named and not there."""
        config = _config(thread_id, checkpoint)
        graph = await self.graph()
        try:
            snapshot = await graph.aget_state(config, subgraphs=subgraphs)
        except ValueError as error:
            raise NotFoundError(f"Thread {thread_id} has no such subgraph.") from error
        where = config["configurable"]
        if snapshot.created_at is None and (where["checkpoint_ns"] or "checkpoint_id" in where):
            raise NotFoundError(
                f"Thread {thread_id} has no checkpoint {where.get('checkpoint_id') or where['checkpoint_ns']}."
            )
        return snapshot

    async def beginning(self, thread_id: str) -> str | None:
        """The checkpoint before the thread's first message; None if it was removed by a compaction."""
        saver: Any = (await self.graph()).checkpointer
        async for found in saver.alist(_config(thread_id, None), filter={"step": -1}, limit=1):
            return found.config["configurable"]["checkpoint_id"]
        return None

    async def parents(self, thread_id: str) -> dict[str, str | None]:
        """By checkpoint of the thread: the one that it followed."""
        saver: Any = (await self.graph()).checkpointer
        return {
            found.config["configurable"]["checkpoint_id"]: (found.parent_config or _NO_PARENT)["configurable"].get(
                "checkpoint_id"
            )
            async for found in saver.alist(_config(thread_id, None))
        }

    async def history(
        self,
        principal: Principal,
        thread_id: str,
        *,
        limit: int = 10,
        before: str | None = None,
        checkpoint: Mapping[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> list[StateView]:
        """States of the thread, the newest first.

        Args:
            before: a checkpoint id: only older ones.
            checkpoint: ``checkpoint_id``: this one and older ones; ``checkpoint_ns``: of this subgraph.
            metadata: only checkpoints whose metadata has these entries.

        Raises:
            InvalidRequestError: a key of ``metadata`` that cannot be looked for.
        """
        thread = await self.threads.get(principal, thread_id)
        where = dict(checkpoint or {})
        first = where.pop("checkpoint_id", None)
        config = _config(thread_id, where)
        graph = await self.graph()
        page: list[StateSnapshot] = []
        try:
            if first is not None and limit > 0:
                page = await read_history(graph, _config(thread_id, checkpoint), limit=1, filter=metadata)
                before = min(first, before) if before else first
            if len(page) < limit:
                older = _config(thread_id, {**where, "checkpoint_id": before}) if before else None
                page += await read_history(graph, config, limit=limit - len(page), before=older, filter=metadata)
        except ValueError as error:  # LangGraph's savers do not look for every key
            raise InvalidRequestError(f"metadata: {_first_line(error)}") from error
        rendered = MessageCache()
        return await asyncio.to_thread(lambda: [state_view(snapshot, thread, rendered) for snapshot in page])

    async def update(
        self,
        principal: Principal,
        thread_id: str,
        values: Mapping[str, Any] | None,
        *,
        as_node: str | None = None,
        checkpoint: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Change the state by hand; the new checkpoint follows the newest one, or ``checkpoint``, from which it forks.

        A title alone changes at any time, even during a run. None for ``values`` forks without a change.

        Returns:
            The checkpoint that is the newest now: ``{thread_id, checkpoint_ns, checkpoint_id}``.

        Raises:
            NotFoundError: no such thread or checkpoint.
            ConflictError: a run of the thread is active.
            InvalidRequestError: a value that the state does not have, or that cannot be set; an unknown node.
        """
        thread = await self.threads.get(principal, thread_id, to_change=True)
        values = None if values is None else without_computed(values, principal.user_id)
        title = shortened(values["title"]) if values and isinstance(values.get("title"), str) else None
        if title:
            await self.threads.set_title(principal, thread_id, title)
            self.changed(thread.user_id, thread_id)
            if set(values or ()) == {"title"} and as_node is None and checkpoint is None:
                return await self.retitle(thread, title)
        async with self.alone(thread):
            if values:
                await self.threads.add_sources(thread_id, [CLIENT])
            base = await self.snapshot(thread_id, checkpoint)
            return await self._update(thread_id, base, values, as_node, checkpoint)

    async def retitle(self, thread: Thread, title: str) -> dict[str, Any]:
        """Put the title into the state as well, where that disturbs nothing: neither a run nor a question that waits.

        That is no news of the conversation: its time and status stay. Returns as :meth:`update`.
        """
        try:
            async with self.alone(thread, wait=0):
                base = await self.snapshot(thread.thread_id)
                if base.created_at is not None and not base.next and not base.tasks:
                    graph = await self.graph()
                    config = await graph.aupdate_state(_config(thread.thread_id, None), {"title": title})
                    return checkpoint_of(config) or {}
        except ConflictError:  # a run is on its way; the thread's row has the title
            base = await self.snapshot(thread.thread_id)
        return checkpoint_of(base.config) or {}

    async def _update(
        self,
        thread_id: str,
        base: StateSnapshot,
        values: Mapping[str, Any] | None,
        as_node: str | None,
        checkpoint: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        graph = await self.graph()
        checked, where = checked_values(graph, values, base), _config(thread_id, checkpoint)
        try:
            config = await graph.aupdate_state(where, checked, as_node=as_node)
        except InvalidUpdateError as error:
            raise InvalidRequestError(_first_line(error)) from error
        now = await self.snapshot(thread_id)
        status = "interrupted" if now.next else "idle"
        asks = waits(now)
        await self.database.write(lambda connection: set_status(connection, thread_id, status, waits=asks))
        return checkpoint_of(config) or {}

    async def replay(self, principal: Principal, thread_id: str, supersteps: Sequence[Sequence[StateUpdate]]) -> None:
        """Write whole steps into a new thread, as when it is imported. Raises as :meth:`update` does."""
        thread = await self.threads.get(principal, thread_id, to_change=True)
        graph = await self.graph()
        async with self.alone(thread):
            await self.threads.add_sources(thread_id, [CLIENT])
            base = await self.snapshot(thread_id)
            checked = [
                [update._replace(values=checked_values(graph, update.values, base)) for update in step]
                for step in supersteps
            ]
            try:
                await graph.abulk_update_state(_config(thread_id, None), checked)
            except (InvalidUpdateError, ValueError) as error:
                raise InvalidRequestError(f"supersteps: {_first_line(error)}") from error
        values = (await self.snapshot(thread_id)).values
        if title := values.get("title"):
            await self.database.write(lambda connection: set_title(connection, thread_id, title))

    async def annotate(
        self,
        principal: Principal,
        thread_id: str,
        metadata: Mapping[str, Any],
        *,
        checkpoint: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Merge ``metadata`` into that of a checkpoint, the newest by default. Raises NotFoundError if there is none."""
        await self.threads.get(principal, thread_id, to_change=True)
        snapshot = await self.snapshot(thread_id, checkpoint)
        where = checkpoint_of(snapshot.config) or {}
        if snapshot.created_at is None:
            raise NotFoundError(f"Thread {thread_id} has no checkpoint yet.")
        reserved = {"source", "step", "parents", "run_id"} | {key for key in metadata if key.startswith("__")}
        if taken := sorted(reserved & set(metadata)):
            raise InvalidRequestError(f"metadata.{taken[0]}: is set by the server.")
        ns, checkpoint_id = where["checkpoint_ns"], where["checkpoint_id"]
        try:
            await self.database.write(
                lambda connection: annotate(connection, thread_id, ns, checkpoint_id, storable(metadata))
            )
        except TypeError as error:  # a number of more than 64 bits
            raise InvalidRequestError(f"metadata: cannot be stored: {error}.") from error
        return where

    async def _is_busy(self, thread_id: str) -> bool:
        now = utc_now()
        return any(not run.ended and run.is_due(now) for run in await RunStore(self.database).active(thread_id))

    @asynccontextmanager
    async def alone(self, thread: Thread, *, wait: float = LOCK_WAIT) -> AsyncIterator[None]:
        """Nothing runs on the thread inside of this. Raises ConflictError if something does."""
        await self.check_idle(thread.thread_id)
        async with self.lock.hold(thread.user_id, thread.thread_id, wait=wait):
            await self.check_idle(thread.thread_id)
            yield

    async def check_idle(self, thread_id: str) -> None:
        """Raises ConflictError if a run of the thread is active."""
        if await self._is_busy(thread_id):
            raise ConflictError(
                f"Thread {thread_id} has an active run. Wait for its end or stop it first.", code="thread_busy"
            )


def checked_values(graph: Agent, values: Mapping[str, Any] | None, base: StateSnapshot) -> dict[str, Any] | None:
    """``values`` of a request as the graph takes them. Raises InvalidRequestError."""
    if values is None:
        return None
    checked = dict(values)
    for key in checked:
        if key in HIDDEN_KEYS:
            raise InvalidRequestError(f"values.{key}: is set by the server.")
        if key not in graph.channels or key.startswith("__") or ":" in key:
            raise InvalidRequestError(f"values.{key}: the state of this thread has no such value.")
    if isinstance(title := checked.get("title"), str):
        checked["title"] = shortened(title)
    if "messages" in checked:
        known = {message.id: message for message in base.values.get("messages", ())}
        checked["messages"] = [
            _with_own_keys(message, known.get(message.id)) for message in client_messages(checked["messages"])
        ]
    return checked


def _with_own_keys(message: Any, known: BaseMessage | None) -> Any:
    """A message that comes back keeps what we had recorded with it: requests compiled from it must not change."""
    if known is None:
        return message
    own = {key: value for key, value in known.additional_kwargs.items() if key in OWN_KEYS}
    kwargs = {**message.additional_kwargs, **own}
    return message.model_copy(update={"additional_kwargs": kwargs, "name": message.name or known.name})


def _config(thread_id: str, checkpoint: Mapping[str, Any] | None) -> RunnableConfig:
    where: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": (checkpoint or {}).get("checkpoint_ns") or ""}
    if checkpoint_id := (checkpoint or {}).get("checkpoint_id"):
        where["checkpoint_id"] = checkpoint_id
    return {"configurable": where}


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]
