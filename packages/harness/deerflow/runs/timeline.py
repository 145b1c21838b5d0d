"""When a run did what: its calls of models and tools, what it waited for, and what that cost, read from the event log."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from deerflow.events.store import RunEvent
from deerflow.events.streams.client_events import messages_in
from deerflow.runs.view import verification
from deerflow.storage.runs import Run

MOST = 2000
"""Spans of a timeline; those after them are left out, and ``truncated`` says so."""
DETAIL_CHARS = 200

Kind = Literal["queue", "attempt", "model", "tool", "decision", "notice"]


class Span(TypedDict):
    """Milliseconds since the run was asked for. ``end_ms`` is None while it lasts, and equal to ``start_ms`` for a moment.

    ``status`` is ``success``, ``error``, ``running`` or ``waiting`` (for a person), and of decisions what was decided.
    """

    kind: Kind
    name: str
    start_ms: int
    end_ms: int | None
    status: str
    detail: str
    input_tokens: NotRequired[int]
    output_tokens: NotRequired[int]
    cost: NotRequired[dict[str, Any] | None]


class Timeline(TypedDict):
    """``duration_ms``, ``cost`` and ``verification`` are those of the run's row, None before the end."""

    run_id: str
    thread_id: str
    trace_id: str | None
    status: str
    stop_reason: str | None
    started_at: str
    duration_ms: int | None
    cost: float | None
    verification: str | None
    spans: list[Span]
    truncated: bool


async def timeline(run: Run, batches: AsyncIterable[Sequence[RunEvent]]) -> Timeline:
    """The timeline of a run so far.

    Args:
        run: its row.
        batches: its events from the first on; an empty one ends them.
    """
    reader = _Reader(run)
    async for batch in batches:
        for event in batch:
            reader.read(event)
        if not batch:
            break
    since = run.created_at.timestamp()
    return {
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "trace_id": run.trace_id,
        "status": run.status.value,
        "stop_reason": run.stop_reason,
        "started_at": run.created_at.isoformat(),
        "duration_ms": round((run.ended_at.timestamp() - since) * 1000) if run.ended_at else None,
        "cost": run.cost,
        "verification": verification(run),
        "spans": reader.spans[:MOST],
        "truncated": len(reader.spans) > MOST,
    }


class _Reader:
    def __init__(self, run: Run) -> None:
        self.spans: list[Span] = []
        self._since = run.created_at.timestamp() * 1000
        self._began = 0
        self._model: Span | None = None
        self._tools: dict[str, Span] = {}

    def read(self, event: RunEvent) -> None:
        """Events without a time, of a server before times were kept, are as old as the run."""
        if event.method == "messages" or event.namespace or len(self.spans) > MOST:
            return
        now = max(0, round(event.at - self._since)) if event.at else 0
        if event.method == "metadata":
            self._attempt(int(event.data.get("attempt") or 1), now)
        elif event.method == "updates":
            for message in messages_in(event.data):
                self._message(message, now)
        elif event.method == "custom":
            self._custom(event.data, now)
        elif event.method == "end":
            self._close(now, str(event.data.get("status")), waits=event.data.get("stop_reason") == "interrupt")

    def _attempt(self, number: int, now: int) -> None:
        self._close(now, "error")  # the process that worked on it has died
        self._began = now
        if number == 1:
            self._add("queue", "waiting to begin", 0, now)
        else:
            self._add("attempt", f"attempt {number}", now, now, detail="the process before it ended")
        self._model = self._add("model", "", now)

    def _message(self, message: Mapping[str, Any], now: int) -> None:
        if message.get("type") == "ai":
            model, self._model = self._model or self._add("model", "", now), None
            _end(model, now, "error" if (message.get("additional_kwargs") or {}).get("error") else "success")
            metadata, usage = message.get("response_metadata") or {}, message.get("usage_metadata") or {}
            model["name"] = model["name"] or str(metadata.get("model_name") or "")
            model["detail"] = _short(message.get("content"))
            model["input_tokens"] = int(usage.get("input_tokens") or 0)
            model["output_tokens"] = int(usage.get("output_tokens") or 0)
            for call in message.get("tool_calls") or ():
                self._tools[str(call.get("id"))] = self._add("tool", str(call.get("name")), now, detail=_about(call))
        elif message.get("type") == "tool":
            self._drop_model()  # what a run goes on with is not always the model
            tool = self._tools.pop(str(message.get("tool_call_id")), None)
            tool = tool or self._add("tool", str(message.get("name")), self._began)
            _end(tool, now, "error" if _has_failed(message) else "success")
            if not self._tools:
                self._model = self._add("model", "", now)

    def _custom(self, data: Mapping[str, Any], now: int) -> None:
        kind = data.get("type")
        if kind == "token_usage" and self._model is not None:
            self._model["name"], self._model["cost"] = str(data.get("model") or ""), data.get("cost")
        elif kind == "guardrail":
            self._add("decision", str(data.get("tool")), now, now, status=str(data.get("decision")))
        elif kind in ("llm_retry", "spending_limit", "acceptance_checks"):
            self._add("notice", str(kind), now, now, detail=_short(data.get("message") or ""))

    def _close(self, now: int, status: str, *, waits: bool = False) -> None:
        if status == "success" or waits:  # the run ended behind its last tool
            self._drop_model()
        if self._model is not None:
            _end(self._model, now, "error")
        for tool in self._tools.values():
            _end(tool, now, "waiting" if waits else "error")
        self._model = None
        self._tools.clear()

    def _drop_model(self) -> None:
        if self._model is not None:
            self.spans.remove(self._model)
        self._model = None

    def _add(
        self, kind: Kind, name: str, start: int, end: int | None = None, *, status: str = "", detail: str = ""
    ) -> Span:
        status = status or ("running" if end is None else "success")
        span: Span = {
            "kind": kind,
            "name": name,
            "start_ms": start,
            "end_ms": end,
            "status": status,
            "detail": detail,
        }
        self.spans.append(span)
        return span


def _has_failed(result: Mapping[str, Any]) -> bool:
    artifact = result.get("artifact")
    exit_code = artifact.get("exit_code", 0) if isinstance(artifact, Mapping) else 0
    return result.get("status") == "error" or exit_code != 0 or str(result.get("content")).startswith("Error:")


def _end(span: Span, now: int, status: str) -> None:
    span["end_ms"], span["status"] = now, status


def _about(call: Mapping[str, Any]) -> str:
    """The argument that says most: the first text."""
    texts = [value for value in (call.get("args") or {}).values() if isinstance(value, str)]
    return _short(texts[0] if texts else "")


def _short(text: Any) -> str:
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return line if len(line) <= DETAIL_CHARS else line[: DETAIL_CHARS - 1] + "…"
