"""Turns in this very process: the runs of a client without a server, executed by whoever asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from deerflow.config import Paths
from deerflow.events.log import EventLog
from deerflow.events.record import EPOCH
from deerflow.events.streams.client_events import MessageDicts, StreamEvent, TurnEvents
from deerflow.features.assistants import AssistantService
from deerflow.identity import Principal
from deerflow.runs.agent_provider import Workshop
from deerflow.runs.backend import Connections
from deerflow.runs.executor import Executor
from deerflow.runs.request import RunRequest
from deerflow.runs.service import RunService
from deerflow.storage.database import Database
from deerflow.storage.runs import Run, RunStatus, RunStore
from deerflow.storage.tables import utc_now
from deerflow.storage.thread_lock import ThreadBusyError
from deerflow.storage.threads import ThreadRepository
from deerflow.tasks.local import LocalQueue
from deerflow.threads.checkpoint import config_of, is_unfinished

WAIT = 10.0
"""Seconds to wait for another turn of the thread: one that is just being stopped needs a moment to clean up."""
PATIENCE = 0.2
"""Seconds of silence after which we look whether the execution failed before it could say so."""


@dataclass(frozen=True, slots=True)
class _Engine:
    connections: Connections
    log: EventLog
    executions: dict[asyncio.Task[None], str]
    """Of runs, whose ids they have."""
    executor: Executor
    service: RunService


class LocalTurns:
    """The rows of the runs are in the database like those of a server, so another process sees and can finish them.

    Usable from several event loops; each gets an engine of its own.
    """

    def __init__(self, database: Database, paths: Paths, workshop: Workshop, principal: Principal) -> None:
        self._database = database
        self._paths = paths
        self._workshop = workshop
        self._principal = principal
        self._runs = RunStore(database)
        self._threads = ThreadRepository(database)
        self._dicts = MessageDicts()
        self._engines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Engine] = WeakKeyDictionary()

    async def start(self, thread_id: str, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        """A turn, from its first event to its end. Closing the generator stops it; what it did is kept.

        Raises:
            ThreadBusyError: another turn of the thread is running; nothing was said yet.
        """
        engine = self._engine()
        await self._threads.create(self._principal, thread_id)
        run = await engine.service.start(self._principal, request, thread_id=thread_id)
        async with aclosing(self._followed(engine, run)) as events:
            async for event in events:
                yield event

    async def resume(self, thread_id: str, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        """Go on with a turn that was cut off; ends at once if there is none.

        Raises:
            ThreadBusyError: the turn is not cut off, it is still running.
        """
        engine = self._engine()
        left_over = await self._runs.active(thread_id)
        if left_over:
            turn = self._followed(engine, left_over[0])
        elif await self.is_unfinished(thread_id):
            turn = self.start(thread_id, request.model_copy(update={"input": None}))
        else:
            yield TurnEvents(lambda: None).end()
            return
        async with aclosing(turn) as events:
            async for event in events:
                yield event

    async def is_unfinished(self, thread_id: str) -> bool:
        """Whether a turn of the thread is still to be ended."""
        if await self._runs.active(thread_id):
            return True
        agent = await self._workshop.agent()
        return is_unfinished(await agent.aget_state(config_of(thread_id)))

    def hold(self, thread_id: str) -> Any:
        """Be the only one who changes the thread. Entering raises ThreadBusyError at once if a turn is running."""
        return self._engine().connections.lock.hold(self._principal.user_id, thread_id, wait=0)

    async def aclose(self) -> None:
        """Write what is not yet written, on the loop that calls."""
        if (engine := self._engines.pop(asyncio.get_running_loop(), None)) is not None:
            for execution in list(engine.executions):
                await self._stop(engine, execution)
            await engine.log.aclose()
            if engine.connections.wake is not None:
                await engine.connections.wake.aclose()
            await engine.connections.lock.aclose()

    async def _followed(self, engine: _Engine, run: Run) -> AsyncGenerator[StreamEvent, None]:
        """Execute the run and tell what it says."""
        shown = TurnEvents(lambda: engine.log.latest_values(run.thread_id), self._dicts)
        execution = asyncio.create_task(self._execute(engine, run))
        engine.executions[execution] = run.run_id
        # What the run says from now on; of an earlier attempt everything was told before.
        after = (run.epoch + 1) * EPOCH if run.attempt else 0
        try:
            async with aclosing(engine.service.events(run, after=after, heartbeat=PATIENCE)) as batches:
                async for batch in batches:
                    for event in shown.of(batch):
                        yield event
                    if not batch and execution.done():
                        break
            await execution
        finally:
            await self._stop(engine, execution)

    async def _stop(self, engine: _Engine, execution: asyncio.Task[None]) -> None:
        """Stop a turn if it has not ended, and wait until it has unwound."""
        run_id = engine.executions[execution]
        if not execution.done():
            await self._runs.request_cancel(run_id, "interrupt")
            engine.executor.interrupt(run_id)
            await asyncio.wait([execution])
        engine.executions.pop(execution, None)

    async def _execute(self, engine: _Engine, run: Run) -> None:
        """Execute the run when those before it have ended; one whose process died is ended first."""
        clock = asyncio.get_running_loop().time
        until = clock() + WAIT
        try:
            while True:
                await engine.executor.execute(run.run_id, wait=max(until - clock(), 0))
                now = await self._runs.find(run.run_id)
                if now is None or now.ended:
                    return
                for other in await self._runs.active(run.thread_id):
                    if other.position >= run.position or (other.due_at is not None and other.due_at > utc_now()):
                        continue
                    if other.status is RunStatus.RUNNING or clock() >= until:
                        await engine.executor.abandon(other, wait=max(until - clock(), 0))
                await asyncio.sleep(PATIENCE / 4)
        except ThreadBusyError:
            if run.attempt == 0:
                await self._runs.delete(run.run_id)
            raise

    def _engine(self) -> _Engine:
        loop = asyncio.get_running_loop()
        if loop not in self._engines:
            self._engines[loop] = self._new_engine()
        return self._engines[loop]

    def _new_engine(self) -> _Engine:
        connections = Connections(self._database, self._workshop.harness.config, self._paths)
        log = EventLog(self._database, connections.wake)
        executor = Executor(
            database=self._database,
            runs=self._runs,
            log=log,
            lock=connections.lock,
            workshop=self._workshop,
            worker=f"local-{uuid4().hex[:8]}",
        )
        service = RunService(
            database=self._database,
            runs=self._runs,
            threads=self._threads,
            assistants=AssistantService(self._database, self._workshop.agent, self._threads.get),
            log=log,
            queue=LocalQueue(),
            uploads_dir=lambda user_id, thread_id: self._paths.uploads(thread_id, user_id),
            graph=self._workshop.agent,
        )
        return _Engine(connections, log, {}, executor, service)
