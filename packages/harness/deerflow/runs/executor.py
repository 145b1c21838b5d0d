"""Executing a run: the only place where a graph runs for a thread. At least once, from wherever it stands."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.errors import EmptyInputError, GraphRecursionError

from deerflow.agents.middlewares.model_result import ERROR, is_error
from deerflow.agents.run_options import run_options
from deerflow.config import ConfigError
from deerflow.errors import RequestError
from deerflow.events.graph_stream import GraphStream
from deerflow.events.jsonable import message_json
from deerflow.events.log import LostRunError
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.client_events import messages_in
from deerflow.events.usage_meter import UsageMeter
from deerflow.identity import Principal
from deerflow.runs.admission import Pace, Place
from deerflow.runs.finalize import UNFINISHED, settle, to_its_end
from deerflow.runs.follow_up import afterwards, follow_up
from deerflow.runs.input import RunInput
from deerflow.runs.ledger import RunLedger
from deerflow.runs.request import RunRequest
from deerflow.storage.database import Database
from deerflow.storage.errors import is_out_of_reach
from deerflow.storage.runs import Ending, Run, RunStatus, RunStore, delete_run, finish
from deerflow.storage.thread_lock import ThreadBusyError
from deerflow.threads.checkpoint import config_of, is_unfinished

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore
    from sqlalchemy import Connection

    from deerflow.agents.factory import Agent
    from deerflow.events.log import EventLog, EventWriter
    from deerflow.runs.agent_provider import Workshop
    from deerflow.storage.thread_lock import ThreadLock

logger = logging.getLogger(__name__)

CANCELLED = "cancelled"
STOPPED = "Not finished: the user stopped the run. What this call did until then may have taken effect."


@dataclass(eq=False)
class _Active:
    """A run that this process executes."""

    run: Run
    task: asyncio.Task[Any]
    place: Place
    stop: str | None = None
    """Why it was cancelled: ``interrupt`` or ``rollback``. None: it was not, or this process is to end."""
    is_playing: bool = False
    stream: GraphStream | None = None
    agent: Agent | None = None
    heard: set[str | None] = field(default_factory=set)
    """Ids of the messages that were handed to the model while the run was on its way."""
    joined: list[BaseMessage] = field(default_factory=list)
    meter: UsageMeter = field(default_factory=UsageMeter)

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Only here the task may be cancelled for the sake of ``stop``."""
        self.is_playing = True
        try:
            yield
        finally:
            self.is_playing = False


class Executor:
    """Args:
    worker: names this process in the rows of its runs.
    store: a person's part of the store, for the graph.
    timeout: seconds that one attempt may take.
    ring: called with (run id, thread id) of the run whose turn it is next.
    jobs_waiting: called when work for after the run was recorded.
    announce: called with each run whose status changed.
    ended: awaited after each attempt that came to an end, while nobody else can execute the thread; must not raise.
    """

    def __init__(
        self,
        *,
        database: Database,
        runs: RunStore,
        log: EventLog,
        lock: ThreadLock,
        workshop: Workshop,
        worker: str,
        store: Callable[[Principal], BaseStore] | None = None,
        timeout: float | None = None,
        ring: Callable[[str, str], Awaitable[None]] | None = None,
        jobs_waiting: Callable[[], None] | None = None,
        announce: Callable[[Run], None] | None = None,
        ended: Callable[[Run], Awaitable[None]] | None = None,
    ) -> None:
        self._database = database
        self._runs = runs
        self._log = log
        self._lock = lock
        self._workshop = workshop
        self._input = RunInput(runs)
        self._worker = worker
        self._pace = Pace()
        self._store = store
        self._timeout = timeout
        self._ring = ring
        self._jobs_waiting = jobs_waiting or (lambda: None)
        self._announce = announce or (lambda run: None)
        self._ended = ended
        self._active: dict[str, _Active] = {}
        self._errands: set[asyncio.Task[None]] = set()

    async def execute(self, run_id: str, *, wait: float | None = None) -> None:
        """Bring the run to its end, if it is its turn. Returns at once if it has ended, is not due or not next.

        Cancelling the call (a shutdown) leaves the run as it is, for whoever rings next to go on with.

        Args:
            wait: seconds to wait for another executor of the thread; None: as long as it takes.

        Raises:
            ThreadBusyError: there is still another one after that.
        """
        place = self._pace.place()
        try:
            await self._execute(run_id, place, wait)
        finally:
            place.leave()

    async def _execute(self, run_id: str, place: Place, wait: float | None) -> None:
        await place.take()
        run = await self._runs.find(run_id)
        if run is None or (not run.ended and await self._waits(run)):
            return
        if not run.ended:
            somebody_has_it = run.status is RunStatus.RUNNING and wait is None
            try:
                async with self._lock.hold(run.user_id, run.thread_id, wait=0 if somebody_has_it else wait):
                    claimed = await self._runs.claim(run_id, self._worker)
                    if claimed is None:
                        return
                    self._announce(claimed)
                    await self._attempt(claimed, place)
                    if self._ended is not None:
                        await self._ended(claimed)
            except ThreadBusyError:
                if not somebody_has_it:
                    raise
                return  # it lives; should it die, it is rung for again
        await self._ring_next(run.thread_id)

    def interrupt(self, run_id: str) -> None:
        """Look whether the run was asked to stop, and stop it if this process executes it."""
        if run_id in self._active:
            self._errand(self._stop_if_asked(run_id))

    @property
    def active(self) -> frozenset[str]:
        """Ids of the runs that this process executes."""
        return frozenset(self._active)

    async def abandon(self, run: Run, *, wait: float) -> None:
        """End a run whose process died, without going on with it.

        Raises:
            ThreadBusyError: it is alive: somebody still executes the thread after ``wait`` seconds.
        """
        async with self._lock.hold(run.user_id, run.thread_id, wait=wait):
            await self._runs.request_cancel(run.run_id, "interrupt")
            if claimed := await self._runs.claim(run.run_id, self._worker):
                await self._attempt(claimed, self._pace.place())

    # one attempt ----------------------------------------------------------------------------------------------------

    async def _attempt(self, run: Run, place: Place) -> None:
        task = asyncio.current_task()
        assert task is not None
        active = self._active[run.run_id] = _Active(run, task, place)
        self.interrupt(run.run_id)  # who asked for its end while we claimed it found nobody to tell
        writer = self._log.writer(run.thread_id, run.run_id, run.epoch, first_attempt=run.attempt == 1)
        writer.append("metadata", {"run_id": run.run_id, "thread_id": run.thread_id, "attempt": run.attempt})
        try:
            await self._until_ended(active, writer)
        except LostRunError:
            logger.warning("Run %s was taken over by another process.", run.run_id)
        finally:
            self._active.pop(run.run_id, None)
            await asyncio.shield(writer.aclose())

    async def _until_ended(self, active: _Active, writer: EventWriter) -> None:
        while True:
            ending = await self._outcome(active, writer)
            if ending.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
                writer.append("error", {"error": ending.stop_reason or "Error", "message": ending.error or ""})
            if await self._end(active, writer, ending):
                return
            now = await self._runs.find(active.run.run_id)
            if now is None or now.epoch != active.run.epoch or now.status is not RunStatus.RUNNING:
                raise LostRunError(active.run.run_id)

    async def _outcome(self, active: _Active, writer: EventWriter) -> Ending:
        """Play the graph; whatever happens becomes an ending, except our own being shut down."""
        run = active.run
        if run.cancel_action is not None and active.stop is None:
            active.stop = run.cancel_action
        limit: asyncio.Timeout | None = None
        try:
            if active.stop is None:
                async with asyncio.timeout(self._timeout) as limit:
                    with active.playing():
                        return await self._play(active, writer)
        except asyncio.CancelledError:
            if active.stop is None:
                raise
            active.task.uncancel()
        except LostRunError:
            raise
        except Exception as error:
            if is_out_of_reach(error):
                raise  # nobody can say how the run stands: whoever is rung for it again, looks
            if limit is not None and limit.expired():
                await to_its_end(self._settle(active, UNFINISHED, writer, _cut_off(active)))
                text = f"The run was ended: it took longer than {self._timeout:.0f} seconds."
                return await self._ending(active, RunStatus.TIMEOUT, text, "timeout")
            await to_its_end(self._keep_unsaid(active, writer))
            text, kind = _explained(error, run)
            return await self._ending(active, RunStatus.ERROR, text, kind)
        if active.stop == "rollback":
            await self._roll_back(active)
        else:
            await to_its_end(self._settle(active, STOPPED, writer, _cut_off(active)))
        return await self._ending(active, RunStatus.INTERRUPTED, None, CANCELLED)

    async def _play(self, active: _Active, writer: EventWriter) -> Ending:
        run = active.run
        request = RunRequest.model_validate(run.kwargs["request"])
        principal = Principal(run.user_id, run.kwargs.get("role", "user"), "internal")
        options = run_options(request.configurable(), agent_name=run.kwargs.get("agent_name"))
        agent, context = await self._workshop.prepare(principal, run.thread_id, run.run_id, options)
        context = replace(
            context, ledger=RunLedger(self._database, run.run_id), arrivals=lambda: self._arrivals(active)
        )
        if self._store is not None:
            agent = agent.copy(update={"store": self._store(principal)})
        active.agent = agent
        if active.meter.config is None:
            active.meter = UsageMeter(context.config, options.model_name)
        again = active.stream is not None
        active.stream = GraphStream(writer, active.meter, request.modes, active.joined.extend, active.place.take)
        try:
            given = await self._input.prepare(active.run, request, agent, context, again=again)
            active.run = given.run
            active.joined += given.messages
            if given.earlier and not again:
                await self._retell(active, writer, given.earlier)
            if not given.nothing_left:
                await active.stream.play(
                    agent,
                    given.value,
                    given.config,
                    context,
                    unread=given.unread,
                    durability=request.saves,
                    interrupt_before=request.interrupt_before,
                    interrupt_after=request.interrupt_after,
                )
        finally:
            await context.release_sandbox()
        return await self._played(active, writer)

    async def _arrivals(self, active: _Active) -> list[BaseMessage]:
        """Asked before each call of the model, for which the run then waits."""
        arrived = await self._input.arrivals(active.run.run_id)
        active.heard.update(message.id for message in arrived)
        active.place.leave()
        return arrived

    async def _retell(self, active: _Active, writer: EventWriter, earlier: list[BaseMessage]) -> None:
        """Count what an attempt before this one did, and tell of it what the log lost: a process that dies takes the last
        moments of the log with it."""
        run, told = active.run, set[str]()
        async with aclosing(self._log.read(run.thread_id, run_id=run.run_id, heartbeat=0, ended=_over)) as batches:
            async for batch in batches:
                updates = [event for event in batch if event.method == "updates"]
                told |= {message["id"] for event in updates for message in messages_in(event.data)}
                if not batch or any(event.seq > run.epoch * EVENTS_PER_CLAIM for event in batch):
                    break
        active.joined += earlier
        for message in earlier:
            active.meter.add(message)
            node = {"ai": "model", "tool": "tools"}.get(message.type)
            if node is None or message.id in told:
                continue
            shown = message_json(message)
            writer.append("messages", [shown, {"langgraph_node": node}])
            writer.append("updates", {node: {"messages": [shown]}})

    async def _played(self, active: _Active, writer: EventWriter) -> Ending:
        """The graph came to an end of its own: how?"""
        snapshot = await _agent(active).aget_state(config_of(active.run.thread_id))
        if is_unfinished(snapshot):
            return await self._ending(active, RunStatus.INTERRUPTED, None, "interrupt")
        last = active.meter.last_message
        if last is not None and is_error(last):
            await to_its_end(self._keep_unsaid(active, writer))
            failure = last.additional_kwargs[ERROR]
            return await self._ending(active, RunStatus.ERROR, str(failure["message"]), str(failure["kind"]))
        return await self._ending(active, RunStatus.SUCCESS, None, "end_turn")

    # the end --------------------------------------------------------------------------------------------------------

    async def _ending(self, active: _Active, status: RunStatus, error: str | None, reason: str) -> Ending:
        head = None
        if active.agent is not None:
            head = await active.agent.checkpointer.aget_tuple(config_of(active.run.thread_id))  # type: ignore[union-attr]
        return Ending(
            status=status,
            error=error,
            stop_reason=reason,
            checkpoint_after=head.config["configurable"]["checkpoint_id"] if head else None,
            **active.meter.totals(),
        )

    async def _end(self, active: _Active, writer: EventWriter, ending: Ending) -> bool:
        """One transaction: the last events, the row, and the work for afterwards. False: not ours, or not over."""
        run = active.run
        await self._runs.delivered([message.id or "" for message in active.joined if isinstance(message, HumanMessage)])

        def close(connection: Connection) -> bool:
            if not finish(connection, run, ending):
                return False
            if active.stop == "rollback" and ending.stop_reason == CANCELLED:
                afterwards(connection, run)
                delete_run(connection, run.run_id)
            else:
                follow_up(connection, run, ending, active.joined)
            return True

        ended = await writer.end({"status": ending.status.value}, close)
        if ended:
            self._announce(replace(run, status=ending.status))
            self._jobs_waiting()
        return ended

    async def _settle(self, active: _Active, why: str, writer: EventWriter, partial: BaseMessage | None = None) -> None:
        """Leave the thread in order. What cannot be done now, the next run does: the wish to stop comes first."""
        run = active.run
        try:
            if active.agent is None and run.checkpoint_before is not None:
                active.agent = await self._workshop.agent()
                active.meter.config = self._workshop.harness.config
                await self._retell(active, writer, await self._input.added(active.agent, run))
            if active.agent is None:
                return
            unsaid = await self._unsaid(active)
            heard = [message for message in unsaid if message.id in active.heard]
            joining = [*heard, *([partial] if partial else []), *(other for other in unsaid if other not in heard)]
            joined = await settle(active.agent, config_of(run.thread_id), why=why, joining=joining)
            writer.values((await active.agent.aget_state(config_of(run.thread_id))).values)
        except Exception as error:
            logger.exception("Thread %s could not be settled.", run.thread_id, exc_info=error)
            return
        active.joined += joined
        for message in joined:
            active.meter.add(message)

    async def _keep_unsaid(self, active: _Active, writer: EventWriter) -> None:
        """What the person said to a run that failed joins the thread, though it is not answered."""
        if await self._unsaid(active):
            await self._settle(active, UNFINISHED, writer)

    async def _unsaid(self, active: _Active) -> list[BaseMessage]:
        """Messages that wait for the run and are not part of the thread."""
        said = {message.id for message in active.joined}
        return [message for message in await self._input.arrivals(active.run.run_id) if message.id not in said]

    async def _roll_back(self, active: _Active) -> None:
        before = active.run.checkpoint_before
        if before is None:
            return
        checkpointer: Any = self._workshop.harness.checkpointer
        await checkpointer.adelete_after(active.run.thread_id, before or None)

    # being asked to stop ---------------------------------------------------------------------------------------------

    async def _stop_if_asked(self, run_id: str) -> None:
        run = await self._runs.find(run_id)
        active = self._active.get(run_id)
        if run is not None and run.cancel_action is not None and active is not None:
            self._cancel(active, run.cancel_action)

    def _cancel(self, active: _Active, why: str) -> None:
        if active.stop is None:
            active.stop = why
            if active.is_playing:  # otherwise it looks at `stop` before it plays, or has come to its end already
                active.task.cancel()

    async def _waits(self, run: Run) -> bool:
        """Whether another run of the thread is on its way: this one is rung for when that has ended."""
        return run.status is RunStatus.PENDING and any(
            other.status is RunStatus.RUNNING for other in await self._runs.active(run.thread_id)
        )

    async def _ring_next(self, thread_id: str) -> None:
        if self._ring is not None and (following := await self._runs.next_pending(thread_id)) is not None:
            await self._ring(following.run_id, thread_id)

    def _errand(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)


async def _over() -> bool:
    return True


def _cut_off(active: _Active) -> BaseMessage | None:
    return active.stream.partial() if active.stream is not None else None


def _agent(active: _Active) -> Agent:
    assert active.agent is not None
    return active.agent


def _explained(error: Exception, run: Run) -> tuple[str, str]:
    """What to tell the person, and the kind of failure. Unexpected errors keep their details in our log."""
    kind = type(error).__name__
    if isinstance(error, (RequestError, ConfigError)):
        return str(error), kind
    if isinstance(error, EmptyInputError):
        return "There is nothing to go on with in this thread: send a message.", kind
    if isinstance(error, GraphRecursionError):
        return "The run took more steps than its recursion_limit allows. Say how to go on, or raise the limit.", kind
    logger.exception("Run %s failed.", run.run_id, exc_info=error)
    return f"An internal error ended the run ({kind}). The log has the details under run {run.run_id}.", kind
