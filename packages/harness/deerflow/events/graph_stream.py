"""Write a graph's stream into the log of its run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables.config import merge_configs

from deerflow.events.jsonable import HIDDEN_KEYS, chunk_json, message_json, plain, values_json
from deerflow.models.context_window import BYTES_PER_TOKEN, streamed_bytes
from deerflow.models.pricing import ENTRY
from deerflow.storage.threads import LEAD_AGENT
from deerflow.subagents.task import EVENTS, TASK_RESULT, TaskResult, head_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from deerflow.agents.factory import Agent
    from deerflow.context import RunContext
    from deerflow.events.log import EventWriter
from deerflow.events.answer_watch import AnswerWatch
from deerflow.events.usage_meter import UsageMeter

ALWAYS = ("values", "updates", "messages", "custom")
ON_REQUEST = ("tasks", "checkpoints", "debug")
"""Modes that cost too much to be recorded without need: only runs whose creator asked for them have them. So does ``events``."""

LLM_RETRY = "llm_retry"
"""Type of the custom event which announces that the model is asked again: what it had streamed is void."""
STOPPED = "stopped"
"""Key in an AI message's ``additional_kwargs``: the person stopped the answer here."""


@dataclass(slots=True)
class _OpenAnswer:
    """An answer on its way: of which graph, from which entry of the configuration, and what of it has come."""

    namespace: tuple[str, ...]
    entry: str | None
    pieces: list[AIMessageChunk] = field(default_factory=list[AIMessageChunk])


class GraphStream:
    """Plays a graph and appends its events to the log.

    Args:
        writer: of the run's log.
        meter: counts what is used.
        asked: stream modes that the run's creator named.
        joined: called with the ids of all messages that join the thread, when their step has ended.
        answered: awaited when the model has answered and asks for no tools, before the graph goes on.
        subgraphs: record each state of the graphs inside of this one, too.
    """

    def __init__(
        self,
        writer: EventWriter,
        meter: UsageMeter,
        asked: Collection[str],
        joined: Callable[[list[BaseMessage]], None],
        answered: Callable[[], Awaitable[None]],
        *,
        subgraphs: bool = False,
    ) -> None:
        self._writer = writer
        self._meter = meter
        modes = [*ALWAYS, *(mode for mode in ON_REQUEST if mode in asked)]
        self._options: dict[str, Any] = {"stream_mode": modes, "subgraphs": True}
        self._has_events = "events" in asked
        self._joined = joined
        self._answered = answered
        self._subgraphs = subgraphs
        self._partial: dict[str, list[str]] = {}
        """Text of answers that are being streamed by the agent itself, by id: what is left of them when the run is stopped."""
        self._open: dict[str, _OpenAnswer] = {}
        """What was streamed so far of answers that are on their way, by id."""
        self._state: dict[str, Any] | None = None
        self._began: dict[str, Any] | None = None
        """Which message stands before those with which the run began, as clients read it."""
        self._unread = False
        self._joining: Sequence[BaseMessage] | None = None
        self._tasks: dict[str, TaskResult] = {}
        """What was emitted when the subagent of a namespace began."""
        self._ended: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Which subagents have said how they ended, by the ids of their calls."""
        self._entered: set[tuple[str, ...]] = set()
        self._streamed: dict[tuple[str, ...], str | None] = {}
        """Which message each graph has streamed last."""

    async def play(
        self,
        agent: Agent,
        graph_input: Any,
        config: RunnableConfig,
        context: RunContext,
        *,
        unread: bool = False,
        joining: Sequence[BaseMessage] | None = None,
        **options: Any,
    ) -> None:
        """Run the graph to its end, its next interrupt, or an exception.

        Args:
            unread: the first state is older than what has been emitted already, and is not emitted.
            joining: messages with which the run begins; empty if it forks without any, None if it only goes on.
            options: ``durability``, ``interrupt_before``, ``interrupt_after``.
        """
        self._unread = unread
        self._joining = joining
        given: dict[str, Any] = {"context": context, **self._options, **options}
        if self._has_events:
            await self._play_events(agent, graph_input, config, given)
            return
        watch = AnswerWatch(self._writer)
        stream: Any = agent.astream(graph_input, merge_configs(config, {"callbacks": [watch]}), **given)
        try:
            async with aclosing(stream):
                async for namespace, mode, payload in stream:
                    self._take(namespace, mode, payload)
                    if mode == "updates" and not namespace and _is_answer(payload):
                        await self._answered()
        finally:
            watch.close()

    async def play_beside(
        self, agent: Agent, namespace: str, graph_input: Any, config: RunnableConfig, context: RunContext
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Play another graph beside it, whose events are those of a namespace. Yields its states."""
        stream: Any = agent.astream(graph_input, config, context=context, durability="sync", **self._options)
        async with aclosing(stream):
            async for inner, mode, payload in stream:
                self._take((namespace, *inner), mode, payload)
                if mode == "values" and not inner:
                    yield payload

    def emit(self, payload: dict[str, Any]) -> None:
        """A custom event of the run."""
        self._take((), "custom", payload)

    async def _play_events(
        self, agent: Agent, graph_input: Any, config: RunnableConfig, given: Mapping[str, Any]
    ) -> None:
        root = config.get("run_id") or uuid4()
        stream: Any = agent.astream_events(graph_input, {**config, "run_id": root}, version="v2", **given)
        async with aclosing(stream):
            async for event in stream:
                if event["event"] == "on_chain_stream" and event["run_id"] == str(root):
                    self._take(*event["data"]["chunk"])
                else:
                    self._writer.append("events", plain(event))

    def emit_undone(self) -> None:
        """The run was rolled back: the thread ends where it stood before."""
        if self._began is not None:
            self._writer.append("input", {**self._began, "values": {"messages": []}})

    @property
    def has_begun(self) -> bool:
        """Whether it was emitted with what the run begins."""
        return self._joining is None

    @property
    def has_tasks(self) -> bool:
        """True once a subagent has begun."""
        return bool(self._tasks)

    def partial(self) -> AIMessage | None:
        """The answer that was cut off in the middle, if there is text of it."""
        for message_id, pieces in reversed(self._partial.items()):
            if text := "".join(pieces).strip():
                return AIMessage(content=text, id=message_id, additional_kwargs={STOPPED: True})
        return None

    def count_open(self) -> None:
        """Count what was streamed of answers that were cut off."""
        for message_id, answer in self._open.items():
            tokens = -(-sum(map(streamed_bytes, answer.pieces)) // BYTES_PER_TOKEN)
            self._meter.count_streamed(message_id, tokens, self._caller(answer.namespace), answer.entry)
        self._open.clear()

    def _take(self, namespace: tuple[str, ...], mode: str, payload: Any) -> None:
        if mode == "messages":
            self._message(namespace, *payload)
        elif mode == "values":
            self._values(namespace, payload)
        elif mode == "updates":
            self._update(namespace, payload)
        elif mode == "custom":
            self._writer.append("custom", plain(payload), namespace)
            if isinstance(payload, dict):
                self._follow_task(payload)
            is_retry = isinstance(payload, dict) and payload.get("type") == LLM_RETRY and not namespace
            if is_retry and self._state is not None:  # clients that show the half answer drop it
                self._writer.values(self._state)
        else:
            self._writer.append(mode, plain(payload), namespace)

    async def until_ended(self, task_id: str) -> None:
        """A subagent has ended. Wait until what it emitted was taken from the graph and is durable: no later attempt replays it."""
        await self._ended[task_id].wait()
        with suppress(Exception):  # the log tries again by itself, and whoever lost the run learns it at the next step
            await self._writer.flush()

    def cancel_tasks(self) -> None:
        """The run was stopped, and its subagents with it."""
        for started in self._tasks.values():
            if not self._ended[started["task_id"]].is_set():
                error = {"status": "cancelled", "error": "The run was stopped."}
                self.emit({"type": EVENTS["cancelled"], **head_of(started), **error})

    def _follow_task(self, payload: dict[str, Any]) -> None:
        kind = payload.get("type")
        if kind == "task_started":
            self._tasks[payload["namespace"][0]] = cast("TaskResult", dict(payload))
        elif kind in EVENTS.values():
            self._ended[payload["task_id"]].set()

    def _caller(self, namespace: tuple[str, ...]) -> str:
        if not namespace:
            return LEAD_AGENT
        task = self._tasks.get(namespace[0])
        return f"subagent:{task['subagent_type'] if task else 'unknown'}"

    def _values(self, namespace: tuple[str, ...], payload: dict[str, Any]) -> None:
        if namespace:
            self.enter(namespace, payload.get("messages") or ())
            if self._subgraphs:
                self._writer.append("values", values_json(payload), namespace)
            return
        if self._joining is not None:
            self._began = emit_input(self._writer, payload, self._joining)
            self._joining = None
        if self._unread:
            self._unread = False
        else:
            self._state = payload
            self._writer.values(payload)

    def enter(self, namespace: tuple[str, ...], messages: Sequence[BaseMessage]) -> None:
        """With what a graph inside of this one begins: its input, and what it did before the process died."""
        if namespace in self._entered:
            return
        self._entered.add(namespace)
        self._writer.append("input", {"values": {"messages": [message_json(one) for one in messages]}}, namespace)
        for message in messages:
            self._meter.add(message, self._caller(namespace))

    def _message(self, namespace: tuple[str, ...], message: BaseMessage, metadata: Mapping[str, Any]) -> None:
        where = {"langgraph_node": metadata.get("langgraph_node")}
        if namespace:
            where["langgraph_checkpoint_ns"] = metadata.get("langgraph_checkpoint_ns")
        if not isinstance(message, AIMessageChunk):
            self._writer.append("messages", [message_json(message), where], namespace)
            return
        if (answer := self._open.get(message.id or "")) is None:
            answer = self._open[message.id or ""] = _OpenAnswer(namespace, metadata.get(ENTRY))
        answer.pieces.append(message)
        if message.chunk_position == "last":
            del self._open[message.id or ""]
        if not namespace and message.id and (text := message.text):
            self._partial.setdefault(message.id, []).append(text)
        if (piece := chunk_json(message)) is not None:
            first = self._streamed.get(namespace) != message.id
            self._streamed[namespace] = message.id
            self._writer.append("messages", [piece, where], namespace, first=first)

    def _update(self, namespace: tuple[str, ...], payload: Mapping[str, Any]) -> None:
        shown: dict[str, Any] = {}
        joined: list[BaseMessage] = []
        for node, writes in payload.items():
            shown[node] = plain(_visible(writes))
            joined += _messages_in(writes)
        self._writer.append("updates", shown, namespace)
        if joined and not namespace:  # also half answers, after which the model was asked again
            self._partial.clear()
        for message in joined:
            self._meter.add(message, self._caller(namespace))
        if joined and not namespace:
            self._joined(joined)


NODES = {"human": "model", "ai": "model", "tool": "tools"}
"""Nodes at which messages join a thread; those of the person that steer a run, with the model's next."""


def emit_message(writer: EventWriter, message: BaseMessage) -> None:
    """Emit a message that joined the thread without a step of the graph, as if one had brought it."""
    shown, node = message_json(message), NODES[message.type]
    writer.append("messages", [shown, {"langgraph_node": node}])
    writer.append("updates", {node: {"messages": [shown]}})


def emit_added(writer: EventWriter, state: Mapping[str, Any], added: Collection[str | None]) -> None:
    """Emit messages that joined the thread without a step of the graph: what was left when a run was stopped."""
    messages = [message for message in state.get("messages") or () if message.id in added]
    writer.append("input", {"values": {"messages": list(map(message_json, messages))}})
    for message in messages:
        if message.type == "tool" or message.name == TASK_RESULT:  # of others, clients have the pieces or wrote them
            emit_message(writer, message)


def emit_input(writer: EventWriter, state: Mapping[str, Any], joining: Sequence[BaseMessage]) -> dict[str, Any]:
    """Emit with what a run begins, so that clients need no snapshot: where its messages stand, they, and the other values."""
    messages, ids = state.get("messages") or [], {message.id for message in joining}
    at = next((index for index, message in enumerate(messages) if message.id in ids), len(messages))
    after = next((message.id for message in reversed(messages[:at]) if _is_shown(message)), None)
    values = values_json({key: value for key, value in state.items() if key != "messages"})
    shown = [message_json(message) for message in joining]
    writer.append("input", {"after": after, "values": {**values, "messages": shown}})
    return {"after": after}


def _is_shown(message: BaseMessage) -> bool:
    return message.type in ("human", "ai", "tool") and not message.additional_kwargs.get("hide_from_ui")


def _is_answer(update: Mapping[str, Any]) -> bool:
    messages = [message for writes in update.values() for message in _messages_in(writes)]
    return any(isinstance(message, AIMessage) and not message.tool_calls for message in messages)


def _visible(writes: Any) -> Any:
    if isinstance(writes, Mapping):
        return {key: value for key, value in writes.items() if key not in HIDDEN_KEYS}
    if isinstance(writes, list):
        return [_visible(write) for write in writes]
    return writes


def _messages_in(writes: Any) -> list[BaseMessage]:
    if isinstance(writes, list):
        return [message for write in writes for message in _messages_in(write)]
    messages = writes.get("messages") if isinstance(writes, Mapping) else None
    found = messages if isinstance(messages, list) else [messages]
    return [message for message in found if isinstance(message, BaseMessage)]
