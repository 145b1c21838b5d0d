"""When a run did what: its calls of models and tools, what it waited for, and what that cost, read from the event log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from deerflow.events.store import RunEvent
from deerflow.events.streams.client_events import messages_in, text_of
from deerflow.models.messages import as_called
from deerflow.runs.view import verification
from deerflow.storage.runs import Run
from deerflow.storage.tables import utc_now
from deerflow.storage.threads import LEAD_AGENT
from deerflow.subagents.task import EVENTS
from deerflow.tools.origin import SERVER
from deerflow.tools.shell import RAN

MOST = 2000
"""Spans of a timeline; those after them are left out, and ``truncated`` says so."""
DETAIL_CHARS = 200
INTERRUPT = "interrupt"
"""Why a run ended that waits for a person."""

Kind = Literal["queue", "attempt", "model", "tool", "agent", "command", "decision", "retry", "notice"]


class Span(TypedDict):
    """Milliseconds since the first run was asked for. ``end_ms`` is None while it lasts, and equal to ``start_ms`` for a moment.

    ``status`` is ``success``, ``error``, ``running`` or ``waiting`` (for a person), and of decisions what was decided.
    ``parent`` is the span within which it happened: the call of ``task`` has the subagent, and that its own calls.
    ``message_id`` and ``call_id`` are those of the transcript.
    """

    id: int
    parent: int | None
    run_id: str
    kind: Kind
    name: str
    start_ms: int
    end_ms: int | None
    status: str
    detail: str
    first_token_ms: NotRequired[int]
    input_tokens: NotRequired[int]
    cached_tokens: NotRequired[int]
    output_tokens: NotRequired[int]
    cost: NotRequired[dict[str, Any] | None]
    provider: NotRequired[str]
    finish_reason: NotRequired[str]
    message_id: NotRequired[str]
    call_id: NotRequired[str]
    server: NotRequired[str]
    exit_code: NotRequired[int | None]


class RunPart(TypedDict):
    """A run of the timeline. ``end_ms`` is None before its end; ``traceparent`` is the caller's span, in W3C's form."""

    run_id: str
    trace_id: str | None
    traceparent: str | None
    agent: str
    user_id: str
    status: str
    stop_reason: str | None
    start_ms: int
    end_ms: int | None
    input_tokens: int
    output_tokens: int


class Timeline(TypedDict):
    """The first run, and those that went on with it after a person's decision.

    ``status``, ``stop_reason`` and ``verification`` are those of the last one, ``cost`` is that of all. ``duration_ms`` and
    ``verification`` are None before the end; ``elapsed_ms`` reaches to the end, or until now. ``forgotten``: the events of a run
    are not kept any more, so its spans are missing.
    """

    run_id: str
    thread_id: str
    trace_id: str | None
    status: str
    stop_reason: str | None
    started_at: str
    duration_ms: int | None
    elapsed_ms: int
    cost: float | None
    verification: str | None
    runs: list[RunPart]
    spans: list[Span]
    truncated: bool
    forgotten: bool


async def timeline(runs: Sequence[tuple[Run, AsyncIterable[Sequence[RunEvent]]]]) -> Timeline:
    """The timeline so far: each span after the one within which it happened, then by time.

    Args:
        runs: a run, and those that went on with it, with their events from the first on; an empty batch ends them.
    """
    (first, _), (last, _) = runs[0], runs[-1]
    reader = _TimelineReader(first.created_at)
    forgotten = False
    for run, batches in runs:
        reader.begin(run)
        is_kept = not run.ended or not run.attempt
        async for batch in batches:
            is_kept = is_kept or bool(batch)
            for event in batch:
                reader.read(event)
            if not batch:
                break
        forgotten = forgotten or not is_kept
    costs = [run.cost for run, _ in runs if run.cost is not None]
    spans = list(_in_order(reader.spans.values()))
    ended = reader.moment(last.ended_at) if last.ended_at else None
    return {
        "run_id": first.run_id,
        "thread_id": first.thread_id,
        "trace_id": first.trace_id,
        "status": last.status.value,
        "stop_reason": last.stop_reason,
        "started_at": first.created_at.isoformat(),
        "duration_ms": ended,
        "elapsed_ms": reader.moment(utc_now()) if ended is None else ended,
        "cost": sum(costs) if costs else None,
        "verification": verification(last),
        "runs": [_part(run, reader) for run, _ in runs],
        "spans": spans[:MOST],
        "truncated": len(spans) > MOST,
        "forgotten": forgotten,
    }


def goes_on(run: Run, before: Run) -> bool:
    """Whether it answers what the run before it asked of the person."""
    return before.stop_reason == INTERRUPT and run.kwargs["request"].get("input") is None


def _part(run: Run, reader: _TimelineReader) -> RunPart:
    return {
        "run_id": run.run_id,
        "trace_id": run.trace_id,
        "traceparent": run.kwargs["request"].get("traceparent"),
        "agent": run.agent or LEAD_AGENT,
        "user_id": run.user_id,
        "status": run.status.value,
        "stop_reason": run.stop_reason,
        "start_ms": reader.moment(run.started_at or run.created_at),
        "end_ms": reader.moment(run.ended_at) if run.ended_at else None,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
    }


def _in_order(spans: Iterable[Span]) -> Iterator[Span]:
    within: defaultdict[int | None, list[Span]] = defaultdict(list)
    for span in spans:
        within[span["parent"]].append(span)

    def walk(parent: int | None) -> Iterator[Span]:
        for span in sorted(within[parent], key=lambda span: span["start_ms"]):
            yield span
            yield from walk(span["id"])

    return walk(None)


@dataclass
class _AgentWork:
    """What one agent does, the lead or a subagent: one call of its model at a time, tools beside each other."""

    agent: Span | None
    since: int = 0
    """When its last step ended."""
    model: Span | None = None
    summary: Span | None = None
    """Asked of the model before the call itself."""
    tools: dict[str, Span] = field(default_factory=dict[str, Span])
    asked: dict[str, Span] = field(default_factory=dict[str, Span])
    """Calls that wait for a person's decision."""


class _TimelineReader:
    def __init__(self, began: datetime) -> None:
        self.spans: dict[int, Span] = {}
        self._began = began.timestamp()
        self._made = 0
        self._run_id = ""
        self._asked_for = 0
        """When the run that is read was asked for."""
        self._lead = _AgentWork(None)
        self._lanes: dict[tuple[str, ...], _AgentWork] = {(): self._lead}
        self._tasks: dict[str, _AgentWork] = {}
        """Subagents by the calls that began them."""
        self._known: set[str] = set()
        """Ids of messages and of calls with a result: the attempt after a crash may replay them."""

    def moment(self, at: datetime) -> int:
        return max(0, round((at.timestamp() - self._began) * 1000))

    def begin(self, run: Run) -> None:
        self._run_id, self._asked_for = run.run_id, self.moment(run.created_at)

    def read(self, event: RunEvent) -> None:
        """Events without a time, of a server before times were kept, are as old as the first run."""
        lane = self._lanes.get(event.namespace)
        if lane is None:
            return
        now = max(0, round(event.at - self._began * 1000)) if event.at else 0
        if event.method == "messages":
            if event.at and (model := lane.summary or lane.model) is not None:
                model.setdefault("first_token_ms", now)
        elif event.method == "metadata":
            self._attempt(int(event.data.get("attempt") or 1), now)
        elif event.method == "updates":
            for message in messages_in(event.data):
                self._message(lane, message, now)
        elif event.method == "custom":
            self._custom(lane, event.data, now)
        elif event.method == "end":
            self._end(str(event.data.get("status")), now, waits=event.data.get("stop_reason") == INTERRUPT)

    def _attempt(self, number: int, now: int) -> None:
        if number == 1:
            self._add(self._lead, "queue", "waiting to begin", self._asked_for, now)
        else:
            for lane in self._lanes.values():  # the process that worked on it has died
                self._close_model(lane, now, "error")
            self._add(self._lead, "attempt", f"attempt {number}", now, now, detail="the process before it ended")
        self._ask_model(self._lead, now)

    # messages ---------------------------------------------------------------------------------------------------------

    def _message(self, lane: _AgentWork, message: Mapping[str, Any], now: int) -> None:
        if message.get("type") == "ai" and self._is_new(message.get("id")):
            self._answer(lane, message, now)
        elif message.get("type") == "tool" and self._is_new(message.get("tool_call_id")):
            self._result(lane, message, now)

    def _is_new(self, message_id: Any) -> bool:
        is_new = not message_id or message_id not in self._known
        self._known.add(str(message_id))
        return is_new

    def _answer(self, lane: _AgentWork, message: Mapping[str, Any], now: int) -> None:
        model = lane.model or self._add(lane, "model", "", lane.since)
        metadata, usage = message.get("response_metadata") or {}, message.get("usage_metadata") or {}
        model["name"] = model["name"] or str(metadata.get("model_name") or "")
        model["detail"] = _short(text_of(message.get("content")))
        _count_tokens(model, usage)
        model["provider"] = str(metadata.get("model_provider") or "")
        model["finish_reason"] = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "")
        model["message_id"] = str(message.get("id") or "")
        lane.model = model
        self._close_model(lane, now, "error" if (message.get("additional_kwargs") or {}).get("error") else "success")
        for call in map(as_called, message.get("tool_calls") or ()):
            model.setdefault("call_id", str(call.get("id")))
            self._call(lane, str(call.get("id")), str(call.get("name")), now, _about(call))

    def _call(self, lane: _AgentWork, call_id: str, name: str, now: int, detail: str = "") -> Span:
        tool = lane.tools[call_id] = self._add(lane, "tool", name, now, detail=detail)
        tool["call_id"] = call_id
        return tool

    def _result(self, lane: _AgentWork, message: Mapping[str, Any], now: int) -> None:
        self._drop_model(lane)  # what a run goes on with is not always the model
        call_id, artifact = str(message.get("tool_call_id")), message.get("artifact")
        self._decide(lane, call_id, "answered", self._asked_for)
        tool = lane.tools.pop(call_id, None) or self._call(lane, call_id, str(message.get("name")), lane.since)
        lane.tools.pop(call_id, None)
        known = artifact if isinstance(artifact, Mapping) else {}
        code = known.get("exit_code", 0)
        if "exit_code" in known:
            tool["exit_code"] = code
        failed = message.get("status") == "error" or code != 0 or str(message.get("content")).startswith("Error:")
        _finish(tool, now, "error" if failed else "success")
        if server := (message.get("additional_kwargs") or {}).get(SERVER):
            tool["server"] = str(server)
        if ran := known.get(RAN):
            start, end = (max(0, round((at - self._began) * 1000)) for at in ran)
            command = self._add(lane, "command", tool["name"], start, end, detail=tool["detail"], parent=tool)
            command["status"], command["exit_code"] = "success" if code == 0 else "error", code
            command["call_id"] = call_id
        lane.since = now
        if not lane.tools:
            self._ask_model(lane, now)

    # what is reported -------------------------------------------------------------------------------------------------

    def _custom(self, lane: _AgentWork, data: Mapping[str, Any], now: int) -> None:
        kind = data.get("type")
        if kind == "token_usage":
            self._count(lane, data, now)
        elif kind == "guardrail":
            self._decision(lane, str(data.get("tool_call_id")), data, now)
        elif kind == "llm_retry":
            self._close_model(lane, now, "error")
            again = now + int(data.get("wait_ms") or 0)
            self._add(lane, "retry", str(data.get("reason") or ""), now, again, detail=_short(data.get("message")))
            self._ask_model(lane, again)
        elif kind == "summarizing":
            lane.summary = self._add(lane, "model", "", now, detail="summary of the conversation")
        elif kind == "task_started":
            self._begin_task(lane, data, now)
        elif kind in EVENTS.values() and (task := self._tasks.get(str(data.get("task_id")))):
            self._end_task(task, str(data.get("status")), now)
        elif kind in ("spending_limit", "acceptance_checks"):
            self._add(lane, "notice", str(kind), now, now, detail=_short(data.get("message")))

    def _count(self, lane: _AgentWork, data: Mapping[str, Any], now: int) -> None:
        model, usage = lane.summary or lane.model, data.get("usage") or {}
        if model is None:
            return
        model["name"], model["cost"] = str(data.get("model") or ""), data.get("cost")
        if lane.summary is not None:
            _count_tokens(model, usage)
            _finish(model, now, "success")
            lane.summary = None
            if lane.model is not None:
                lane.model["start_ms"] = now

    def _decision(self, lane: _AgentWork, call_id: str, data: Mapping[str, Any], now: int) -> None:
        decision = str(data.get("decision"))
        if asked := self._decide(lane, call_id, decision, self._asked_for):
            self._call(lane, call_id, asked["name"], now, asked["detail"])
            return
        made = self._add(lane, "decision", str(data.get("tool")), now, now)
        made["status"], made["call_id"] = decision, call_id

    def _decide(self, lane: _AgentWork, call_id: str, decision: str, now: int) -> Span | None:
        """The person has decided. What was asked ends when the answer came."""
        if (asked := lane.asked.pop(call_id, None)) is not None:
            _finish(asked, max(now, asked["start_ms"]), decision)
        return asked

    # subagents --------------------------------------------------------------------------------------------------------

    def _begin_task(self, lane: _AgentWork, data: Mapping[str, Any], now: int) -> None:
        """It begins, or goes on in another attempt or after a decision."""
        where, call_id = tuple(data["namespace"]), str(data.get("task_id"))
        if (task := self._lanes.get(where)) is None:
            name, about = str(data.get("subagent_type")), _short(data.get("description"))
            agent = self._add(lane, "agent", name, now, detail=about, parent=lane.tools.get(call_id))
            agent["call_id"] = call_id
            task = self._lanes[where] = _AgentWork(agent)
            self._tasks[call_id] = task
        for span in filter(None, (task.agent, lane.tools.get(call_id))):
            _finish(span, None, "running")
        if task.model is None:
            self._ask_model(task, now)

    def _end_task(self, task: _AgentWork, status: str, now: int) -> None:
        self._close(task, now, "success" if status in ("completed", "turn_limit") else "error")

    def _end(self, status: str, now: int, *, waits: bool) -> None:
        for lane in self._lanes.values():
            if not waits:
                self._close(lane, now, status)
                continue
            self._drop_model(lane)
            for call_id, tool in list(lane.tools.items()):
                tool["status"] = "waiting"
                if (task := self._tasks.get(call_id)) is None:
                    tool["kind"], lane.asked[call_id] = "decision", lane.tools.pop(call_id)
                elif task.agent is not None:
                    task.agent["status"] = "waiting"

    def _close(self, lane: _AgentWork, now: int, status: str) -> None:
        """The agent does nothing more."""
        if status == "success":  # it ended behind its last tool
            self._drop_model(lane)
        self._close_model(lane, now, "error")
        for tool in lane.tools.values():
            _finish(tool, now, "error")
        lane.tools.clear()
        if lane.agent is not None and lane.agent["end_ms"] is None:
            _finish(lane.agent, now, "success" if status == "success" else "error")

    # spans ------------------------------------------------------------------------------------------------------------

    def _ask_model(self, lane: _AgentWork, now: int) -> None:
        lane.since, lane.model = now, self._add(lane, "model", "", now)

    def _close_model(self, lane: _AgentWork, now: int, status: str) -> None:
        for model in filter(None, (lane.summary, lane.model)):
            _finish(model, max(now, model["start_ms"]), status)
        lane.since, lane.model, lane.summary = now, None, None

    def _drop_model(self, lane: _AgentWork) -> None:
        if lane.model is not None:
            self.spans.pop(lane.model["id"], None)
        lane.model = None

    def _add(
        self,
        lane: _AgentWork,
        kind: Kind,
        name: str,
        start: int,
        end: int | None = None,
        *,
        detail: str = "",
        parent: Span | None = None,
    ) -> Span:
        within = parent or lane.agent
        self._made += 1
        span: Span = {
            "id": self._made,
            "parent": within["id"] if within else None,
            "run_id": self._run_id,
            "kind": kind,
            "name": name,
            "start_ms": start,
            "end_ms": end,
            "status": "running" if end is None else "success",
            "detail": detail,
        }
        if len(self.spans) <= MOST:  # those that are kept still come to their ends
            self.spans[self._made] = span
        return span


def _finish(span: Span, now: int | None, status: str) -> None:
    span["end_ms"], span["status"] = now, status


def _count_tokens(model: Span, usage: Mapping[str, Any]) -> None:
    model["input_tokens"] = int(usage.get("input_tokens") or 0)
    model["output_tokens"] = int(usage.get("output_tokens") or 0)
    model["cached_tokens"] = int((usage.get("input_token_details") or {}).get("cache_read") or 0)


def _about(call: Mapping[str, Any]) -> str:
    """The argument that says most: the first text."""
    texts = [value for value in (call.get("args") or {}).values() if isinstance(value, str)]
    return _short(texts[0] if texts else "")


def _short(text: Any) -> str:
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return line if len(line) <= DETAIL_CHARS else line[: DETAIL_CHARS - 1] + "…"


# a run as clients see it ------------------------------------------------------------------------------------------------
