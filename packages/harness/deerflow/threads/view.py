"""Threads as clients see them: a thread as LangGraph's API has it, and its messages, events, subagents, turns and usage."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from deerflow.storage.threads import LEAD_AGENT, Thread, ThreadStatus

_DateTime = Field(json_schema_extra={"format": "date-time"})


class ThreadView(TypedDict):
    thread_id: str
    created_at: Annotated[str, _DateTime]
    updated_at: Annotated[
        str,
        Field(
            description="When the conversation went on; notes in `metadata` do not count.",
            json_schema_extra={"format": "date-time"},
        ),
    ]
    state_updated_at: Annotated[str, _DateTime]
    metadata: dict[str, Any]
    status: ThreadStatus
    config: dict[str, Any]
    values: Annotated[dict[str, Any], Field(description="The state.")]
    interrupts: Annotated[dict[str, list[dict[str, Any]]], Field(description="By task id: what the thread waits for.")]


class MessageFeedback(TypedDict):
    feedback_id: str
    rating: int
    comment: str | None


class MessageEntry(TypedDict):
    """A message of a thread."""

    thread_id: str
    run_id: str | None
    event_type: Annotated[str, Field(examples=["llm.human.input", "llm.ai.response", "llm.tool.result"])]
    category: Literal["message"]
    content: Annotated[dict[str, Any], Field(description="The message.")]
    metadata: dict[str, Any]
    seq: Annotated[int, Field(description="Its place in the thread, from 1.")]
    created_at: str | None
    feedback: MessageFeedback | None


class EventEntry(TypedDict):
    """An event of a run. ``event_type``: one of LangGraph's stream modes, or metadata, error, end."""

    seq: int
    run_id: str
    thread_id: str
    event_type: str
    namespace: list[str]
    content: Any


class SubagentTask(TypedDict):
    task_id: Annotated[str, Field(description="The id of the call that began it.")]
    run_id: str | None
    subagent_type: str
    description: str
    status: Literal["running", "completed", "failed", "cancelled", "timed_out", "turn_limit", "loop"]
    background: bool
    namespace: Annotated[str, Field(description="Of its events; empty before its result has come.")]
    text: str
    error: str
    files: list[dict[str, Any]]
    tokens: int
    cost: Annotated[
        float | None, Field(description="In the currency of the configured prices; None: none is configured.")
    ]
    seconds: float
    model: str


class ThreadTurn(TypedDict):
    """A message of the person from which a conversation can be taken up again."""

    message_id: str
    run_id: str
    checkpoint_id: Annotated[str | None, Field(description="A run that begins here begins before the message.")]
    created_at: str
    parent_message_id: Annotated[
        str | None,
        Field(description="The message that it followed; the same for all ways on from there."),
    ]
    end_checkpoint_id: Annotated[
        str | None,
        Field(description="Where the newest way through it ends; a fork from here returns to it."),
    ]


class ModelUsage(TypedDict):
    tokens: int
    runs: int


class ThreadUsage(TypedDict):
    """The tokens and money that a thread took, by model and by caller."""

    thread_id: str
    total_tokens: int
    total_input_tokens: int
    total_output_tokens: int
    total_runs: int
    cost: Annotated[
        float | None, Field(description="In the currency of the configured prices; None: none is configured.")
    ]
    by_model: dict[str, ModelUsage]
    by_caller: Annotated[dict[str, int], Field(examples=[{"lead_agent": 1200, "subagent": 0, "middleware": 80}])]


def thread_view(thread: Thread) -> ThreadView:
    """Return the thread without its state."""
    stamp = {"graph_id": LEAD_AGENT, "assistant_id": thread.assistant_id} if thread.assistant_id else {}
    return {
        "thread_id": thread.thread_id,
        "created_at": thread.created_at.isoformat(),
        "updated_at": thread.updated_at.isoformat(),
        "state_updated_at": thread.updated_at.isoformat(),
        "metadata": stamp | thread.metadata,
        "status": thread.status,
        "config": {},
        "values": {"title": thread.title} if thread.title else {},
        "interrupts": {},
    }
