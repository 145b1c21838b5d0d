"""A run as clients see it."""

from __future__ import annotations

from typing import Any

from deerflow.storage.runs import Run, RunStatus


def verification(run: Run) -> str | None:
    """The word for the answer (:data:`deerflow.agents.receipts.Word`); None before a good end, and if the answer claims nothing.

    What older versions judged by other rules is not shown.
    """
    return run.receipts.get("word") if run.status is RunStatus.SUCCESS and run.receipts else None


def run_json(run: Run) -> dict[str, Any]:
    """A run as clients see it. Whose it is and which process executes it is left out; ``kwargs`` is what was asked for."""
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
