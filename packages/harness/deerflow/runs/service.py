"""Runs as their owners see them: start, follow, steer, stop."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.utils.uuid import uuid7

from deerflow.capability import AskedRun, Capabilities
from deerflow.config import AppConfig
from deerflow.config.agents import AgentConfig
from deerflow.config.switches import KEY as SWITCHED_OFF
from deerflow.context.run_options import RunOptions, run_options
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.events.jsonable import message_json, plain, values_json
from deerflow.events.store import RunEvent, read_page
from deerflow.identity import Principal
from deerflow.models.factory import find_model
from deerflow.runs.executor import Executor, RunObserver
from deerflow.runs.finalize import follow_up_closed
from deerflow.runs.json_answer import check_schema
from deerflow.runs.request import RunRequest, RunSpec, check_ids
from deerflow.storage.database import Database
from deerflow.storage.provenance import ThreadProvenance
from deerflow.storage.runs import TURNS, CancelAction, Created, NewRun, Run, RunStatus, RunStore
from deerflow.storage.sql import check_unicode, storable
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import TEMPORARY, Thread, ThreadRepository
from deerflow.storage.threads import find as find_thread
from deerflow.storage.visibility import may_change
from deerflow.threads.checkpoint import config_of, without_computed
from deerflow.threads.input import client_messages, messages_of, visible_input, with_facts
from deerflow.threads.transcript import TranscriptView, owned_run

if TYPE_CHECKING:
    from deerflow.agents.factory import Agent
    from deerflow.events.log import EventLog
    from deerflow.tasks.queue import RunQueue

FIRST_MESSAGE_CHARS = 2000
FORGOTTEN = "forgotten"
"""The ``stop_reason`` of a run's stream whose events are not kept any more."""


@dataclass(kw_only=True, eq=False)
class RunService:
    """Args:
    queue: gets every run that may begin or must stop.
    executor: of this process.
    observer: learns of each run that is new or was asked to stop.
    resolve: returns a request with all that its assistant is configured with, and the custom agent that it means.
    uploads_dir: where a thread's uploads lie, by user id and thread id.
    called: the facts of what a message of a person calls of nouns.
    """

    database: Database
    runs: RunStore
    threads: ThreadRepository
    transcript: TranscriptView
    log: EventLog
    queue: RunQueue
    executor: Executor
    uploads_dir: Callable[[str, str], Path]
    graph: Callable[[], Awaitable[Agent]]
    called: Callable[[Principal, RunOptions, str], Awaitable[Mapping[str, Any]]]
    capabilities: Capabilities
    resolve: Callable[[Principal, RunRequest], Awaitable[tuple[RunRequest, AgentConfig | None]]]
    config: Callable[[], Awaitable[AppConfig]]
    observer: RunObserver

    async def start(
        self, principal: Principal, request: RunRequest, *, thread_id: str | None = None, run_id: str | None = None
    ) -> Run:
        """Record a run, and begin it or enqueue it.

        Args:
            thread_id: None makes a thread for this run alone, which goes with it unless ``on_completion`` is ``keep``.
            run_id: one that the caller chose; if there is such a run, it is returned and nothing is started.

        Raises:
            InvalidRequestError: something in the request cannot be, e.g. a model that is not configured; nothing was recorded.
            NotFoundError: the thread does not exist, or is someone else's.
            ConflictError: the thread has an active run and the strategy is ``reject``.
            ForbiddenError: the person is suspended.
        """
        await self.capabilities.admit(AskedRun(principal, request.webhook))
        check_unicode(request)
        check_ids(request, thread_id)
        if run_id is not None and (known := await self.runs.find(run_id)) is not None:
            return owned_run(known, principal, run_id, thread_id)
        request, agent = await self.resolve(principal, await _checked(request))
        options = run_options(request.configurable(), agent)
        if options.model_name is not None:
            find_model(await self.config(), options.model_name)
        request = _with_input(request, principal)
        if request.fork_from is not None:
            await self._check_checkpoint(principal, thread_id, request.fork_from)
        messages = _messages(request)
        kwargs, metadata = _kwargs(principal, request, agent, messages), storable(request.metadata or {})
        # Nothing is refused from here on: a run that cannot be leaves no thread behind.
        thread, goes_with_run = await self._thread(principal, request, thread_id)
        options = options.without(thread.switched_off)
        _add_choices(kwargs, thread, options)
        people = [message for message in messages if isinstance(message, HumanMessage)]
        new = NewRun(
            run_id=run_id or str(uuid7()),
            thread_id=thread.thread_id,
            user_id=principal.user_id,
            assistant_id=request.assistant_id,
            kwargs=kwargs | {"delete_thread": goes_with_run},
            metadata=metadata,
            strategy=request.multitask_strategy,
            model_name=options.model_name,
            due_at=utc_now() + timedelta(seconds=request.after_seconds) if request.after_seconds else None,
            first_human_message=people[0].text[:FIRST_MESSAGE_CHARS] if people else None,
            **({"trace_id": request.traceparent[3:35]} if request.traceparent else {}),
        )
        created = await self._created(new, _spec(principal, options, kwargs))
        await self._stopped(created.cancelled)
        return created.run

    async def get(
        self, principal: Principal, run_id: str, *, thread_id: str | None = None, to_change: bool = False
    ) -> Run:
        """Raises NotFoundError, also for a run of another thread."""
        return owned_run(await self.runs.find(run_id), principal, run_id, thread_id, to_change=to_change)

    async def is_thread(self, thread_id: str) -> bool:
        """Whether somebody has a thread with this id."""
        return await self.database.read(find_thread, thread_id) is not None

    async def list(
        self, principal: Principal, thread_id: str, *, limit: int = 10, offset: int = 0, status: str | None = None
    ) -> list[Run]:
        """Newest first. Raises NotFoundError."""
        await self.threads.get(principal, thread_id)
        return await self.runs.of_thread(thread_id, limit=limit, offset=offset, status=status)

    async def delete(self, principal: Principal, run_id: str, *, thread_id: str | None = None) -> None:
        """Raises NotFoundError, or ConflictError while it is active."""
        run = await self.get(principal, run_id, thread_id=thread_id, to_change=True)
        if not run.ended:
            raise ConflictError(f"Run {run_id} is {run.status}. Cancel it first.", code="run_active")
        await self.runs.delete(run_id)

    async def cancel(
        self,
        principal: Principal,
        run_id: str,
        *,
        thread_id: str | None = None,
        action: CancelAction = "interrupt",
        wait: bool = False,
    ) -> Run:
        """Ask for the run's end, from whichever process. ``interrupt`` keeps what it did, ``rollback`` undoes it.

        Args:
            wait: return when it has ended.

        Raises:
            NotFoundError: there is no such run, or it has ended already.
        """
        run = await self.get(principal, run_id, thread_id=thread_id, to_change=True)
        asked = await self.runs.request_cancel(run_id, action)
        if asked is None:
            raise NotFoundError(f"Run {run_id} is not cancellable (status: {run.status}).", code="run_ended")
        await self._stopped([asked])
        return await self._until_ended(asked) if wait else asked

    async def stop_task(self, principal: Principal, thread_id: str, task_id: str) -> None:
        """Ask for the end of one subagent, from whichever process. The agent goes on with what it has so far.

        Raises:
            NotFoundError: the thread has no such task.
            ConflictError: it has ended, or waits for a decision of the person.
        """
        await self.threads.get(principal, thread_id, to_change=True)
        task = await self.transcript.task(principal, thread_id, task_id)
        if task["status"] != "running":
            raise ConflictError(f"Task {task_id} has ended ({task['status']}).", code="task_ended")
        run = await self.runs.request_task_stop(thread_id, task_id)
        if run is None:
            text = f"Task {task_id} waits for your decision about a call. Reject the call, or stop the whole turn."
            raise ConflictError(text, code="task_waits")
        await self.queue.cancel(run.run_id)

    async def cancel_many(
        self,
        principal: Principal,
        *,
        thread_id: str | None = None,
        run_ids: Sequence[str] | None = None,
        status: str | None = None,
        action: CancelAction = "interrupt",
    ) -> int:
        """Cancel those of the principal's active runs that are meant; how many there were."""
        found = [
            run
            for run in await self.runs.unfinished()
            if may_change(principal, run)
            and thread_id in (None, run.thread_id)
            and (run_ids is None or run.run_id in run_ids)
            and (status in (None, "all") or run.status == status)
        ]
        asked = [await self.runs.request_cancel(run.run_id, action) for run in found]
        stopping = [run for run in asked if run is not None]
        await self._stopped(stopping)
        return len(stopping)

    async def wait(self, principal: Principal, run_id: str, *, thread_id: str | None = None) -> Run:
        """The run when it has ended. Raises NotFoundError."""
        return await self._until_ended(await self.get(principal, run_id, thread_id=thread_id))

    async def events(self, run: Run, *, after: int = 0, heartbeat: float = 5.0) -> AsyncGenerator[list[RunEvent], None]:
        """Yield what the run says after a position, until its end; an empty list every ``heartbeat`` seconds of silence.

        A run whose events are not there, dropped by now or never written, says that it ended, and the reason.
        """
        nothing = True
        reading = self.log.read(
            run.thread_id,
            run_id=run.run_id,
            after=after,
            heartbeat=heartbeat,
            ended=lambda: self._has_ended(run.run_id),
            fresh=run.attempt == 0,
        )
        async with aclosing(reading) as batches:
            async for batch in batches:
                nothing = nothing and not batch
                yield batch
        if nothing and (ended := await self._without_events(run.run_id)) is not None:
            about = {"run_id": ended.run_id, "thread_id": ended.thread_id, "attempt": ended.attempt}
            reason = FORGOTTEN if ended.attempt else ended.stop_reason
            end = {"status": ended.status.value, "stop_reason": reason}
            yield [
                RunEvent(after + 1, ended.run_id, "metadata", about),
                RunEvent(after + 2, ended.run_id, "end", end),
            ]

    async def _without_events(self, run_id: str) -> Run | None:
        """Return the run if it has ended and the log holds nothing of it."""
        run = await self.runs.find(run_id)
        if run is None or not run.ended:
            return None
        where = (run.thread_id, run_id, 0, None)
        return None if await self.database.read(read_page, *where) else run

    async def steer(self, principal: Principal, thread_id: str, message: Any) -> Run:
        """Hand a message to the thread's run that is on its way, or about to begin; it takes it up at its next step.

        A message that a run of the thread has taken already is not handed over again.

        Raises:
            InvalidRequestError: it is no message of a person.
            ConflictError: no run of the thread is running; start one with the message instead.
        """
        await self.threads.get(principal, thread_id, to_change=True)
        check_unicode(message, "message")
        messages = client_messages([storable(message)])
        if not isinstance(messages[0], HumanMessage):
            raise InvalidRequestError("Only a message of a person (role user) can be handed to a run on its way.")
        if (taken := await self.runs.that_took(thread_id, messages[0].id or "")) is not None:
            return taken
        for run in await self.runs.active(thread_id):
            if run.due_at is not None and run.due_at > utc_now():
                continue
            spec = RunSpec.of(run)
            said, *_ = await with_facts(
                messages,
                run_id=run.run_id,
                turn_id=run.turn,
                now=utc_now(),
                time_zone=spec.request.time_zone,
                uploads_dir=self.uploads_dir(run.user_id, thread_id),
                called=partial(self.called, principal, spec.options),
                config=await self.config(),
                provenance=ThreadProvenance(self.database, thread_id, run.run_id),
            )
            if await self.runs.steer(run.run_id, message_json(said), of_person=True):
                return run
        raise ConflictError(f"Thread {thread_id} has no running run to steer. Start a run instead.", code="not_running")

    async def values(self, run: Run) -> dict[str, Any]:
        """The thread's values for clients: as an ended run left them, otherwise as they are now."""
        if not run.ended and (live := await self.log.live_values(run.thread_id)) is not None:
            return live
        graph = await self.graph()
        snapshot = await graph.aget_state(config_of(run.thread_id, run.checkpoint_after))
        if snapshot.created_at is None and run.checkpoint_after is not None:  # compacted since
            snapshot = await graph.aget_state(config_of(run.thread_id))
        values = await asyncio.to_thread(values_json, snapshot.values)
        interrupts = [plain(interrupt) for task in snapshot.tasks for interrupt in task.interrupts]
        return {**values, "__interrupt__": interrupts} if interrupts else values

    # parts ------------------------------------------------------------------------------------------------------------

    async def _thread(self, principal: Principal, request: RunRequest, thread_id: str | None) -> tuple[Thread, bool]:
        """The run's thread, and whether it goes with the run."""
        goes = request.on_completion != "keep" if thread_id is None else request.on_completion == "delete"
        if thread_id is not None and request.if_not_exists != "create":
            return await self.threads.get(principal, thread_id, to_change=True), goes
        named = str(uuid.uuid4()) if thread_id is None else thread_id
        made = await self.threads.create(principal, named, assistant_id=request.assistant_id, metadata=request.metadata)
        return made, goes

    async def _check_checkpoint(self, principal: Principal, thread_id: str | None, checkpoint_id: str) -> None:
        """Raises NotFoundError. LangGraph would begin anew at a checkpoint that is not there."""
        if thread_id is None:
            raise NotFoundError(f"There is no checkpoint {checkpoint_id}: a run without a thread begins from nothing.")
        await self.threads.get(principal, thread_id, to_change=True)
        saver: Any = (await self.graph()).checkpointer
        if await saver.aget_tuple(config_of(thread_id, checkpoint_id)) is None:
            raise NotFoundError(f"Thread {thread_id} has no checkpoint {checkpoint_id}.")

    async def _created(self, new: NewRun, spec: RunSpec) -> Created:
        """The recorded run. This process executes it at once if it may and has room for it."""
        future: asyncio.Future[Created] = asyncio.get_running_loop().create_future()
        create = lambda: self.executor.create(new, spec, future)  # noqa: E731
        if new.due_at is None and self.queue.begin(new.run_id, new.thread_id, create):
            return await future
        created = await self.runs.create(new)
        self.observer.status_changed(created.run)
        await self.queue.defer(new.run_id, new.thread_id, at=new.due_at)
        return created

    async def _stopped(self, asked: Sequence[Run]) -> None:
        """Notify their executors, and the readers of those that have ended with that."""
        for run in asked:
            self.observer.status_changed(run)
            await self.queue.cancel(run.run_id)
            if not run.ended:
                continue
            if not run.closed:
                await self.queue.defer(run.run_id, run.thread_id)
            else:
                due = await self.database.write(follow_up_closed, run, self.capabilities)
                if due is not None:
                    self.observer.tasks_enqueued(due)
            await self.log.notify(run.thread_id)

    async def _until_ended(self, run: Run) -> Run:
        async for _ in self.events(run):
            pass
        return await self.runs.find(run.run_id) or replace(run, status=RunStatus.INTERRUPTED)

    async def _has_ended(self, run_id: str) -> bool:
        run = await self.runs.find(run_id)
        return run is None or run.ended


async def _checked(request: RunRequest) -> RunRequest:
    """Return the request, whose schemas of answers are schemas. Raises InvalidRequestError."""
    for check in request.checks:
        if check.answer_schema is not None:
            await asyncio.to_thread(check_schema, check.answer_schema)
    return request


def _with_input(request: RunRequest, principal: Principal) -> RunRequest:
    """Return the request without values that only agents compute. Raises InvalidRequestError for what no client may set."""
    if request.command is not None:
        visible_input(request.command.changes())
    if not isinstance(request.input, dict):
        return request
    given = without_computed(request.input, principal.user_id)
    visible_input(given)
    return request.model_copy(update={"input": given})


def _kwargs(
    principal: Principal,
    request: RunRequest,
    agent: AgentConfig | None,
    messages: Sequence[AnyMessage],
) -> dict[str, Any]:
    """Return what the run's row keeps of the request."""
    return storable(
        {
            "request": request.model_dump(mode="json", exclude_none=True),
            "role": principal.role,
            "agent": agent.model_dump(mode="json", exclude_defaults=True) if agent is not None else None,
            "message_ids": [message.id for message in messages],
            TURNS: [message.id for message in messages if isinstance(message, HumanMessage)],
            "fork_from": request.fork_from,
        }
    )


def _add_choices(kwargs: dict[str, Any], thread: Thread, options: RunOptions) -> None:
    """Add what the person has chosen for the thread to what the run's row keeps."""
    if off := options.switched_off:
        kwargs["request"].setdefault("context", {})[SWITCHED_OFF] = list(off)
    if thread.temporary:
        kwargs[TEMPORARY] = True


def _spec(principal: Principal, options: RunOptions, kwargs: Mapping[str, Any]) -> RunSpec:
    return RunSpec(
        request=RunRequest.model_validate(kwargs["request"]),
        principal=Principal(principal.user_id, principal.role, "internal"),
        options=options,
        message_ids=tuple(kwargs["message_ids"]),
    )


def _messages(request: RunRequest) -> Sequence[AnyMessage]:
    """Those of the input. Raises InvalidRequestError if it holds none where it should."""
    given = request.input.get("messages") if isinstance(request.input, dict) else request.input
    return messages_of(given or [])
