"""A thread's events as a client of the agent streaming protocol follows them, over whatever connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from deerflow.errors import NotFoundError
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.agent_protocol import (
    ENDINGS,
    Frame,
    Renderer,
    RunFacts,
    epoch_start,
    log_position,
    protocol_position,
)
from deerflow.events.streams.langgraph_sse import voids_partial_answer
from deerflow.runs.request import RunRequest
from deerflow.storage.runs import RunStatus
from deerflow.storage.tables import utc_now

if TYPE_CHECKING:
    from deerflow.events.log import EventLog
    from deerflow.events.notify import Hub
    from deerflow.events.store import RunEvent
    from deerflow.events.streams.agent_protocol import AnyOf, Subscription
    from deerflow.identity import Principal
    from deerflow.runs.service import RunService
    from deerflow.storage.runs import Run
    from deerflow.threads.states import ThreadStates

HEARTBEAT_SECONDS = 5.0
RECENT_RUNS = 20
JUST_ENDED = timedelta(minutes=1)
"""On a busy machine the SDK tries several times, for some seconds each, to open what watches a thread."""


class ProtocolStreams:
    """Event streams of threads.

    Args:
        runs: the runs, with their owners.
        log: what they say.
        states: the threads' values.
    hub: tells when runs start.
    """

    def __init__(self, runs: RunService, log: EventLog, states: ThreadStates, hub: Hub) -> None:
        self._runs = runs
        self._log = log
        self._states = states
        self._hub = hub
        self._heard: set[str] = set()
        """Runs that ended lately, whose end has been told to who watched it and has left."""

    async def open(
        self,
        principal: Principal,
        thread_id: str,
        wanted: Subscription | AnyOf,
        *,
        since: int = 0,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        """Events of the protocol, some at a time, for ever; an empty list after ``heartbeat`` seconds without any.

        Without ``since`` (0) what is on its way is replayed from its start, else the newest run. Who merely watches runs come and
        go hears of one that has ended only if it waits for an
        answer, or if it made the thread just now.

        Raises:
            NotFoundError: no such thread.
        """
        recent = await self._runs.list(principal, thread_id, limit=RECENT_RUNS)
        return self._follower(principal, thread_id, wanted, since).follow(recent, heartbeat)

    async def open_early(
        self,
        principal: Principal,
        thread_id: str,
        wanted: Subscription | AnyOf,
        *,
        since: int = 0,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        """Like :meth:`open`; a thread that is not there is waited for, and then replayed from its first run's start.

        Raises:
            NotFoundError: the thread is someone else's, so it can never be the principal's.
        """
        try:
            return await self.open(principal, thread_id, wanted, since=since, heartbeat=heartbeat)
        except NotFoundError:
            if await self._runs.is_thread(thread_id):
                raise
            return self._follow_when_there(principal, self._follower(principal, thread_id, wanted, since), heartbeat)

    async def _follow_when_there(
        self, principal: Principal, follower: _Follower, heartbeat: float
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        """What says that the thread is there is the person's own notice of its first run; the heartbeat is for lost ones."""
        recent: list[Run] | None = None
        async with aclosing(self._hub.subscribe(principal.user_id, heartbeat)) as notices:
            while recent is None:
                news = asyncio.ensure_future(anext(notices))
                try:
                    await asyncio.sleep(0)  # the task runs until it listens
                    recent = await follower.recent()
                    if recent is None and not await news:
                        yield []
                finally:
                    news.cancel()
                    await asyncio.wait([news])
        async with aclosing(follower.follow(recent, heartbeat, from_start=True)) as batches:
            async for batch in batches:
                yield batch

    def _follower(self, principal: Principal, thread_id: str, wanted: Subscription | AnyOf, since: int) -> _Follower:
        return _Follower(self._runs, self._log, self._states, principal, thread_id, wanted, since, self._heard)

    async def position(self, principal: Principal, thread_id: str) -> int:
        """A position before everything that a run started from now on will say, and not before what has ended.

        Raises:
            NotFoundError: no such thread.
        """
        return position_after(await self._runs.list(principal, thread_id, limit=RECENT_RUNS))


def position_after(recent: Sequence[Run]) -> int:
    """A position before everything that runs still on their way, or to come, say. 0: nothing was said yet.

    Args:
        recent: the newest runs of a thread, at least RECENT_RUNS if there are so many.
    """
    claimed = [run for run in recent if run.epoch]
    if not claimed:
        return 0
    newest = max(claimed, key=lambda run: run.epoch)
    return protocol_position(epoch_start(newest.epoch + 1 if newest.ended else newest.epoch))


class _Follower:
    """One client's way through a thread's log."""

    def __init__(
        self,
        runs: RunService,
        log: EventLog,
        states: ThreadStates,
        principal: Principal,
        thread_id: str,
        wanted: Subscription | AnyOf,
        since: int,
        heard: set[str],
    ) -> None:
        self._runs = runs
        self._log = log
        self._states = states
        self._principal = principal
        self._thread_id = thread_id
        self._wanted = wanted
        self._since = since
        self._renderer = Renderer()
        self._past: set[int] = set()
        self._over: set[str] = set()
        self._heard = heard
        self._told: set[str] = set()
        self._shown: Mapping[str, Any] | None = None
        self._begun: str | None = None

    async def recent(self) -> list[Run] | None:
        """The thread's newest runs; None if there is no such thread."""
        try:
            return await self._runs.list(self._principal, self._thread_id, limit=RECENT_RUNS)
        except NotFoundError:
            return None

    async def follow(
        self, recent: list[Run], heartbeat: float, *, from_start: bool = False
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        """Args: ``from_start``: what has ended is news, too."""
        clock = asyncio.get_running_loop().time
        spoke = clock()
        after = 0 if from_start else self._start(recent)
        self._over = {run.run_id for run in recent if run.ended and not from_start}
        newest = max((run.epoch for run in recent), default=0)
        self._past = {run.epoch for run in recent if run.epoch < newest}
        try:
            async for batch in self._log.read(self._thread_id, after=after, heartbeat=heartbeat):
                frames = (
                    [self._event(frame) for frame in await self._frames(batch)]
                    if batch
                    else await self._silent_endings()
                )
                if frames or clock() - spoke >= heartbeat:
                    yield frames
                    spoke = clock()
        finally:
            self._heard |= self._told
            asyncio.get_running_loop().call_later(JUST_ENDED.total_seconds(), self._heard.difference_update, self._told)

    def _start(self, recent: list[Run]) -> int:
        """From where in the log to read: always from the start of an epoch, for what is emitted depends on all of it."""
        if self._since:
            return epoch_start(log_position(self._since) // EVENTS_PER_CLAIM)
        newest = max((run.epoch for run in recent), default=0)
        replayed = [run for run in recent if self._replays(run, newest)]
        if any(not run.ended for run in recent):
            # Who starts a run and then listens takes the end of an earlier one for its own.
            replayed = [run for run in replayed if not run.ended]
        return epoch_start(min((run.epoch for run in replayed if run.epoch), default=newest + 1))

    def _replays(self, run: Run, newest: int) -> bool:
        if not run.ended:
            return True
        if run.epoch != newest:
            return False
        if not self._wanted.watches_only or run.status is RunStatus.INTERRUPTED:
            return True
        return run.run_id not in self._heard and _made_its_thread_just_now(run)

    async def _frames(self, batch: list[RunEvent]) -> list[Frame]:
        """Of the snapshots of a batch only the newest is worth its size."""
        snapshots = [
            event.seq for event in batch if event.method == "end" or (event.method == "values" and not event.namespace)
        ]
        frames: list[Frame] = []
        for event in batch:
            facts = await self._facts(event.run_id) if event.method == "metadata" else None
            if voids_partial_answer(event):
                self._shown = None
            newest = bool(snapshots) and event.seq == snapshots[-1] and event.seq // EVENTS_PER_CLAIM not in self._past
            for frame in self._renderer.render(event, facts):
                if frame.final:
                    self._over.add(frame.run_id)
                if frame.seq > self._since and (made := await self._made(frame, newest=newest)):
                    frames.append(made)
                    if frame.final and self._wanted.watches_only:
                        self._told.add(frame.run_id)
        return frames

    async def _made(self, frame: Frame, *, newest: bool) -> Frame | None:
        """``frame`` with what the log does not hold, or None if nobody wants it."""
        if not self._wanted.matches(
            {"method": frame.method, "params": {"namespace": frame.namespace, "data": frame.data}}
        ):
            return None
        if frame.data is not None or frame.namespace:
            return frame
        if not newest:
            return None
        if frame.method == "checkpoints":
            checkpoint = await self._checkpoint(frame)
            return _filled(frame, checkpoint) if checkpoint else None
        values = await self._values(final=frame.final)
        # Between the first and the last snapshot messages come one by one: only news of the rest is worth a snapshot.
        rest = {key: value for key, value in values.items() if key != "messages"}
        if not frame.final and rest == self._shown:
            return None
        self._shown = rest
        return _filled(frame, values)

    async def _values(self, *, final: bool) -> dict[str, Any]:
        """The thread's values as they are now; while a run goes on, from itself if it is in this process."""
        if not final and (live := await self._log.live_values(self._thread_id)) is not None:
            return live
        return (await self._states.get(self._principal, self._thread_id))["values"]

    async def _checkpoint(self, frame: Frame) -> dict[str, str] | None:
        """A client keeps the parent with the messages of the values that follow, and forks there to ask anew; hence the
        first snapshot of a run names where it began, and the last one no parent."""
        run = await self._run(frame.run_id)
        if run is None:
            return None
        if frame.final:
            return {"id": run.checkpoint_after} if run.checkpoint_after else None
        if self._begun == run.run_id:
            return None
        self._begun = run.run_id
        before = _request(run).fork_from or run.checkpoint_before
        return {"id": before, "parent_id": before} if before else None

    async def _facts(self, run_id: str) -> RunFacts:
        run = await self._run(run_id)
        if run is None:
            return RunFacts()
        command = _request(run).command
        resume = command.resume if command else None
        return RunFacts([str(key) for key in resume if _names_interrupt(key)] if isinstance(resume, Mapping) else [])

    async def _run(self, run_id: str) -> Run | None:
        try:
            return await self._runs.get(self._principal, run_id, thread_id=self._thread_id)
        except NotFoundError:
            return None

    async def _silent_endings(self) -> list[dict[str, Any]]:
        """Runs that ended without a word, such as one that was cancelled before its turn came: nothing of them is logged."""
        recent = await self.recent()
        over = [run for run in recent or () if run.run_id not in self._over and _ended_silently(run)]
        self._over.update(run.run_id for run in over)
        frames = (_ending(run, self._since) for run in over)
        return [self._event(frame) for frame in frames if self._wanted.matches(frame.event(0))]

    def _event(self, frame: Frame) -> dict[str, Any]:
        return frame.event(time.time_ns() // 1_000_000)


def _request(run: Run) -> RunRequest:
    return RunRequest.model_validate(run.kwargs["request"])


def _filled(frame: Frame, data: Any) -> Frame:
    return Frame(frame.seq, frame.event_id, frame.run_id, frame.method, frame.namespace, data, frame.final)


def _ended_silently(run: Run) -> bool:
    """A run that had begun gets time for its last word to arrive."""
    if run.ended_at is None or not run.epoch:
        return run.ended
    return (utc_now() - run.ended_at).total_seconds() > HEARTBEAT_SECONDS


def _made_its_thread_just_now(run: Run) -> bool:
    """The SDK watches a thread that ``run.start`` makes only once that has been answered. A quick run has ended by then, and its
    end is what the SDK waits for."""
    if run.position != 1 or run.ended_at is None or utc_now() - run.ended_at > JUST_ENDED:
        return False
    return _request(run).if_not_exists == "create"


def _ending(run: Run, since: int) -> Frame:
    data = {"event": ENDINGS[run.status.value], "run_id": run.run_id, "status": run.status.value}
    if run.error:
        data["error"] = run.error
    seq = max(since, protocol_position(epoch_start(run.epoch)))
    return Frame(seq, f"synth:{run.run_id}:ended", run.run_id, "lifecycle", [], data, final=True)


def _names_interrupt(key: object) -> bool:
    """Interrupts are named by 128 bits in hexadecimal digits; other keys belong to an answer that happens to be a mapping."""
    return isinstance(key, str) and len(key) == 32 and all(digit in "0123456789abcdef" for digit in key)
