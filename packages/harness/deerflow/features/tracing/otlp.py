"""A timeline as a trace of OpenTelemetry: what an OTLP collector takes at ``/v1/traces``, in JSON.

Names and attributes are those of the spans that are sent while a run goes on, see :mod:`deerflow.features.tracing.spans`; what was said
is not part of it. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from deerflow.features.tracing.spans import INVOKED, PROVIDERS, span_id
from deerflow.features.tracing.timeline import RunPart, Span, Timeline
from deerflow.tracing import TRACEPARENT

INTERNAL, CLIENT = 1, 3
STATUS_ERROR = 2
MARKS = ("attempt", "decision", "retry", "notice")
"""Kinds for which the conventions have no spans: they are events of their run's span."""
ERRORS = {"model": "model_error", "tool": "tool_error", "agent": "agent_error", "command": "exit_code"}


def otlp(timeline: Timeline) -> dict[str, Any]:
    """``{resourceSpans}``; each run is a trace with an id of its own. What has not ended ends now."""
    trace = _Trace(timeline)
    runs = {run["run_id"]: run for run in timeline["runs"]}
    spans = [trace.of_run(run) for run in runs.values()]
    spans += [trace.of_span(span, runs[span["run_id"]]) for span in timeline["spans"] if span["kind"] in ERRORS]
    resource = {"attributes": _attributes({"service.name": "deerflow"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "deerflow"}, "spans": spans}]}]}


class _Trace:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._began = round(datetime.fromisoformat(timeline["started_at"]).timestamp() * 1000)
        self._of_thread = {"gen_ai.conversation.id": timeline["thread_id"]}

    def of_run(self, run: RunPart) -> dict[str, Any]:
        above = TRACEPARENT.fullmatch(run["traceparent"] or "")
        failed = run["status"] in ("error", "timeout")
        attributes = {
            **INVOKED,
            "gen_ai.agent.name": run["agent"],
            **self._of_thread,
            "session.id": self._timeline["thread_id"],
            "user.id": run["user_id"],
            "deerflow.run.id": run["run_id"],
            "deerflow.run.stop_reason": run["stop_reason"],
            "gen_ai.usage.input_tokens": run["input_tokens"],
            "gen_ai.usage.output_tokens": run["output_tokens"],
            "error.type": (run["stop_reason"] or "error") if failed else None,
        }
        name, parent = f"invoke_agent {run['agent']}", above[2] if above else ""
        marks = [self._mark(span) for span in self._timeline["spans"] if _marks(span, run)]
        return {**self._span(run, run, _id(run), parent, name, attributes), "events": marks}

    def of_span(self, span: Span, run: RunPart) -> dict[str, Any]:
        kind = span["kind"]
        name, attributes = _DESCRIBED[kind](span)
        if kind != "command":
            attributes = {**attributes, **self._of_thread}
        failed = span["status"] == "error" and (
            kind != "tool" or "exit_code" not in span
        )  # else the command has failed
        attributes["error.type"] = ERRORS[kind] if failed else None
        made = self._span(span, run, _id(run, span["id"]), _id(run, span["parent"]), name, attributes)
        return {**made, "kind": CLIENT} if kind == "model" else made

    def _span(
        self, span: Span | RunPart, run: RunPart, own: str, parent: str, name: str, attributes: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "traceId": run["trace_id"] or f"{span_id(run['run_id']):032x}",
            "spanId": own,
            **({"parentSpanId": parent} if parent else {}),
            "name": name,
            "kind": INTERNAL,
            "startTimeUnixNano": self._time(span["start_ms"]),
            "endTimeUnixNano": self._time(span["end_ms"]),
            "attributes": _attributes(attributes),
            "status": {"code": STATUS_ERROR} if attributes.get("error.type") else {},
        }

    def _mark(self, span: Span) -> dict[str, Any]:
        took = None if span["end_ms"] is None else (span["end_ms"] - span["start_ms"]) / 1000
        attributes = {
            "deerflow.name": span["name"],
            "deerflow.status": span["status"],
            "deerflow.seconds": took,
            "gen_ai.tool.call.id": span.get("call_id"),
        }
        time = self._time(span["start_ms"])
        return {"name": f"deerflow.{span['kind']}", "timeUnixNano": time, "attributes": _attributes(attributes)}

    def _time(self, milliseconds: int | None) -> str:
        since = self._timeline["elapsed_ms"] if milliseconds is None else milliseconds
        return str((self._began + since) * 1_000_000)


def _marks(span: Span, run: RunPart) -> bool:
    return span["kind"] in MARKS and span["run_id"] == run["run_id"]


def _model(span: Span) -> tuple[str, dict[str, Any]]:
    name, provider, cost = span["name"], span.get("provider"), span.get("cost") or {}
    first, reason = span.get("first_token_ms"), span.get("finish_reason")
    return f"chat {name or 'unknown'}", {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(provider or "", provider) or "unknown",
        "gen_ai.request.model": name or "unknown",
        "gen_ai.response.model": name or None,
        "gen_ai.response.id": span.get("message_id") or None,
        "gen_ai.response.finish_reasons": [reason] if reason else None,
        "gen_ai.response.time_to_first_chunk": None if first is None else (first - span["start_ms"]) / 1000,
        "gen_ai.usage.input_tokens": span.get("input_tokens"),
        "gen_ai.usage.cache_read.input_tokens": span.get("cached_tokens") or None,
        "gen_ai.usage.output_tokens": span.get("output_tokens"),
        "deerflow.cost.amount": cost.get("amount"),
        "deerflow.cost.currency": cost.get("currency"),
    }


def _tool(span: Span) -> tuple[str, dict[str, Any]]:
    return f"execute_tool {span['name']}", {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": span["name"],
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": span.get("call_id"),
        "mcp.method.name": "tools/call" if span.get("server") else None,
        "deerflow.mcp.server": span.get("server"),
    }


_DESCRIBED = {
    "model": _model,
    "tool": _tool,
    "agent": lambda span: (f"invoke_agent {span['name']}", {**INVOKED, "gen_ai.agent.name": span["name"]}),
    "command": lambda span: ("sandbox command", {"process.exit.code": span.get("exit_code")}),
}


def _id(run: RunPart, span: int | None = None) -> str:
    name = run["run_id"] if span is None else f"{run['run_id']}:{span}"
    return f"{span_id(name):016x}"


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
        case _:
            return {"stringValue": str(value)}
