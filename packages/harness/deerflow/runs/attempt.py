"""One attempt at a run, from its claim to its end: a state machine, read from top to bottom.

::

    CLAIMED ──→ PLAYING ────── the graph came to its end ─────→ CLOSING ──→ ENDED
                │  ↑                                             ↑  │
                │  └───────── a message came too late ───────────│──┘
                └─── stopped, timed out or failed ──→ TIDYING ───┘

Only while it is PLAYING a wish to stop cancels the task; before that it is looked at, later it is too late.
An attempt that is cancelled because the process ends, or that lost its run to another process, leaves the row as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.errors import EmptyInputError, GraphRecursionError

from deerflow.agents.egress_gate import gate_of
from deerflow.agents.middlewares.base import ERROR, SPENDING_LIMIT, cut_off, is_error
from deerflow.agents.receipts import CheckReceipt, Claim, answer_of, claims_of, receipts, work_in
from deerflow.agents.transcript import CHECKS, current_turn
from deerflow.capability import Capabilities, EndedRun, Observer, RunFacts
from deerflow.config import ConfigError
from deerflow.context import RunContext
from deerflow.context.arrivals import Arrivals
from deerflow.context.delegation import Delegation
from deerflow.context.machine import Machine
from deerflow.context.spending import Spending
from deerflow.context.trust import Trust
from deerflow.errors import RequestError
from deerflow.events.graph_stream import NODES, GraphStream, emit_added, emit_input, emit_message
from deerflow.events.jsonable import message_json
from deerflow.events.log import LostRunError
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.client_events import messages_in
from deerflow.events.usage_meter import UsageMeter
from deerflow.runs import finalize
from deerflow.runs.background import BackgroundSubagents
from deerflow.runs.claims import Look, begun_at, contradiction, is_told
from deerflow.runs.finalize import MODEL_NODE, UNFINISHED, past_cancellation, settle
from deerflow.runs.input import GraphInput, RunInput, arrivals, at_head
from deerflow.runs.request import RunRequest, RunSpec
from deerflow.sandbox.interface import SandboxError
from deerflow.storage.approvals import RunApprovals
from deerflow.storage.budgets import Budget, forget_turn, keys_of, spent
from deerflow.storage.database import Database
from deerflow.storage.errors import is_out_of_reach
from deerflow.storage.pages import ThreadPages
from deerflow.storage.provenance import ThreadProvenance
from deerflow.storage.runs import (
    CANCELLED,
    EMPTY_THREAD,
    Ending,
    Run,
    RunLedger,
    RunStatus,
    RunStore,
    delete_run,
    deliver,
    finish,
    next_pending,
)
from deerflow.storage.tables import utc_now
from deerflow.storage.thread_lock import LockLostError
from deerflow.storage.threads import LEAD_AGENT
from deerflow.subagents.task import LOOP, LOOP_STOP, TASK_RESULT, cancelled, delivery, task_of
from deerflow.threads.checkpoint import config_of, is_unfinished, question_of, waits
from deerflow.threads.task_transcripts import TaskTranscripts, keep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langgraph.store.base import BaseStore
    from sqlalchemy import Connection

    from deerflow.agents.factory import Agent
    from deerflow.config.schema import SpendingConfig
    from deerflow.events.log import EventLog, EventWriter
    from deerflow.identity import Principal
    from deerflow.runs.agent_provider import AgentInputs, AgentProvider

logger = logging.getLogger(__name__)

STOPPED = "Not finished: the user stopped the run. What this call did until then may have taken effect."
MOST_ATTEMPTS = 5
"""Attempts at one step. Whatever ends the process each time would end it for ever."""
STALLED = (
    f"This run was given up: {MOST_ATTEMPTS} times in a row the process that worked on it ended during the same step. "
    "What was done before that is kept. Ask for something else, or try again when the cause is found: DeerFlow's log and "
    "the system's (memory, disk) say what ended the process."
)
ANSWER_SECONDS = 0.5
"""Between two looks for the person's answer, while subagents in the background go on."""


class State(StrEnum):
    CLAIMED = "claimed"
    PLAYING = "playing"
    TIDYING = "tidying"
    CLOSING = "closing"
    ENDED = "ended"


@dataclass(frozen=True)
class AttemptServices:
    """What every attempt of a process uses.

    Args:
        store: a person's part of the store, for the graph.
        timeout: seconds that one attempt may take.
    """

    database: Database
    runs: RunStore
    log: EventLog
    agents: AgentProvider
    store: Callable[[Principal], BaseStore]
    capabilities: Capabilities
    timeout: float | None


class Slot:
    """Taken while a run works. One that waits for a model or a tool needs none, so that hundreds of them can. Both ways are
    idempotent.

    Args:
        free: the slots of the process.
        seconds: after which it is taken back: its run does not work, but waits for something unforeseen.
    """

    def __init__(self, free: asyncio.Semaphore, seconds: float = 5.0) -> None:
        self._free = free
        self._seconds = seconds
        self._expires: asyncio.TimerHandle | None = None

    async def take(self) -> None:
        """Wait for a slot, unless there is one already."""
        if self._expires is None:
            await self._free.acquire()
            self._expires = asyncio.get_running_loop().call_later(self._seconds, self.leave)

    def leave(self) -> None:
        if self._expires is not None:
            self._expires.cancel()
            self._expires = None
            self._free.release()


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """How the graph stopped playing. ``unfinished`` is what the model reads as result of tool calls that have none."""

    status: RunStatus
    reason: str
    error: str | None = None
    unfinished: str | None = None
    checkpoint_id: str | None = None
    """The thread's newest, if it is known."""
    closing: BaseMessage | None = None
    """What the thread ends with."""


@dataclass(frozen=True, slots=True)
class Closed:
    """What the end of a run leaves to do."""

    run: Run
    next_run_id: str | None
    """The run of the thread whose turn it is now."""
    tasks_due: datetime | None
    """When the first background task that the end has enqueued is due."""


@dataclass(eq=False)
class Attempt:
    """Args:
    run: claimed by this process, which holds its thread's lock.
    spec: None: it is read from the run.
    fresh: it was claimed when it was created: no message can wait for it yet.
    reading: what its agent is made from, read while the run was recorded.
    """

    parts: AttemptServices
    run: Run
    slot: Slot
    spec: RunSpec | None = None
    fresh: bool = False
    reading: Awaitable[AgentInputs] | None = None
    state: State = State.CLAIMED
    stop: str | None = None
    """Why it was asked to stop: ``interrupt`` or ``rollback``."""

    _writer: EventWriter = field(init=False)
    _task: asyncio.Task[Any] = field(init=False)
    _background: BackgroundSubagents = field(init=False)
    _agent: Agent | None = None
    _given: GraphInput | None = None
    _stream: GraphStream | None = None
    _observers: list[Observer] | None = None
    _meter: UsageMeter = field(default_factory=UsageMeter)
    _joined: list[BaseMessage] = field(default_factory=list)
    """Messages that the run added to its thread."""
    _spending: Budget | None = None
    _turn: Sequence[BaseMessage] = ()
    """The messages of the turn, once the graph has come to its end."""
    _checks: list[CheckReceipt] = field(default_factory=list)
    _claims: list[Claim] = field(default_factory=list)
    _read: set[str | None] = field(default_factory=set)
    """Ids of the messages that were given to the model while the run was on its way."""

    def __post_init__(self) -> None:
        self._background = BackgroundSubagents(self.parts.runs, self.run)

    async def execute(self) -> Closed | None:
        """Bring the run to its end. None: another process has taken it over.

        Raises:
            CancelledError: this process ends; the next executor goes on with the run.
        """
        task, run = asyncio.current_task(), self.run
        assert task is not None
        self._task = task
        self.heed(run)
        self._writer = self.parts.log.writer(run.thread_id, run.run_id, run.epoch, first_attempt=run.attempt == 1)
        self._writer.append("metadata", {"run_id": run.run_id, "thread_id": run.thread_id, "attempt": run.attempt})
        try:
            while True:
                outcome = await self._outcome()
                await self._tidy(outcome)
                if (closed := await self._close(outcome)) is not None:
                    return closed
                await self._check_ours()
        except (LostRunError, LockLostError):
            logger.warning("Run %s was taken over by another process.", run.run_id)
            return None
        finally:
            self.state = State.ENDED
            await self._background.aclose()
            for observer in self._observers or ():
                observer.close(ended=False)
            await asyncio.shield(self._writer.aclose())

    def heed(self, run: Run) -> None:
        """Stop what the row of the run says is to stop: subagents, and the run itself, unless it is past that."""
        for task_id in run.stopped_tasks:
            self._background.stops.ask(task_id)
        if self.stop is None and run.cancel_action is not None:
            self.stop = run.cancel_action
            if self.state is State.PLAYING:
                self._task.cancel()

    # playing ----------------------------------------------------------------------------------------------------------

    async def _outcome(self) -> AttemptOutcome:
        """Play the graph. Whatever happens is an outcome, except that this process ends or has lost the run."""
        if self.stop is None and self.run.stalled >= MOST_ATTEMPTS:
            logger.error("Run %s was given up after %d attempts at one step.", self.run.run_id, MOST_ATTEMPTS)
            return AttemptOutcome(RunStatus.ERROR, "stalled", STALLED, unfinished=UNFINISHED, closing=_sorry(self.run))
        limit = asyncio.timeout(self.parts.timeout)
        try:
            if self.stop is None:
                async with limit:
                    self.state = State.PLAYING
                    try:
                        return await self._play()
                    finally:
                        self.state = State.TIDYING
        except asyncio.CancelledError:
            if self.stop is None:
                raise
            self._task.uncancel()
        except (LostRunError, LockLostError):
            raise
        except Exception as error:
            if is_out_of_reach(error):
                raise  # nobody can know how the run stands: the next executor looks
            if limit.expired():
                text = f"The run was ended: it took longer than {self.parts.timeout:.0f} seconds."
                return AttemptOutcome(RunStatus.TIMEOUT, "timeout", text, unfinished=UNFINISHED)
            return _failed(error, self.run)
        return AttemptOutcome(RunStatus.INTERRUPTED, CANCELLED, unfinished=STOPPED)

    async def _play(self) -> AttemptOutcome:
        """From the run's input, or from where an attempt before this one stood, to the graph's end."""
        spec = self.spec = await self._going_on(self._specified())
        parts, request = self.parts, spec.request
        thread_id, run_id, background = self.run.thread_id, self.run.run_id, self._background
        reading, self.reading = self.reading or parts.agents.read(spec.principal, thread_id, spec.options), None
        agent, context = await parts.agents.prepare(await reading, run_id, spec.options, fencing_token=self.run.epoch)
        if self._observers is None:
            self._observers = await parts.capabilities.observers(self._facts(spec))
        self._agent = agent = agent.copy(update={"store": parts.store(spec.principal)})
        if self._meter.config is None:
            self._meter = UsageMeter(context.config, run_id, spec.options.model_name)
        if not background.running:
            self._spending = self._budget(spec, context.config.spending if context.config else None)
        again = self._stream is not None
        stream = self._stream = background.stream = self._stream or GraphStream(
            self._writer,
            self._meter,
            request.modes,
            self._joined.extend,
            self.slot.take,
            subgraphs=request.stream_subgraphs,
        )
        approvals = RunApprovals(parts.database, run_id=run_id, thread_id=thread_id, user_id=spec.principal.user_id)
        context = self._working(spec, agent, context, stream, approvals)
        try:
            outcome = await self._to_the_graphs_end(agent, context, stream, approvals, again=again)
            return await self._checked(await self._to_their_end(outcome, agent, context), context)
        finally:
            if self._spending is not None:
                await self._spending.close()
            await context.release_sandbox()

    async def _to_the_graphs_end(
        self, agent: Agent, context: RunContext, stream: GraphStream, approvals: RunApprovals, *, again: bool
    ) -> AttemptOutcome:
        """Play the graph until it ends or waits for the person. ``again``: this attempt has played it before."""
        spec, request = self._specified(), self._specified().request
        given = await self._prepare(agent, again=again)
        if request.command is not None:  # a run before this one of the turn may have begun subagents
            state = await agent.aget_state(config_of(self.run.thread_id))
            self._turn = current_turn(state.values.get("messages") or ())
        await self._count_cut(agent, again=again)
        await self._background.resume(self._known(), context, agent)
        play = partial(
            stream.play,
            agent,
            context=context,
            durability="sync" if spec.options.subagent_enabled else request.saves,
            interrupt_before=request.interrupt_before,
            interrupt_after=request.interrupt_after,
        )
        if not given.nothing_left:
            await play(given.value, given.config, unread=given.unread, joining=_joining(given, request))
        outcome = await self._played(agent)
        while outcome.status is RunStatus.INTERRUPTED and approvals.take_granted():
            await play(None, at_head(given.config))
            outcome = await self._played(agent)
        return outcome

    async def _to_their_end(self, outcome: AttemptOutcome, agent: Agent, context: RunContext) -> AttemptOutcome:
        """Let subagents in the background work until one has ended, or the person has answered."""
        background = self._background
        await background.resume(self._known(), context, agent)
        if outcome.status is RunStatus.SUCCESS:
            await background.next()
        while outcome.status is RunStatus.INTERRUPTED and background.running:
            if await self.parts.runs.is_answered(self.run):  # they go on in the run that brings the answer
                await past_cancellation(background.aclose())
            else:
                await background.next(within=ANSWER_SECONDS)
        return outcome

    def _working(
        self, spec: RunSpec, agent: Agent, context: RunContext, stream: GraphStream, approvals: RunApprovals
    ) -> RunContext:
        """Return the context of a thread's run with what this attempt gives it."""
        parts, background, thread_id = self.parts, self._background, self.run.thread_id
        things: list[object] = [Arrivals(self._arrivals), ThreadPages(parts.database, thread_id)]
        of_nouns = parts.capabilities.for_run(spec.principal, thread_id, spec.agent, spec.options.switched_off)
        context = replace(
            context,
            ledger=RunLedger(parts.database, self.run.run_id),
            delegation=Delegation(
                start=partial(background.start, agent=agent),
                cancel=background.cancel,
                ended=stream.until_ended,
                in_background=lambda: len(background.running),
                stops=background.stops,
            ),
            trust=Trust(
                approvals,
                ThreadProvenance(parts.database, thread_id, self.run.turn),
                unattended=not self._is_attended(spec),
                can_wait=self._can_wait(spec),
            ),
            spending=Spending(self._spending, self._meter.count),
            things={**context.things, **{type(one): one for one in things}, **of_nouns},
        )
        return replace(context, machine=self._gated(spec, context))

    def _gated(self, spec: RunSpec, context: RunContext) -> Machine:
        """Return the machine of the run, whose gate judges by its rules."""
        gate = None
        if context.config is not None:
            chosen, guardrails = spec.options.agent, context.config.guardrails
            gate = gate_of(context, chosen.guardrails(guardrails) if chosen is not None else guardrails)
        return replace(context.machine, gate=gate, trace_command=self._trace_command if self._observers else None)

    def _known(self) -> list[BaseMessage]:
        """Return the messages of the turn so far."""
        joined = {message.id for message in self._joined}
        return [*(message for message in self._turn if message.id not in joined), *self._joined]

    async def _going_on(self, spec: RunSpec) -> RunSpec:
        """A run that goes on with calls of ``task`` has the tool, whether or not its creator says so."""
        if spec.request.input is not None or spec.options.subagent_enabled:
            return spec
        for other in await self.parts.runs.of_thread(self.run.thread_id, limit=100):
            if other.position < self.run.position:
                earlier = RunSpec.of(other)
                if earlier.options.subagent_enabled:
                    return replace(spec, options=replace(spec.options, subagent_enabled=True))
                if earlier.request.input is not None:
                    break
        return spec

    def _trace_command(self, command: str, call_id: str | None, started: float, exit_code: int | None) -> None:
        for observer in self._observers or ():
            observer.command(command, call_id, started, exit_code)

    def _facts(self, spec: RunSpec) -> RunFacts:
        run = self.run
        return RunFacts(
            trace_id=run.trace_id or uuid4().hex,
            run_id=run.run_id,
            thread_id=run.thread_id,
            user_id=run.user_id,
            agent=spec.options.agent_name or LEAD_AGENT,
            started_at=run.started_at or run.created_at,
            first_attempt=run.attempt == 1,
            traceparent=spec.request.traceparent,
        )

    def _is_attended(self, spec: RunSpec) -> bool:
        """Whether there is a person to ask: not for crons, threads that exist for one run only, and where the caller says so."""
        started_alone = "cron_id" in self.run.metadata or bool(self.run.kwargs.get("delete_thread"))
        return not started_alone and spec.request.configurable().get("unattended") is not True

    def _can_wait(self, spec: RunSpec) -> bool:
        """Whether the run's owner finds its question later, though there is no person now: in a thread that stays, of a schedule or of
        a program that passes the question on."""
        asks = "cron_id" in self.run.metadata or spec.request.configurable().get("can_wait") is True
        return asks and not self.run.kwargs.get("delete_thread")

    def _budget(self, spec: RunSpec, limits: SpendingConfig | None) -> Budget | None:
        agent = spec.options.agent
        limits = limits.for_agent(agent.budget) if limits is not None and agent is not None else limits
        if limits is None or not limits.is_limited:
            return None
        run, command = self.run, spec.request.command
        return Budget(
            self.parts.database,
            limits,
            keys_of(run.run_id, run.turn, run.thread_id, run.user_id, run.agent_id),
            lambda currency: spent(self._meter.usage, currency),
            attended=self._is_attended(spec),
            resumed=command is not None and command.resume is not None,
        )

    def _specified(self) -> RunSpec:
        """The run's request, validated when it is first needed."""
        spec = self.spec = self.spec or RunSpec.of(self.run)
        return spec

    async def _prepare(self, agent: Agent, *, again: bool = False) -> GraphInput:
        spec, parts = self._specified(), self.parts
        made = RunInput(
            parts.runs,
            parts.capabilities,
            self.run,
            spec,
            agent,
            uploads=parts.agents.harness.paths.uploads(self.run.thread_id, self.run.user_id),
            called=partial(parts.agents.called, spec.principal, spec.options),
            provenance=ThreadProvenance(parts.database, self.run.thread_id, self.run.turn),
            config=parts.agents.harness.config,
        )
        given = await made.prepare(again=again)
        for observer in self._observers or ():
            given = replace(given, config=observer.configured(given.config))
        self._given = given
        self._background.config = {
            key: given.config[key] for key in ("callbacks", "tags", "metadata") if key in given.config
        }
        self.fresh = self.fresh and self.run.checkpoint_before is not None  # else it may have adopted messages
        self.run = given.run
        self._joined += given.messages
        for message in given.messages:
            if message.name == TASK_RESULT:  # the agent was waiting for it, so no step brings it
                emit_message(self._writer, message)
        if given.earlier and not again:
            await self._replay(given.earlier)
        return given

    async def _count_cut(self, agent: Agent, *, again: bool) -> None:
        """Count the call of the agent's model that was cut off when the process of an earlier attempt died."""
        if self._spending is None or self.run.attempt == 1 or again:
            return
        messages = (await agent.aget_state(config_of(self.run.thread_id))).values.get("messages") or ()
        at_tools = bool(messages) and isinstance(messages[-1], AIMessage)
        if at_tools or await self._background.undelivered(self._known()):
            return  # tools were at work; what subagents use is counted when they go on
        if tokens := (await self._spending.cut_off()).tokens:
            self._meter.count_reserved(tokens)

    async def _played(self, agent: Agent) -> AttemptOutcome:
        """The graph came to an end of its own: how?"""
        snapshot = await agent.aget_state(config_of(self.run.thread_id))
        self._turn = current_turn(snapshot.values.get("messages") or ())
        checkpoint_id = snapshot.config["configurable"].get("checkpoint_id")
        if is_unfinished(snapshot):
            return AttemptOutcome(RunStatus.INTERRUPTED, "interrupt", checkpoint_id=checkpoint_id)
        last = self._meter.last_message
        if last is not None and is_error(last):
            failure = last.additional_kwargs[ERROR]
            return AttemptOutcome(RunStatus.ERROR, str(failure["kind"]), str(failure["message"]))
        for key, forced in ((SPENDING_LIMIT, SPENDING_LIMIT), (LOOP_STOP, LOOP)):
            if last is not None and key in last.additional_kwargs:
                return AttemptOutcome(RunStatus.SUCCESS, forced, checkpoint_id=checkpoint_id)
        reason = (cut_off(last) if last is not None else None) or "end_turn"
        return AttemptOutcome(RunStatus.SUCCESS, reason, checkpoint_id=checkpoint_id)

    async def _checked(self, outcome: AttemptOutcome, context: RunContext) -> AttemptOutcome:
        """The acceptance checks, and what the answer rests on, where the work is done. If some of it is not so, the model goes on,
        as with a message that came late."""
        if outcome.status is not RunStatus.SUCCESS:
            return outcome
        request, work, answer = self._specified().request, work_in(self._turn), answer_of(self._turn)
        self._claims = claims_of(work, answer)
        if not (self._claims or request.checks) or await self._undelivered():
            return outcome
        sandbox = None
        try:
            if self._claims or any(check.answer_schema is None for check in request.checks):
                sandbox = await context.sandbox()
            self._checks = await finalize.run_checks(sandbox, request.checks, answer)
        except SandboxError as error:
            failed: CheckReceipt = {"check": "the sandbox", "passed": False, "output": str(error)}
            self._checks = [failed] if request.checks else []
        correction = self._correction(request)
        if correction is None and sandbox is not None:
            since = begun_at(self._turn, self.run.created_at)
            self._claims = await Look(sandbox, answer, since, work["tested"]).at(self._claims)
            if sandbox.awake and outcome.reason == "end_turn" and not is_told(self._turn):
                correction = contradiction(self._claims)
        if correction is not None:
            await self.parts.runs.steer(self.run.run_id, message_json(correction))
        elif not all(check["passed"] for check in self._checks):
            return replace(outcome, reason=finalize.CHECKS_FAILED)
        return outcome

    def _correction(self, request: RunRequest) -> BaseMessage | None:
        """What the model is asked because checks failed; None: they did not, or too often."""
        if not request.checks:
            return None
        rounds = finalize.rounds(self._joined)
        self._writer.append("custom", {"type": CHECKS, "round": rounds, "results": self._checks})
        again = rounds < request.check_rounds and not all(check["passed"] for check in self._checks)
        return finalize.correction(self._checks) if again else None

    async def _arrivals(self) -> list[BaseMessage]:
        """Messages for the run, asked for before each call of the model, for which the run then waits."""
        fresh, self.fresh = self.fresh, False
        arrived = [] if fresh else await arrivals(self.parts.runs, self.run.run_id)
        self._read.update(message.id for message in arrived)
        self.slot.leave()
        return arrived

    async def _replay(self, earlier: list[BaseMessage]) -> None:
        """Count what an attempt before this one did, and emit what the log lacks of it: a process that dies takes the last
        moments of the log with it."""
        run, emitted, begun_with = self.run, set[str](), self._specified().message_ids
        async with aclosing(self.parts.log.so_far(run.thread_id, run.run_id)) as batches:
            async for batch in batches:
                updates = [event for event in batch if event.method == "updates"]
                emitted |= {message["id"] for event in updates for message in messages_in(event.data)}
                if any(event.seq > run.epoch * EVENTS_PER_CLAIM for event in batch):
                    break
        self._joined += earlier
        for message in earlier:
            self._meter.add(message)
            if message.type in NODES and message.id not in emitted and message.id not in begun_with:
                emit_message(self._writer, message)

    # tidying ----------------------------------------------------------------------------------------------------------

    async def _tidy(self, outcome: AttemptOutcome) -> None:
        """Leave the thread in order if the run ended before its time: nothing that was done or said is lost."""
        self.state = State.TIDYING
        is_early = outcome.unfinished is not None or outcome.status is RunStatus.ERROR
        if is_early:
            await past_cancellation(self._background.aclose())
            if self._stream is not None:
                self._stream.cancel_tasks()
        if self._is_rolled_back(outcome):
            before = self.run.checkpoint_before
            if before is not None:
                checkpointer: Any = self.parts.agents.harness.checkpointer
                await checkpointer.adelete_after(self.run.thread_id, before or None)
            if self._stream is not None:
                self._stream.emit_undone()
        elif is_early:
            await past_cancellation(self._settle(outcome))

    async def _settle(self, outcome: AttemptOutcome) -> None:
        """What cannot be done now, the next run does: the wish to stop comes first."""
        run, partial = self.run, self._stream.partial() if self._stream is not None else None
        try:
            agent = self._agent = self._agent or await self.parts.agents.reader()
            is_kept = await self._keep_input(agent)
            undelivered = await self._undelivered()
            if self._given is None:  # a run without input that did nothing leaves an interrupt as it is
                return
            if outcome.unfinished is None and not is_kept and not undelivered:
                return
            read = [message for message in undelivered if message.id in self._read]
            joining = [*read, *([partial] if partial else []), *(other for other in undelivered if other not in read)]
            joining += [outcome.closing] if outcome.closing else []
            for given in await self._background.undelivered(self._known()):
                joining.append(delivery(cancelled(given)))
                await self._background.forget(given, agent)
            where, why = config_of(run.thread_id), outcome.unfinished or UNFINISHED
            before = (await agent.aget_state(where)).values
            known = {message.id for message in before.get("messages") or ()}
            joined = await settle(agent, where, why=why, joining=joining)
            state = (await agent.aget_state(where)).values
            emit_added(self._writer, state, {message.id for message in state.get("messages") or ()} - known)
            self._writer.values(state)
        except Exception as error:
            logger.exception("Thread %s could not be settled.", run.thread_id, exc_info=error)
            return
        self._joined += joined
        for message in joined:
            self._meter.add(message)

    async def _keep_input(self, agent: Agent) -> bool:
        """What the run was given joins its thread, though it ends before its first step. False: it was not missing."""
        self._meter.config = self._meter.config or self.parts.agents.harness.config
        spec = self._specified()
        if self._given is None and self.run.attempt == 1 and spec.request.input is None:
            return False
        given, where = self._given or await self._prepare(agent), config_of(self.run.thread_id)
        head = (await agent.aget_state(where)).config["configurable"].get("checkpoint_id") or EMPTY_THREAD
        is_lost = isinstance(given.value, dict) and head == self.run.checkpoint_before
        if is_lost:
            fork = config_of(self.run.thread_id, spec.request.fork_from)
            await agent.aupdate_state(fork, given.value, as_node=MODEL_NODE)
        joining = _joining(given, spec.request)
        if joining is not None and (is_lost or self._stream is None or not self._stream.has_begun):
            emit_input(self._writer, (await agent.aget_state(where)).values, joining)
        return is_lost

    async def _undelivered(self) -> list[BaseMessage]:
        """Messages that wait for the run and are not part of the thread."""
        known = {message.id for message in self._joined}
        return [message for message in await arrivals(self.parts.runs, self.run.run_id) if message.id not in known]

    def _is_rolled_back(self, outcome: AttemptOutcome) -> bool:
        return self.stop == "rollback" and outcome.reason == CANCELLED

    # closing ----------------------------------------------------------------------------------------------------------

    async def _close(self, outcome: AttemptOutcome) -> Closed | None:
        """One transaction: the last events, the row, the background tasks. None: not ours, or a message came too late."""
        self.state = State.CLOSING
        run, asks = self.run, await self._asks(outcome)
        ending = await self._ending(outcome, asks=asks)
        failed = ending.status in (RunStatus.ERROR, RunStatus.TIMEOUT)
        if failed:
            self._writer.append("error", {"error": ending.stop_reason or "Error", "message": ending.error or ""})
        delivered = [message.id or "" for message in self._joined if isinstance(message, HumanMessage)]
        left: list[tuple[str | None, datetime | None]] = []
        transcripts = await self._transcripts()
        config, joined, capabilities = self.parts.agents.harness.config, self._joined, self.parts.capabilities
        ended = None
        if (spec := self.spec) is not None:
            answer, off = ending.last_ai_message or "", spec.options.switched_off
            ended = EndedRun(config, spec.agent, run, joined, answer, ending.ends_turn, off)

        def close(connection: Connection) -> bool:
            left.clear()
            deliver(connection, delivered)
            if not finish(connection, run, ending, waits=asks):
                return False
            if self._is_rolled_back(outcome):
                due = self._undo(connection, ending)
            else:
                keep(connection, transcripts)
                due = finalize.follow_up(connection, run, joined, capabilities, ended)
            left.append((next_pending(connection, run.thread_id), due))
            return True

        told = {"status": ending.status.value, "stop_reason": ending.stop_reason, **_told(ending)}
        if not await self._writer.end(told, close):
            await self.parts.runs.delivered(delivered)
            return None
        for observer in self._observers or ():
            observer.close(ending.stop_reason if failed else None, ending.stop_reason)
        next_run_id, due = left[0]
        return Closed(replace(run, status=ending.status, ended_at=utc_now()), next_run_id, due)

    def _undo(self, connection: Connection, ending: Ending) -> datetime | None:
        """Delete the run, which was rolled back. Returns when the first background task that this enqueues is due."""
        run = self.run
        undone = replace(run, status=ending.status, stop_reason=ending.stop_reason, ended_at=utc_now())
        due = finalize.follow_up_closed(connection, undone, self.parts.capabilities, is_undone=True)
        delete_run(connection, run.run_id)
        if run.turn == run.run_id:
            forget_turn(connection, run.turn)
        return due

    async def _transcripts(self) -> Sequence[Mapping[str, Any]]:
        """Return what is to be kept of the run's subagents."""
        is_any = any(map(task_of, self._known())) or (self._stream is not None and self._stream.has_tasks)
        if not is_any:
            return []
        found = TaskTranscripts()
        async with aclosing(self.parts.log.so_far(self.run.thread_id, self.run.run_id)) as batches:
            await found.read(batches)
        return await asyncio.to_thread(found.rows, self.run.thread_id)

    async def _ending(self, outcome: AttemptOutcome, *, asks: bool) -> Ending:
        checkpoint_id = outcome.checkpoint_id
        if checkpoint_id is None and self._agent is not None:
            saver: Any = self._agent.checkpointer
            head = await saver.aget_tuple(config_of(self.run.thread_id))
            checkpoint_id = head.config["configurable"]["checkpoint_id"] if head else None
        if self._stream is not None:
            self._stream.count_open()
        return Ending(
            status=outcome.status,
            error=outcome.error,
            stop_reason=outcome.reason,
            checkpoint_after=checkpoint_id,
            receipts=receipts(work_in(self._turn or self._joined), self._claims, self._checks),
            ends_turn=outcome.status is RunStatus.SUCCESS and not asks,
            **self._meter.totals(),
        )

    async def _asks(self, outcome: AttemptOutcome) -> bool:
        """Whether the thread waits for its person now. A run that was stopped or undone may leave what was there before it."""
        if outcome.status is RunStatus.SUCCESS:
            return question_of(self._joined) is not None
        try:
            agent = self._agent or await self.parts.agents.reader()
            return waits(await agent.aget_state(config_of(self.run.thread_id)))
        except Exception as error:  # what cannot be read must not keep the run from its end
            logger.warning("What thread %s waits for cannot be read.", self.run.thread_id, exc_info=error)
            return False

    async def _check_ours(self) -> None:
        """Raises LostRunError if the run was not closed because it is not ours."""
        now = await self.parts.runs.find(self.run.run_id)
        if now is None or now.epoch != self.run.epoch or now.closed:
            raise LostRunError(self.run.run_id)


def _joining(given: GraphInput, request: RunRequest) -> list[BaseMessage] | None:
    """The messages with which the run begins; of an earlier attempt, those of the person."""
    joining = given.messages or [message for message in given.earlier if isinstance(message, HumanMessage)]
    return joining if joining or request.fork_from is not None else None


def _told(ending: Ending) -> dict[str, Any]:
    """What the last event says of the receipts."""
    found = ending.receipts if ending.status is RunStatus.SUCCESS and ending.receipts else {}
    return {
        key: value for key, value in (("verification", found.get("word")), ("refused", found.get("refused"))) if value
    }


def _sorry(run: Run) -> AIMessage:
    error = {"kind": "stalled", "message": STALLED}
    return AIMessage(content=STALLED, id=f"stalled:{run.run_id}", additional_kwargs={ERROR: error})


def _failed(error: Exception, run: Run) -> AttemptOutcome:
    """What to tell the person, and the kind of failure. Unexpected errors keep their details in our log."""
    kind = type(error).__name__
    if isinstance(error, (RequestError, ConfigError)):
        text = str(error)
    elif isinstance(error, EmptyInputError):
        text = "There is nothing to go on with in this thread: send a message."
    elif isinstance(error, GraphRecursionError):
        text = "The run took more steps than its recursion_limit allows. Say how to go on, or raise the limit."
    else:
        logger.exception("Run %s failed.", run.run_id, exc_info=error)
        text = f"An internal error ended the run ({kind}). The log has the details under run {run.run_id}."
    return AttemptOutcome(RunStatus.ERROR, kind, text)
