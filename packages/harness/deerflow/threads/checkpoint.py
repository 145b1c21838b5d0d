"""What is known about threads from their checkpoints, and their states as clients of LangGraph's API read them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, DeltaChannelHistory
from langgraph.types import Overwrite, StateSnapshot
from pydantic import Field
from typing_extensions import TypedDict

from deerflow.agents.factory import Agent
from deerflow.events.jsonable import message_json, plain, values_json
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, sandbox_id
from deerflow.storage.checkpoints import Checkpointer
from deerflow.storage.threads import Thread
from deerflow.tools.clarification import NAME as ASK
from deerflow.tools.clarification import Question, question

TITLE_LENGTH = 60
_DIRECTORIES = {"workspace_path": WORKSPACE, "uploads_path": UPLOADS, "outputs_path": OUTPUTS}
_HIDDEN_METADATA = frozenset({"counters_since_delta_snapshot", "thread_id"})

Render = Callable[[BaseMessage], dict[str, Any]]


def config_of(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    """LangGraph's configuration for a thread, as it is now or as it was at a checkpoint."""
    where = {"thread_id": thread_id} | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})
    return {"configurable": where}


def is_unfinished(snapshot: StateSnapshot) -> bool:
    """A step is still to do: the process died or was stopped in the middle of a turn.

    ``next`` alone is not enough: it is empty when a step's results were saved but its checkpoint was not.
    """
    return bool(snapshot.next or snapshot.tasks)


def waits(snapshot: StateSnapshot) -> bool:
    """The person has to decide about something, or to answer a question."""
    return bool(snapshot.interrupts) or question_of(snapshot.values.get("messages") or ()) is not None


def question_of(messages: Sequence[BaseMessage]) -> Question | None:
    """The agent's question that the messages end with."""
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.append(message)
    asked = {result.tool_call_id for result in results if result.name == ASK and result.status != "error"}
    before = messages[-1 - len(results)] if asked and len(results) < len(messages) else None
    calls = before.tool_calls if isinstance(before, AIMessage) else ()
    return next((question(call["args"]) for call in calls if call["id"] in asked), None)


async def compact(agent: Agent, checkpointer: Checkpointer, thread_id: str) -> bool:
    """Keep only the thread's present state. Costs the way back to earlier turns; nothing said is lost.

    Returns:
        False if the thread has an unfinished turn, which must keep its checkpoints.
    """
    config = config_of(thread_id)
    snapshot = await agent.aget_state(config)
    if is_unfinished(snapshot) or not snapshot.values:
        return False
    newest = await agent.aupdate_state(config, {"messages": Overwrite(snapshot.values["messages"])})
    await checkpointer.adelete_before(newest)
    return True


def provisional_title(message: HumanMessage) -> str:
    """A thread's title until a better one is made: how its first message begins."""
    line = " ".join(message.text.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


# states as clients read them -------------------------------------------------------------------------------------------


class StateTask(TypedDict):
    id: str
    name: str
    path: Any
    error: str | None
    interrupts: list[dict[str, Any]]
    checkpoint: dict[str, Any] | None
    state: dict[str, Any] | None
    result: Any


class StateView(TypedDict):
    values: dict[str, Any]
    next: Annotated[
        list[str], Field(description="The nodes to run next. Empty: the thread is done until new input comes.")
    ]
    tasks: list[StateTask]
    metadata: dict[str, Any]
    created_at: str | None
    checkpoint: dict[str, Any]
    parent_checkpoint: dict[str, Any] | None
    interrupts: list[dict[str, Any]]
    checkpoint_id: str | None
    parent_checkpoint_id: str | None


def state_view(snapshot: StateSnapshot, thread: Thread | None = None, message: Render = message_json) -> StateView:
    """Return a state as clients read it.

    Args:
        thread: whose state it is; None: a subgraph's.
        message: renders a message.
    """
    checkpoint = checkpoint_of(snapshot.config)
    parent = checkpoint_of(snapshot.parent_config) if snapshot.parent_config else None
    return {
        "values": state_values(snapshot.values, thread, message),
        "next": list(snapshot.next),
        "tasks": [_task_view(task) for task in snapshot.tasks],
        "metadata": {
            key: plain(value)
            for key, value in (snapshot.metadata or {}).items()
            if key not in _HIDDEN_METADATA and not key.startswith("__")
        },
        "created_at": snapshot.created_at,
        "checkpoint": checkpoint,
        "parent_checkpoint": parent,
        "interrupts": [plain(interrupt) for interrupt in snapshot.interrupts],
        "checkpoint_id": checkpoint["checkpoint_id"],
        "parent_checkpoint_id": parent["checkpoint_id"] if parent else None,
    }


def state_values(values: Any, thread: Thread | None = None, message: Render = message_json) -> dict[str, Any]:
    """Return values without host paths and pictures' bytes. Those of a thread have the title of now, and as soon as something was said
    its directories as the agent sees them, its sandbox, and the files that came with the person's last message."""
    shown = values_json(values if isinstance(values, Mapping) else {}, message)
    if thread is None:
        return shown
    if thread.title:
        shown["title"] = thread.title
    if messages := shown.get("messages"):
        said = next((each for each in reversed(messages) if each.get("type") == "human"), {})
        shown |= {
            "thread_data": _DIRECTORIES,
            "sandbox": {"sandbox_id": sandbox_id(thread.thread_id, thread.user_id)},
            "uploaded_files": (said.get("additional_kwargs") or {}).get("files") or [],
        }
    return shown


def without_computed(values: Mapping[str, Any], user_id: str) -> dict[str, Any]:
    """Return values that a client sends without those that :func:`state_values` made: they come back with all others.

    Args:
        user_id: the client's; a sandbox of someone else is no such value.
    """

    def is_computed(key: str, value: Any) -> bool:
        if key == "sandbox":
            known = value.get("sandbox_id") if isinstance(value, Mapping) and len(value) == 1 else None
            return isinstance(known, str) and known.startswith(sandbox_id("", user_id))
        return key == "uploaded_files" or (key == "thread_data" and value == _DIRECTORIES)

    return {key: value for key, value in values.items() if not is_computed(key, value)}


def checkpoint_of(config: RunnableConfig | dict[str, Any]) -> dict[str, Any]:
    """``{thread_id, checkpoint_ns, checkpoint_id}`` of a configuration."""
    where = config["configurable"]
    return {
        "thread_id": where["thread_id"],
        "checkpoint_ns": where.get("checkpoint_ns", ""),
        "checkpoint_id": where.get("checkpoint_id"),
    }


def _task_view(task: Any) -> StateTask:
    nested = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": plain(task.path),
        "error": None if task.error is None else str(task.error),
        "interrupts": [plain(interrupt) for interrupt in task.interrupts],
        "checkpoint": checkpoint_of(nested) if isinstance(nested, dict) else None,
        "state": {**state_view(nested)} if isinstance(nested, StateSnapshot) else None,
        "result": plain(task.result),
    }


async def read_history(
    agent: Agent,
    config: RunnableConfig,
    *,
    limit: int,
    before: RunnableConfig | None = None,
    filter: dict[str, Any] | None = None,
) -> list[StateSnapshot]:
    """Snapshots of a thread, the newest first: what ``agent.aget_state_history`` gives, messages shared between them.

    LangGraph rebuilds the messages of each checkpoint by itself, from the last full snapshot on. Neighbours differ by what
    one step wrote, so here each is made from the one before, and a page costs what reading it once does.
    """
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
