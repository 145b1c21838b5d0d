"""The events of a run as events of the agent streaming protocol (``langchain-protocol``; what ``threads.stream`` clients read).

One event of the log becomes several of the protocol. Their positions are derived from its own, so that every connection
numbers them alike: clients open streams anew whenever they want to see more, and drop what they have seen by its id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from deerflow.events.graph_stream import LLM_RETRY
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.client_events import messages_in, text_of
from deerflow.events.streams.protocol_messages import MessageStreams

if TYPE_CHECKING:
    from deerflow.events.store import RunEvent

Data = dict[str, Any]
Namespace = tuple[str, ...]

SLOTS = 64
"""How many positions an event of the log has room for: protocol positions are ``seq * SLOTS`` and what follows."""

ENDINGS = {"success": "completed", "error": "failed", "timeout": "failed", "interrupted": "interrupted"}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the log does not say about a run when it begins: which interrupts it answers."""

    answers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """An event of the protocol. ``data`` is None for root ``values`` and the checkpoint before them: whoever sends them looks
    them up, since snapshots are not part of the log."""

    seq: int
    event_id: str
    run_id: str
    method: str
    namespace: list[str]
    data: Any
    final: bool = False
    """Whether its run ends here."""

    def event(self, timestamp: int) -> Data:
        """Args: ``timestamp`` in milliseconds since 1970, at which it was emitted."""
        params = {"namespace": self.namespace, "timestamp": timestamp, "data": self.data}
        return {"type": "event", "event_id": self.event_id, "seq": self.seq, "method": self.method, "params": params}


@dataclass(slots=True)
class _Attempt:
    """What has to be remembered of an attempt at a run. It is over when the log goes on in another epoch."""

    epoch: int
    run_id: str
    messages: MessageStreams = field(default_factory=MessageStreams)
    started: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    entered: dict[Namespace, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    """The call of each namespace in which a subagent works."""
    error: str | None = None


Emitted = tuple[str, Namespace, Any]
_SNAPSHOT: tuple[Emitted, ...] = (("checkpoints", (), None), ("values", (), None))
"""Clients take a checkpoint for that of the values which follow it."""


class Renderer:
    """Turns the events of a thread's log into frames. Has to begin where an epoch begins: see :func:`epoch_start`."""

    def __init__(self) -> None:
        self._attempt = _Attempt(-1, "")

    def render(self, event: RunEvent, facts: RunFacts | None = None) -> list[Frame]:
        """Args: ``facts`` of the run, needed with its ``metadata`` event."""
        epoch = event.seq // EVENTS_PER_CLAIM
        if epoch != self._attempt.epoch or event.run_id != self._attempt.run_id:
            self._attempt = _Attempt(epoch, event.run_id)
        emitted = list(self._entering(event.namespace))
        emitted += self._emitted(event, facts or RunFacts())
        return _numbered(event, emitted)

    def _emitted(self, event: RunEvent, facts: RunFacts) -> Iterable[Emitted]:
        namespace, data = event.namespace, event.data
        match event.method:
            case "metadata":
                return self._begin(data, facts)
            case "messages":
                return self._message(namespace, *data)
            case "updates":
                return self._updates(namespace, data)
            case "input":
                return [("updates", namespace, {"node": "__start__", **data})]
            case "values" if not namespace:
                return _SNAPSHOT
            case "values" | "tasks":
                return [(event.method, namespace, data)]
            case "checkpoints":
                return [("checkpoints", namespace, _envelope(data))]
            case "custom":
                return self._custom(namespace, data)
            case "error":
                self._attempt.error = str(data.get("message") or data.get("error"))
                return []
            case "end":
                return self._end(str(data.get("status")))
            case _:
                return []

    def _begin(self, data: Mapping[str, Any], facts: RunFacts) -> Iterator[Emitted]:
        """The second attempt takes nothing up that the first left half said."""
        if int(data.get("attempt") or 1) > 1:
            yield "messages", (), {"event": "error", "message": "The run was taken up again.", "code": "aborted"}
        yield "lifecycle", (), {"event": "running", "run_id": self._attempt.run_id}
        if facts.answers:
            yield "input.answered", (), {"interrupt_ids": list(facts.answers)}

    def _custom(self, namespace: Namespace, data: Any) -> Iterator[Emitted]:
        """An answer that is asked for anew is over before the values that are without it."""
        if isinstance(data, Mapping) and data.get("type") == LLM_RETRY:
            for closing in self._attempt.messages.close(namespace):
                yield "messages", namespace, closing
        if isinstance(data, Mapping) and data.get("type") == "task_started":
            self._attempt.tasks |= {str(inner): str(data.get("task_id")) for inner in data.get("namespace") or ()}
        yield "custom", namespace, _custom(data)

    def _message(
        self, namespace: Namespace, message: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> Iterator[Emitted]:
        streams = self._attempt.messages
        chunk = message.get("type") == "AIMessageChunk"
        for data in (streams.chunk if chunk else streams.whole)(namespace, message, metadata):
            yield "messages", namespace, data
        if not chunk:
            yield from self._tools(namespace, message)

    def _updates(self, namespace: Namespace, updates: Mapping[str, Any]) -> Iterator[Emitted]:
        for node, writes in updates.items():
            if node == "__interrupt__":
                yield from self._interrupts(namespace, writes)
                continue
            for message in messages_in({node: writes}):
                for data in self._attempt.messages.settle(namespace, message):
                    yield "messages", namespace, data
                yield from self._tools(namespace, message)
            yield "updates", namespace, {"node": node, "values": writes}

    def _interrupts(self, namespace: Namespace, interrupts: Iterable[Mapping[str, Any]]) -> Iterator[Emitted]:
        """Those of a subgraph are reported once more by every graph around it."""
        for interrupt in interrupts:
            if interrupt["id"] not in self._attempt.asked:
                self._attempt.asked.add(interrupt["id"])
                value = interrupt.get("value")
                # The JavaScript client reads payload, the Python one value.
                yield "input.requested", namespace, {"interrupt_id": interrupt["id"], "payload": value, "value": value}

    def _tools(self, namespace: Namespace, message: Mapping[str, Any]) -> Iterator[Emitted]:
        """Tools are at work from the message that calls them to the one that brings the result."""
        for call in message.get("tool_calls") or ():
            yield from self._tool_started(namespace, str(call.get("id")), str(call.get("name")), call.get("args"))
        id_ = message.get("tool_call_id")
        if message.get("type") != "tool" or not id_ or id_ in self._attempt.finished:
            return
        yield from self._tool_started(namespace, id_, str(message.get("name") or ""), None)
        self._attempt.finished.add(id_)
        failed, content = message.get("status") == "error", message.get("content")
        tasks = self._attempt.tasks
        ours = lambda inner: inner[-1].endswith(f":{id_}") or tasks.get(inner[-1]) == id_  # noqa: E731
        yield from self._leaving(ours, "failed" if failed else "completed")
        if failed:
            yield "tools", namespace, {"event": "tool-error", "tool_call_id": id_, "message": text_of(content)}
        else:
            yield "tools", namespace, {"event": "tool-finished", "tool_call_id": id_, "output": content}

    def _tool_started(self, namespace: Namespace, id_: str, name: str, args: Any) -> Iterator[Emitted]:
        if id_ in self._attempt.started:
            return
        self._attempt.started[id_] = name
        data = {"event": "tool-started", "tool_call_id": id_, "tool_name": name}
        yield "tools", namespace, data if args is None else {**data, "input": args}

    def _entering(self, namespace: Namespace) -> Iterator[Emitted]:
        """A subgraph starts with the first thing that is heard of it."""
        for length in range(1, len(namespace) + 1):
            inner = namespace[:length]
            if inner in self._attempt.entered:
                continue
            name, _, id_ = inner[-1].partition(":")
            id_ = self._attempt.tasks.get(inner[-1], id_)
            self._attempt.entered[inner] = name
            data: Data = {"event": "started", "graph_name": name}
            if id_ in self._attempt.started:
                data["cause"] = {"type": "toolCall", "tool_call_id": id_}
            yield "lifecycle", inner, data

    def _leaving(self, ends: Any, status: str) -> Iterator[Emitted]:
        over = [inner for inner in self._attempt.entered if ends(inner)]
        for inner in sorted(self._attempt.entered, key=len, reverse=True):
            if any(inner[: len(outer)] == outer for outer in over):
                name = self._attempt.entered.pop(inner)
                yield "lifecycle", inner, {"event": status, "graph_name": name}

    def _end(self, status: str) -> Iterator[Emitted]:
        """Values come before the last word: with it, clients drop the messages that no values have carried."""
        for namespace, data in self._attempt.messages.close_all():
            yield "messages", namespace, data
        event = ENDINGS.get(status, "failed")
        yield from self._leaving(lambda _: True, event)
        yield from _SNAPSHOT
        data = {"event": event, "run_id": self._attempt.run_id, "status": status}
        if event == "failed":
            data["error"] = self._attempt.error or (
                "The run took too long." if status == "timeout" else "The run failed."
            )
        yield "lifecycle", (), data


def log_position(seq: int) -> int:
    """The event of the log that the frame at ``seq`` belongs to."""
    return seq // SLOTS


def protocol_position(seq: int) -> int:
    """The position of the last frame that the event of the log at ``seq`` can have."""
    return seq * SLOTS + SLOTS - 1


def epoch_start(epoch: int) -> int:
    """The position in the log after which all events of ``epoch`` lie."""
    return max(0, epoch * EVENTS_PER_CLAIM - 1)


def _numbered(event: RunEvent, emitted: list[Emitted]) -> list[Frame]:
    """Beyond the room of an event positions repeat, all but the last one short of it: who resumes there gets all again."""
    frames: list[Frame] = []
    for index, (method, namespace, data) in enumerate(emitted):
        last = index == len(emitted) - 1
        slot = index if len(emitted) <= SLOTS else SLOTS - 1 if last else min(index, SLOTS - 2)
        seq = event.seq * SLOTS + slot
        # Clients tell by this form which run a root lifecycle event belongs to.
        run_bound = method == "lifecycle" and not namespace
        overflow = "" if index < SLOTS - 1 or len(emitted) <= SLOTS else f".{index}"
        event_id = f"synth:{event.run_id}:{seq}" if run_bound else f"{seq}{overflow}"
        frames.append(Frame(seq, event_id, event.run_id, method, list(namespace), data, final=event.method == "end"))
    return frames


def _custom(payload: Any) -> Data:
    """Named by what it calls itself, so that a client may listen to ``custom:<name>`` alone."""
    name = payload.get("name") or payload.get("type") if isinstance(payload, Mapping) else None
    return {"name": name, "payload": payload} if isinstance(name, str) else {"payload": payload}


def _envelope(checkpoint: Mapping[str, Any]) -> Data:
    """A checkpoint without the state it holds."""

    def id_of(config: Any) -> str | None:
        return ((config or {}).get("configurable") or {}).get("checkpoint_id")

    metadata = checkpoint.get("metadata") or {}
    found = {
        "id": id_of(checkpoint.get("config")),
        "parent_id": id_of(checkpoint.get("parent_config")),
        "step": metadata.get("step"),
        "source": metadata.get("source"),
    }
    return {key: value for key, value in found.items() if value is not None}


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
