"""What a graph is given: the run's input, or what goes on from where the thread stands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, convert_to_messages
from langgraph.constants import START
from langgraph.types import Command, Send, StateSnapshot

from deerflow.agents.turn import FACTS
from deerflow.capability import Capabilities, NewTurn
from deerflow.config import AppConfig
from deerflow.runs.finalize import UNFINISHED, settle
from deerflow.runs.request import CommandRequest, Hooks, RunRequest, RunSpec
from deerflow.storage.provenance import CLIENT, ThreadProvenance
from deerflow.storage.runs import EMPTY_THREAD, Run, RunStatus, RunStore
from deerflow.threads.checkpoint import config_of, is_unfinished, provisional_title
from deerflow.threads.input import client_messages, messages_of, visible_input, with_facts

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from deerflow.agents.factory import Agent


@dataclass(frozen=True, slots=True)
class GraphInput:
    """What the graph is started with.

    Args:
        run: the run with what is known of it now.
        value: the graph's input; None goes on from the thread's newest checkpoint.
        nothing_left: the graph has nothing to do.
        unread: the input is saved, but no step has taken it in; the first state that the graph emits lacks it.
        messages: those of the input.
        earlier: what an attempt before this one added to the thread, its input included, if this one goes on with it.
    """

    run: Run
    config: RunnableConfig
    value: Any = None
    nothing_left: bool = False
    unread: bool = False
    messages: list[BaseMessage] = field(default_factory=list)
    earlier: list[BaseMessage] = field(default_factory=list)


@dataclass
class RunInput:
    """Makes what the graph of a run is given.

    Args:
        uploads: the thread's; those that a message came with are named in it.
        called: the facts of what a message calls of nouns.
        provenance: of the thread: what clients add, and addresses that the person writes.
        config: the snapshot that the run began with.
    """

    runs: RunStore
    capabilities: Capabilities
    run: Run
    spec: RunSpec
    agent: Agent
    uploads: Path
    called: Callable[[str], Awaitable[Mapping[str, Any]]]
    provenance: ThreadProvenance
    config: AppConfig

    async def prepare(self, *, again: bool) -> GraphInput:
        """Input and configuration for the next stretch of the run. A run whose process died resumes its last checkpoint.

        Args:
            again: the graph came to its end in this attempt, and messages wait that came too late for its last step.
        """
        run, config = self.run, _graph_config(self.run, self.spec.request)
        if again and (waiting := await arrivals(self.runs, run.run_id)):
            return GraphInput(run, _as_new_input(at_head(config)), {"messages": waiting}, messages=waiting)
        if run.attempt == 1 and run.checkpoint_before is not None and not again:  # begun with its claim
            return await self._first(config)
        saver: Any = self.agent.checkpointer
        tidied: list[BaseMessage] | None = None
        head = await saver.aget_tuple(config_of(run.thread_id))
        if run.checkpoint_before is None and (head is not None or run.position > 1):
            tidied = await self._take_over()
        if tidied is not None:
            head = await saver.aget_tuple(config_of(run.thread_id))
        head_id = head.config["configurable"]["checkpoint_id"] if head else EMPTY_THREAD
        if run.checkpoint_before is not None and head_id != run.checkpoint_before:
            return await self._resumed(config, head)
        self.run = replace(run, checkpoint_before=head_id)
        given = await self._first(config)
        messages = [message.id or "" for message in _of_people(given.messages)]
        await self.runs.began(run, head_id, message_ids=messages, from_checkpoint=self.spec.request.fork_from)
        return replace(given, messages=[*(tidied or ()), *given.messages])

    async def _first(self, config: RunnableConfig) -> GraphInput:
        """What a run begins with."""
        run, request = self.run, self.spec.request
        if request.command is not None and request.command.update is not None:
            await self.provenance.add(CLIENT)
        if request.command is not None or request.input is None:
            return GraphInput(run, config, _command(request.command) if request.command is not None else None)
        is_new = run.checkpoint_before == EMPTY_THREAD or (
            request.fork_from is not None and not await _messages(self.agent, config)
        )
        earlier = None if is_new else lambda: _messages(self.agent, config)
        value = await self._first_input(request.input, earlier)
        return GraphInput(run, config, value, messages=value["messages"])

    async def _first_input(
        self, asked: Mapping[str, Any] | list[Any] | str, earlier: Callable[[], Awaitable[Sequence[BaseMessage]]] | None
    ) -> dict[str, Any]:
        """Return the graph's input. ``earlier`` reads the thread's messages; None: it is new."""
        given = dict(asked) if isinstance(asked, Mapping) else {"messages": asked}
        said = client_messages(given.get("messages") or [])
        for message, message_id in zip(said, self.spec.message_ids, strict=False):
            message.id = message_id
        messages, facts = await asyncio.gather(self._with_facts(said), self._facts(said, earlier))
        given = visible_input({**given, "messages": []})
        if given.keys() - {"messages", "title"}:
            await self.provenance.add(CLIENT)
        if people := _of_people(messages):
            people[-1].additional_kwargs[FACTS] |= facts
            if earlier is None and not given.get("title"):
                given["title"] = provisional_title(people[0])
        return {**given, "messages": messages}

    async def _facts(
        self, said: Sequence[AnyMessage], earlier: Callable[[], Awaitable[Sequence[BaseMessage]]] | None
    ) -> Mapping[str, Any]:
        """Return what capabilities record with the last message of a person."""
        if not (people := _of_people(said)):
            return {}
        spec = self.spec
        turn = NewTurn(spec.principal, spec.agent, self.run.thread_id, people[-1].text, self.config, earlier)
        return await self.capabilities.facts(turn, spec.options.switched_off)

    async def _with_facts(self, said: Sequence[AnyMessage]) -> list[AnyMessage]:
        return await with_facts(
            said,
            run_id=self.run.run_id,
            turn_id=self.run.turn,
            now=self.run.created_at,
            time_zone=self.spec.request.time_zone,
            uploads_dir=self.uploads,
            called=self.called,
            config=self.config,
            provenance=self.provenance,
        )

    async def _resumed(self, config: RunnableConfig, head: Any) -> GraphInput:
        """The run's own steps are the newest: it goes on behind them."""
        run, request = self.run, self.spec.request
        snapshot = await self.agent.aget_state(at_head(config))
        known: set[str | None] = set()
        if run.checkpoint_before:
            before = await _messages(self.agent, config_of(run.thread_id, run.checkpoint_before))
            known = {message.id for message in before}
        earlier = [message for message in snapshot.values.get("messages") or () if message.id not in known]
        unread = START in snapshot.next
        if unread and head is not None:
            earlier += messages_of(head.checkpoint["channel_values"][START].get("messages") or [])
        stands = not is_unfinished(snapshot) or await _is_at_a_break(self.agent.checkpointer, head, snapshot, request)
        return GraphInput(run, at_head(config), nothing_left=stands, unread=unread, earlier=earlier)

    async def _take_over(self) -> list[BaseMessage] | None:
        """Tidy what the run before this one left over, unless it ended well.

        Messages for it that were not taken up stand before the input; a run without input takes them up itself.

        Returns:
            What joined the thread. None: the thread was not touched.
        """
        run, request = self.run, self.spec.request
        earlier = [
            other for other in await self.runs.of_thread(run.thread_id, limit=5) if other.position < run.position
        ]
        if earlier and earlier[0].status is RunStatus.SUCCESS:
            return None
        if request.input is None or request.fork_from is not None:
            await self.runs.adopt(run)
            return None
        if run.turn == run.run_id:
            await self.capabilities.turn_left(run.thread_id)
        undelivered = convert_to_messages(await self.runs.left_over(run))
        joined = await settle(self.agent, config_of(run.thread_id), why=UNFINISHED, joining=undelivered)
        await self.runs.delivered([message.id or "" for message in undelivered])
        return joined


async def arrivals(runs: RunStore, run_id: str) -> list[BaseMessage]:
    """The person's messages that wait for the run's next step."""
    return convert_to_messages(await runs.waiting_messages(run_id))


async def _is_at_a_break(saver: Any, head: Any, snapshot: StateSnapshot, request: RunRequest) -> bool:
    """Whether the run stood before or after a node where it has to stop, when its process died."""
    if not snapshot.next:
        return False
    if _any_of(snapshot.next, request.interrupt_before):
        return True
    return bool(request.interrupt_after) and _any_of(await _ran_last(saver, head), request.interrupt_after)


def _any_of(nodes: Collection[str], hooks: Hooks | None) -> bool:
    return bool(nodes) and (hooks == "*" or any(node in (hooks or ()) for node in nodes))


async def _ran_last(saver: Any, head: Any) -> set[str]:
    """The nodes of the step that made the checkpoint ``head``: they have seen more than in the one before."""
    earlier = await saver.aget_tuple(head.parent_config) if head.parent_config else None
    if earlier is None or head.metadata.get("source") != "loop":
        return set()
    seen = earlier.checkpoint["versions_seen"]
    ran = {node for node, versions in head.checkpoint["versions_seen"].items() if versions != seen.get(node)}
    return ran - {START}


def _of_people(messages: Sequence[BaseMessage]) -> list[HumanMessage]:
    return [message for message in messages if isinstance(message, HumanMessage)]


async def _messages(agent: Agent, config: RunnableConfig) -> Sequence[BaseMessage]:
    return (await agent.aget_state(config)).values.get("messages") or ()


def _command(asked: CommandRequest) -> Command[Any]:
    given: dict[str, Any] = {}
    if asked.resume is not None:
        given["resume"] = asked.resume
    if asked.update is not None:
        given["update"] = visible_input(asked.changes())
    if asked.goto is not None:
        targets = asked.goto if isinstance(asked.goto, list) else [asked.goto]
        given["goto"] = [target if isinstance(target, str) else Send(target.node, target.input) for target in targets]
    return Command(**given)


def _graph_config(run: Run, request: RunRequest) -> RunnableConfig:
    given = {key: value for key, value in request.configurable().items() if not key.startswith("__")}
    for key in ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"):
        given.pop(key, None)
    where = {"thread_id": run.thread_id} | ({"checkpoint_id": request.fork_from} if request.fork_from else {})
    return {
        "configurable": {**given, **where},
        "recursion_limit": request.recursion_limit(),
        "tags": request.tags(),
        "metadata": {**run.metadata, "run_id": run.run_id, "model_name": run.model_name or ""},
    }


def at_head(config: RunnableConfig) -> RunnableConfig:
    """Return the configuration for the same thread as it is now, not where the run forked from."""
    where = {key: value for key, value in config["configurable"].items() if key != "checkpoint_id"}
    return {**config, "configurable": where}


def _as_new_input(config: RunnableConfig) -> RunnableConfig:
    """LangGraph takes input for a resumption, and drops it, when the newest checkpoint names the same run."""
    metadata = {key: value for key, value in (config.get("metadata") or {}).items() if key != "run_id"}
    return {**config, "metadata": metadata}
