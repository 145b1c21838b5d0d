"""Subagents that work in the background of their run.

Each is a graph on a thread of its own, kept by the run's checkpointer, so that another process goes on with it. Its result is a
message for the run, like one of the person: durable before the subagent's checkpoints go, and with an id that makes it one.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from deerflow.context.subagent_stops import SubagentStops
from deerflow.events.jsonable import message_json
from deerflow.subagents.task import TaskResult, begun, delivery, delivery_id, subagents_in, task_of
from deerflow.threads.checkpoint import config_of, is_unfinished

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from deerflow.agents.factory import Agent
    from deerflow.context import RunContext
    from deerflow.events.graph_stream import GraphStream
    from deerflow.storage.runs import Run, RunStore


@dataclass(eq=False)
class BackgroundSubagents:
    """Those of one attempt at a run."""

    runs: RunStore
    run: Run
    stream: GraphStream | None = None
    """Takes their events. There is one before any of them begins."""
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    """What they have of the run's configuration."""
    stops: SubagentStops = field(default_factory=SubagentStops)
    _tasks: dict[str, tuple[TaskResult, asyncio.Task[None]]] = field(
        default_factory=dict[str, "tuple[TaskResult, asyncio.Task[None]]"]
    )

    @property
    def running(self) -> list[TaskResult]:
        return [started for started, task in self._tasks.values() if not task.done()]

    def start(self, given: TaskResult, context: RunContext, agent: Agent) -> None:
        """Begin a subagent of ``agent``, or go on with it. Nothing happens if this process has it already."""
        if given["namespace"] not in self._tasks:
            # Nothing of the graph that called: this one is no part of it.
            work = self._work(given, context, agent)
            task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
            self._tasks[given["namespace"]] = (given, task)

    async def resume(self, messages: Iterable[BaseMessage], context: RunContext, agent: Agent) -> None:
        """Go on with those that an attempt before this one began."""
        for given in await self.undelivered(messages):
            self.start(given, context, agent)

    async def undelivered(self, messages: Iterable[BaseMessage]) -> list[TaskResult]:
        """Subagents that these messages of the run started, whose results have not come."""
        found = list(messages)
        started = [task for message in found if (task := task_of(message)) and task["status"] == "running"]
        if not started:
            return []
        known = {message.id for message in found}
        known |= {message["id"] for message in await self.runs.waiting_messages(self.run.run_id)}
        return [task for task in started if delivery_id(task["namespace"]) not in known]

    async def next(self, *, within: float | None = None) -> None:
        """Wait for a result, if there is one to come, ``within`` so many seconds. Raises what a subagent could not make a result of."""
        working = [task for _, task in self._tasks.values() if not task.done()]
        if working:
            await asyncio.wait(working, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        for _, task in self._tasks.values():
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def cancel(self, task_id: str) -> bool:
        """Stop one subagent and wait for its end. False: there is none of this id at work."""
        for started, task in self._tasks.values():
            if started["task_id"] == task_id and not task.done():
                self.stops.ask(task_id)
                await asyncio.wait([task])
                return True
        return False

    async def forget(self, given: TaskResult, agent: Agent) -> None:
        """Delete the checkpoints of a subagent."""
        saver: Any = agent.checkpointer
        await saver.adelete_thread(self._thread(given))

    async def aclose(self) -> None:
        """Stop all. Another attempt goes on with them."""
        working = [task for _, task in self._tasks.values() if not task.done()]
        for task in working:
            task.cancel()
        if working:
            await asyncio.wait(working)

    async def _work(self, given: TaskResult, context: RunContext, agent: Agent) -> None:
        found, stream = subagents_in(agent), self.stream
        assert found is not None and stream is not None
        stream.emit(begun(given, background=True))
        result = await found.play(given, context, stream.emit, partial(self._states, given, agent, stream))
        rows = context.trust.provenance
        foreign = rows is not None and await rows.is_tainted()
        await self.runs.steer(self.run.run_id, message_json(delivery(result, foreign=foreign)))
        await self.forget(given, agent)

    async def _states(
        self,
        given: TaskResult,
        agent: Agent,
        stream: GraphStream,
        graph: Agent,
        value: dict[str, Any],
        config: RunnableConfig,
        context: RunContext,
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Plays the graph of a subagent."""
        namespace = given["namespace"]
        own = graph.copy(update={"checkpointer": agent.checkpointer, "store": agent.store})
        whole: Any = {**self.config, **config, **config_of(self._thread(given))}
        stands = await own.aget_state(whole)
        if stands.values and not is_unfinished(stands):
            stream.enter((namespace,), stands.values["messages"])
            yield stands.values
            return
        playing = stream.play_beside(own, namespace, None if stands.values else value, whole, context)
        async with aclosing(playing):
            async for state in playing:
                yield state

    def _thread(self, given: TaskResult) -> str:
        return f"{self.run.thread_id}:{given['namespace']}"
