"""A run as clients see it."""

from __future__ import annotations

from typing import Any

from deerflow.storage.runs import Run, RunStatus

_SHOWN = (
    "run_id",
    "thread_id",
    "assistant_id",
    "agent",
    "metadata",
    "multitask_strategy",
    "attempt",
    "error",
    "stop_reason",
    "model_name",
    "first_human_message",
    "last_ai_message",
    "message_count",
    "cost",
    "checkpoint_before",
    "checkpoint_after",
    "trace_id",
)
_MOMENTS = ("created_at", "updated_at", "started_at", "ended_at")


def verification(run: Run) -> str | None:
    """Whether what the run did bears out its answer: ``verified``, ``partly`` or ``claimed``; None before a good end."""
    if run.status is not RunStatus.SUCCESS:
        return None
    return run.receipts["verification"] if run.receipts else "claimed"


def run_json(run: Run) -> dict[str, Any]:
    """Whose it is and which process executes it is left out; ``kwargs`` is what was asked for."""
    return {
        **{name: getattr(run, name) for name in _SHOWN},
        **{name: moment.isoformat() if (moment := getattr(run, name)) else None for name in _MOMENTS},
        "status": run.status.value,
        "kwargs": run.kwargs["request"],
        "total_input_tokens": run.input_tokens,
        "total_output_tokens": run.output_tokens,
        "total_tokens": run.input_tokens + run.output_tokens,
        "llm_call_count": run.llm_calls,
        "verification": verification(run),
    }
