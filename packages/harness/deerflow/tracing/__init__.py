"""Traces of runs for tools of others: OpenTelemetry (OTLP), Langfuse and LangSmith, as their standard variables ask for.

Without such a variable nothing is imported and nothing is recorded. Every run has a trace id all the same: it stands in
its row and in its log lines.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
"""See W3C Trace Context, section 3.2: version, trace id, span id, flags."""

SUBAGENT = "subagent "
"""How the names begin that graphs of subagents have in traces."""

_current: ContextVar[str] = ContextVar("trace_id")


@contextmanager
def in_trace(trace_id: str | None) -> Iterator[None]:
    """Log lines of this task belong to the trace."""
    token = _current.set(trace_id or "")
    try:
        yield
    finally:
        _current.reset(token)


def add_trace(record: logging.LogRecord) -> bool:
    """A filter for handlers of log records: their formats may say ``%(trace)s``, empty outside of runs."""
    trace_id = _current.get("")
    record.trace = f" trace_id={trace_id}" if trace_id else ""
    return True


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a trace knows of its run from the beginning. ``traceparent``: the caller's span, in W3C's form."""

    trace_id: str
    run_id: str
    thread_id: str
    user_id: str
    agent: str
    started_at: datetime
    first_attempt: bool
    traceparent: str | None = None
