"""Subagents that work in the background of their run.

Each is a graph on a thread of its own, kept by the run's checkpointer, so that another process goes on with it. Its result is a
message for the run, like one of the person: durable before the subagent's checkpoints go, and with an id that makes it one.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage

from deerflow.events.jsonable import message_json
from deerflow.subagents.task import TaskResult, delivery, delivery_id, task_of

if TYPE_CHECKING:
    from deerflow.context import SubagentStops
    from deerflow.storage.runs import RunStore

Work = Callable[[], Awaitable[TaskResult]]


class BackgroundSubagents:
    """Those of one attempt at a run.

    Args:
        forget: deletes the checkpoints of a subagent, which its namespace names.
    """

    def __init__(self, runs: RunStore, run_id: str, forget: Callable[[str], Awaitable[None]]) -> None:
        self._runs, self._run_id, self._forget = runs, run_id, forget
        self._tasks: dict[str, tuple[TaskResult, asyncio.Task[None]]] = {}

    @property
    def running(self) -> list[TaskResult]:
        return [started for started, task in self._tasks.values() if not task.done()]

    def start(self, started: TaskResult, work: Work) -> None:
        """Begin a subagent, or go on with it. Nothing happens if this process has it already."""
        if started["namespace"] not in self._tasks:
            # Nothing of the graph that called: this one is no part of it.
            task = asyncio.get_running_loop().create_task(self._work(started, work), context=contextvars.Context())
            self._tasks[started["namespace"]] = (started, task)

    async def undelivered(self, messages: Iterable[BaseMessage]) -> list[TaskResult]:
        """Subagents that these messages of the run started, whose results have not come."""
        found = list(messages)
        known = {message.id for message in found}
        known |= {message["id"] for message in await self._runs.waiting_messages(self._run_id)}
        started = [task for message in found if (task := task_of(message)) and task["status"] == "running"]
        return [task for task in started if delivery_id(task["namespace"]) not in known]

    async def next(self) -> None:
        """Wait for a result, if there is one to come. Raises what a subagent could not make a result of."""
        working = [task for _, task in self._tasks.values() if not task.done()]
        if working:
            await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
        for _, task in self._tasks.values():
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def cancel(self, task_id: str, stops: SubagentStops) -> bool:
        """Stop one subagent and wait for its end. False: there is none of this id at work."""
        for started, task in self._tasks.values():
            if started["task_id"] == task_id and not task.done():
                stops.ask(task_id)
                await asyncio.wait([task])
                return True
        return False

    async def aclose(self) -> None:
        """Stop all. Another attempt goes on with them."""
        working = [task for _, task in self._tasks.values() if not task.done()]
        for task in working:
            task.cancel()
        if working:
            await asyncio.wait(working)

    async def _work(self, started: TaskResult, work: Work) -> None:
        result = await work()
        await self._runs.steer(self._run_id, message_json(delivery(result)))
        await self._forget(started["namespace"])
