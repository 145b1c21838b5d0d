"""A page of a thread's history at the cost of reading it once.

LangGraph rebuilds the messages of each checkpoint by itself, from the last full snapshot on. Neighbours differ by what
one step wrote, so here each is made from the one before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, DeltaChannelHistory
from langgraph.types import StateSnapshot

from deerflow.agents.factory import Agent


async def read_history(
    agent: Agent,
    config: RunnableConfig,
    *,
    limit: int,
    before: RunnableConfig | None = None,
    filter: dict[str, Any] | None = None,
) -> list[StateSnapshot]:
    """Snapshots of a thread, the newest first: what ``agent.aget_state_history`` gives, messages shared between them."""
    saver = agent.checkpointer
    assert isinstance(saver, BaseCheckpointSaver)
    channels = {name: channel for name, channel in agent.channels.items() if isinstance(channel, DeltaChannel)}
    reader = agent.copy(update={"checkpointer": _PageSaver(saver, channels)})
    page = reader.aget_state_history(config, before=before, limit=limit, filter=filter)
    return [snapshot async for snapshot in page]


class _PageSaver(BaseCheckpointSaver[Any]):
    """Reads through another saver, and knows the values of delta channels at every checkpoint that it has listed."""

    def __init__(self, saver: BaseCheckpointSaver[Any], channels: Mapping[str, DeltaChannel[Any]]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._channels = channels
        self._values: dict[str, dict[str, Any]] = {}

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._saver.aget_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        page = [found async for found in self._saver.alist(config, filter=filter, before=before, limit=limit)]
        by_id = {_id(found.config): found for found in page}
        for found in reversed(page):
            parent = by_id.get(_id(found.parent_config)) if found.parent_config else None
            self._values[_id(found.config)] = await self._values_of(found, parent)
        for found in page:
            yield self._with_shared_values(found)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        values = self._values.get(_id(config))
        if values is None:
            return await self._saver.aget_delta_channel_history(config=config, channels=channels)
        return {name: {"seed": values[name], "writes": []} for name in channels}

    def _with_shared_values(self, found: CheckpointTuple) -> CheckpointTuple:
        stored, values = found.checkpoint["channel_values"], self._values[_id(found.config)]
        shared = {**stored, **{name: value for name, value in values.items() if name in stored}}
        return found._replace(checkpoint={**found.checkpoint, "channel_values": shared})

    async def _values_of(self, found: CheckpointTuple, parent: CheckpointTuple | None) -> dict[str, Any]:
        values: dict[str, Any] = {}
        unknown: list[str] = []
        known = self._values.get(_id(parent.config)) if parent else None
        for name, channel in self._channels.items():
            stored = found.checkpoint["channel_values"]
            if name in stored:
                values[name] = _shared(channel.from_checkpoint(stored[name]).get(), known[name] if known else ())
            elif parent is not None and known is not None:
                writes = [write for write in parent.pending_writes or () if write[1] == name]
                values[name] = _after(channel, known[name], writes)
            else:
                unknown.append(name)
        if unknown:
            histories = await self._saver.aget_delta_channel_history(config=found.config, channels=unknown)
            for name, history in histories.items():
                channel = self._channels[name]
                values[name] = _after(channel, history.get("seed", []), history["writes"])
        return values


def _after(channel: DeltaChannel[Any], before: Any, writes: Sequence[Any]) -> Any:
    replayed = channel.from_checkpoint(before)
    replayed.replay_writes(writes)
    return replayed.get()


def _shared(value: Any, known: Any) -> Any:
    """``value`` made of the messages that are known already, where they are the same."""
    if not isinstance(value, list) or not known:
        return value
    by_id = {message.id: message for message in known if isinstance(message, BaseMessage)}
    return [same if isinstance(item, BaseMessage) and (same := by_id.get(item.id)) == item else item for item in value]


def _id(config: RunnableConfig) -> str:
    return config["configurable"]["checkpoint_id"]
