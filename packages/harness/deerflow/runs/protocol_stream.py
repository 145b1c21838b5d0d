"""A thread's events as a client of the agent streaming protocol follows them, over whatever connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from deerflow.errors import NotFoundError
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.agent_protocol import (
    ENDINGS,
    Frame,
    Renderer,
    epoch_start,
    log_position,
    protocol_position,
)
from deerflow.events.streams.langgraph_sse import voids_partial_answer
from deerflow.runs.request import RunRequest
from deerflow.storage.runs import RunStatus
from deerflow.storage.tables import utc_now

if TYPE_CHECKING:
    from deerflow.events.hub import Hub
    from deerflow.events.log import EventLog
    from deerflow.events.store import RunEvent
    from deerflow.identity import Principal
    from deerflow.runs.service import RunService
    from deerflow.storage.runs import Run
    from deerflow.threads.states import ThreadStates

Event = dict[str, Any]

HEARTBEAT_SECONDS = 5.0
RECENT_RUNS = 20
JUST_ENDED = timedelta(minutes=1)
"""On a busy machine the SDK tries several times, for some seconds each, to open what watches a thread."""

# what a client subscribes to -------------------------------------------------------------------------------------------

CHANNELS = frozenset({"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"})
CUSTOM = "custom:"
WATCHED = frozenset({"lifecycle", "input"})


class Subscription(BaseModel):
    """A filter over the events of a thread.

    ``channels`` may name one custom event as ``custom:<name>``. ``namespaces`` are prefixes; a segment without ``:`` stands
    for all segments of that name (``tools`` for ``tools:call_1``). ``depth`` is how far below a prefix (the root, if there
    is none) an event may lie.
    """

    model_config = ConfigDict(extra="forbid")

    channels: list[str] = Field(min_length=1, examples=[["values", "messages", "tools", "lifecycle", "input"]])
    namespaces: list[list[str]] | None = None
    depth: int | None = Field(default=None, ge=0)

    @field_validator("channels", mode="after")
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        for channel in value:
            if channel not in CHANNELS and not (channel.startswith(CUSTOM) and channel != CUSTOM):
                raise ValueError(f"{channel!r} is not a channel. Known: {', '.join(sorted(CHANNELS))}, custom:<name>.")
        return value

    @property
    def watches_only(self) -> bool:
        """Whether nothing but the coming and going of runs and their questions is asked for."""
        return WATCHED.issuperset(self.channels)

    def matches(self, event: Mapping[str, Any]) -> bool:
        params = event["params"]
        return self._wants(channel_of(event["method"], params["data"])) and self._reaches(params["namespace"])

    def _wants(self, channel: str) -> bool:
        return channel in self.channels or (channel.startswith(CUSTOM) and "custom" in self.channels)

    def _reaches(self, namespace: Sequence[str]) -> bool:
        return any(
            _begins_with(namespace, prefix) and (self.depth is None or len(namespace) - len(prefix) <= self.depth)
            for prefix in self.namespaces or [[]]
        )


class AnyOf:
    """What at least one of several subscriptions wants. They may come and go."""

    def __init__(self, subscriptions: Collection[Subscription]) -> None:
        self._subscriptions = subscriptions

    @property
    def watches_only(self) -> bool:
        return all(subscription.watches_only for subscription in self._subscriptions)

    def matches(self, event: Mapping[str, Any]) -> bool:
        return any(subscription.matches(event) for subscription in self._subscriptions)


class EventStreamRequest(Subscription):
    """A subscription as clients ask for it. ``since``: only what came after this position; 0 is as good as none."""

    since: int = Field(default=0, ge=0)

    @field_validator("since", mode="before")
    @classmethod
    def _none_is_zero(cls, value: object) -> object:
        return 0 if value is None else value


def channel_of(method: str, data: Any) -> str:
    if method == "custom" and isinstance(data, Mapping) and data.get("name"):
        return CUSTOM + str(data["name"])
    return "input" if method.startswith("input.") else method


def _begins_with(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    return len(prefix) <= len(namespace) and all(
        wanted == segment or (":" not in wanted and segment.partition(":")[0] == wanted)
        for wanted, segment in zip(prefix, namespace, strict=False)
    )


# what it gets -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class ProtocolStreams:
    """Event streams of threads.

    Args:
        hub: tells when runs start.
    """

    runs: RunService
    log: EventLog
    states: ThreadStates
    hub: Hub
    heard: set[str] = field(default_factory=set[str])
    """Runs that ended lately, whose end has been told to who watched it and has left."""

    async def open(
        self,
        principal: Principal,
        thread_id: str,
        wanted: Subscription | AnyOf,
        *,
        since: int = 0,
        heartbeat: float = HEARTBEAT_SECONDS,
        waits: bool = False,
    ) -> AsyncGenerator[list[Event], None]:
        """Events of the protocol, some at a time, for ever; an empty list after ``heartbeat`` seconds without any.

        Without ``since`` (0) what is on its way is replayed from its start, else the newest run. Who merely watches runs come
        and go hears of one that has ended only if it waits for an answer, or if it made the thread just now.

        Args:
            waits: a thread that is not there is waited for, and then replayed from its first run's start.

        Raises:
            NotFoundError: no such thread, or it is someone else's, so it can never be the principal's.
        """
        follower = _Follower(self, principal, thread_id, wanted, since)
        try:
            recent = await self.runs.list(principal, thread_id, limit=RECENT_RUNS)
        except NotFoundError:
            if not waits or await self.runs.is_thread(thread_id):
                raise
            return follower.follow_when_there(heartbeat)
        return follower.follow(recent, heartbeat)

    async def position(self, principal: Principal, thread_id: str) -> int:
        """A position before everything that a run started from now on will say, and not before what has ended.

        Raises:
            NotFoundError: no such thread.
        """
        return position_after(await self.runs.list(principal, thread_id, limit=RECENT_RUNS))


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


@dataclass(eq=False)
class _Follower:
    """One client's way through a thread's log."""

    streams: ProtocolStreams
    principal: Principal
    thread_id: str
    wanted: Subscription | AnyOf
    since: int
    _renderer: Renderer = field(default_factory=Renderer)
    _past: set[int] = field(default_factory=set[int])
    _over: set[str] = field(default_factory=set[str])
    _told: set[str] = field(default_factory=set[str])
    _shown: Mapping[str, Any] | None = None
    _begun: str | None = None

    async def recent(self) -> list[Run] | None:
        """The thread's newest runs; None if there is no such thread."""
        try:
            return await self.streams.runs.list(self.principal, self.thread_id, limit=RECENT_RUNS)
        except NotFoundError:
            return None

    async def follow_when_there(self, heartbeat: float) -> AsyncGenerator[list[Event], None]:
        """What says that the thread is there is the person's own notice of its first run; the heartbeat is for lost ones."""
        recent: list[Run] | None = None
        async with aclosing(self.streams.hub.subscribe(self.principal.user_id, heartbeat)) as notices:
            while recent is None:
                news = asyncio.ensure_future(anext(notices))
                try:
                    await asyncio.sleep(0)  # the task runs until it listens
                    recent = await self.recent()
                    if recent is None and not await news:
                        yield []
                finally:
                    news.cancel()
                    await asyncio.wait([news])
        async with aclosing(self.follow(recent, heartbeat, from_start=True)) as batches:
            async for batch in batches:
                yield batch

    async def follow(
        self, recent: list[Run], heartbeat: float, *, from_start: bool = False
    ) -> AsyncGenerator[list[Event], None]:
        """Args: ``from_start``: what has ended is news, too."""
        loop = asyncio.get_running_loop()
        spoke = loop.time()
        newest = max((run.epoch for run in recent), default=0)
        after = 0 if from_start else self._start(recent, newest)
        self._over = {run.run_id for run in recent if run.ended and not from_start}
        self._past = {run.epoch for run in recent if run.epoch < newest}
        heard = self.streams.heard
        try:
            async for batch in self.streams.log.read(self.thread_id, after=after, heartbeat=heartbeat):
                events = await self._events(batch) if batch else await self._silent_endings()
                if events or loop.time() - spoke >= heartbeat:
                    yield events
                    spoke = loop.time()
        finally:
            heard |= self._told
            loop.call_later(JUST_ENDED.total_seconds(), heard.difference_update, self._told)

    def _start(self, recent: list[Run], newest: int) -> int:
        """From where in the log to read: always from the start of an epoch, for what is emitted depends on all of it."""
        if self.since:
            return epoch_start(log_position(self.since) // EVENTS_PER_CLAIM)
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
        if not self.wanted.watches_only or run.status is RunStatus.INTERRUPTED:
            return True
        return run.run_id not in self.streams.heard and _made_its_thread_just_now(run)

    async def _events(self, batch: list[RunEvent]) -> list[Event]:
        """Of the snapshots of a batch only the newest is worth its size."""
        snapshots = [
            event.seq for event in batch if event.method == "end" or (event.method == "values" and not event.namespace)
        ]
        events: list[Event] = []
        for event in batch:
            answers = await self._answers(event.run_id) if event.method == "metadata" else ()
            if voids_partial_answer(event):
                self._shown = None
            newest = bool(snapshots) and event.seq == snapshots[-1] and event.seq // EVENTS_PER_CLAIM not in self._past
            for frame in self._renderer.render(event, answers):
                if frame.final:
                    self._over.add(frame.run_id)
                if frame.seq > self.since and (made := await self._made(frame, newest=newest)):
                    events.append(made)
                    if frame.final and self.wanted.watches_only:
                        self._told.add(frame.run_id)
        return events

    async def _made(self, frame: Frame, *, newest: bool) -> Event | None:
        """The event of ``frame``, with what the log does not hold, or None if nobody wants it."""
        event = frame.event(_now())
        if not self.wanted.matches(event):
            return None
        if frame.data is not None or frame.namespace:
            return event
        if not newest:
            return None
        if frame.method == "checkpoints":
            found = await self._checkpoint(frame)
        else:
            found = await self._values(final=frame.final)
            # Between the first and the last snapshot messages come one by one: only news of the rest is worth a snapshot.
            rest = {key: value for key, value in found.items() if key != "messages"}
            if not frame.final and rest == self._shown:
                return None
            self._shown = rest
        event["params"]["data"] = found
        return event if found is not None else None

    async def _values(self, *, final: bool) -> dict[str, Any]:
        """The thread's values as they are now; while a run goes on, from itself if it is in this process."""
        if not final and (live := await self.streams.log.live_values(self.thread_id)) is not None:
            return live
        return (await self.streams.states.get(self.principal, self.thread_id))["values"]

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

    async def _answers(self, run_id: str) -> Sequence[str]:
        """The interrupts that the run answers."""
        run = await self._run(run_id)
        command = _request(run).command if run is not None else None
        resume = command.resume if command is not None else None
        return [str(key) for key in resume if _names_interrupt(key)] if isinstance(resume, Mapping) else []

    async def _run(self, run_id: str) -> Run | None:
        try:
            return await self.streams.runs.get(self.principal, run_id, thread_id=self.thread_id)
        except NotFoundError:
            return None

    async def _silent_endings(self) -> list[Event]:
        """Runs that ended without a word, such as one that was cancelled before its turn came: nothing of them is logged."""
        recent = await self.recent()
        over = [run for run in recent or () if run.run_id not in self._over and _ended_silently(run)]
        self._over.update(run.run_id for run in over)
        events = [_ending(run, self.since).event(_now()) for run in over]
        return [event for event in events if self.wanted.matches(event)]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _request(run: Run) -> RunRequest:
    return RunRequest.model_validate(run.kwargs["request"])


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
