"""The trace that a run belongs to: its id in log lines, and the caller's span in W3C's form."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
