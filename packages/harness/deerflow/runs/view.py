"""A run as clients see it, and what it can show for its answer."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from deerflow.agents.receipts import CheckReceipt, Claim, CommandReceipt, FileReceipt, RefusedCall
from deerflow.storage.moment import iso_or_none
from deerflow.storage.runs import Run, RunStatus


class RunView(TypedDict):
    """A run. ``kwargs`` is what was asked for; whose it is and which process executes it is left out."""

    run_id: str
    thread_id: str
    assistant_id: str | None
    agent: Annotated[str | None, Field(description="The name of the custom agent that it is for.")]
    status: Annotated[str, Field(description="pending, running, success, error, interrupted or timeout.")]
    metadata: dict[str, Any]
    kwargs: dict[str, Any]
    multitask_strategy: str
    created_at: str
    updated_at: str
    started_at: str | None
    ended_at: str | None
    attempt: int
    error: str | None
    stop_reason: Annotated[
        str | None, Field(description="end_turn, interrupt, cancelled, timeout, checks_failed, or the kind of error.")
    ]
    model_name: str | None
    first_human_message: str | None
    last_ai_message: str | None
    message_count: int
    total_input_tokens: int
    total_output_tokens: int
    total_tokens: int
    llm_call_count: int
    cost: Annotated[float | None, Field(description="In the currency of the model's price.")]
    verification: Annotated[
        str | None,
        Field(
            description="verified, observed, claimed or contradicted: what the answer rests on. None if it claims nothing, and before a good end."
        ),
    ]
    checkpoint_before: Annotated[str | None, Field(description="Fork from here to ask again.")]
    checkpoint_after: str | None
    trace_id: Annotated[str | None, Field(description="Of OpenTelemetry; None for runs of older versions.")]


class RunReceipts(TypedDict):
    """The receipts of a run, see :class:`deerflow.agents.receipts.Receipts`."""

    verification: str | None
    claims: list[Claim]
    checks: list[CheckReceipt]
    commands: list[CommandReceipt]
    files: list[FileReceipt]
    delivered: list[str]
    sources: list[str]
    refused: list[RefusedCall]
    open_todos: list[str]


def verification(run: Run) -> str | None:
    """The word for the answer (:data:`deerflow.agents.receipts.Word`); None before a good end, and if the answer claims nothing.

    What older versions judged by other rules is not shown.
    """
    return run.receipts.get("word") if run.status is RunStatus.SUCCESS and run.receipts else None


def run_view(run: Run) -> RunView:
    return {
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant_id,
        "agent": run.agent,
        "status": run.status.value,
        "metadata": run.metadata,
        "kwargs": run.kwargs["request"],
        "multitask_strategy": run.multitask_strategy,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "started_at": iso_or_none(run.started_at),
        "ended_at": iso_or_none(run.ended_at),
        "attempt": run.attempt,
        "error": run.error,
        "stop_reason": run.stop_reason,
        "model_name": run.model_name,
        "first_human_message": run.first_human_message,
        "last_ai_message": run.last_ai_message,
        "message_count": run.message_count,
        "total_input_tokens": run.input_tokens,
        "total_output_tokens": run.output_tokens,
        "total_tokens": run.input_tokens + run.output_tokens,
        "llm_call_count": run.llm_calls,
        "cost": run.cost,
        "verification": verification(run),
        "checkpoint_before": run.checkpoint_before,
        "checkpoint_after": run.checkpoint_after,
        "trace_id": run.trace_id,
    }


def receipts_view(run: Run) -> RunReceipts:
    """Return what the run's tools did. The claims of older versions had no words, and are left out."""
    found = run.receipts or {}
    return {
        "verification": verification(run),
        "claims": found.get("claims", []) if "word" in found else [],
        "checks": found.get("checks", []),
        "commands": found.get("commands", []),
        "files": found.get("files", []),
        "delivered": found.get("delivered", []),
        "sources": found.get("sources", []),
        "refused": found.get("refused", []),
        "open_todos": found.get("open_todos", []),
    }
