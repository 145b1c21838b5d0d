"""What was said in a thread, run by run, and what it cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from deerflow.files.artifacts import ThreadArchive
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, ThreadId, json_answer

router = Router(tags=["messages"])


class Window(BaseModel):
    limit: int = Field(default=50, ge=1, le=200)
    before_seq: int | None = Field(default=None, ge=0, description="The last ones before this place.")
    after_seq: int | None = Field(default=None, ge=0, description="The first ones after this place.")


CurrentWindow = Annotated[Window, Query()]


class Feedback(BaseModel):
    feedback_id: str
    rating: int
    comment: str | None


class Entry(BaseModel):
    thread_id: str
    run_id: str | None
    event_type: str = Field(examples=["llm.human.input", "llm.ai.response", "llm.tool.result"])
    category: Literal["message"]
    content: dict[str, Any] = Field(description="The message.")
    metadata: dict[str, Any]
    seq: int = Field(description="Its place in the thread, from 1.")
    created_at: str | None
    feedback: Feedback | None


class Entries(BaseModel):
    data: list[Entry]
    has_more: bool


class EntriesPage(Entries):
    next_before_seq: int | None = Field(
        description="`before_seq` of the page before this one; null: this is the first."
    )


class Event(BaseModel):
    seq: int
    run_id: str
    thread_id: str
    event_type: str
    namespace: list[str]
    content: Any


class Turn(BaseModel):
    message_id: str
    run_id: str
    checkpoint_id: str | None = Field(description="A run that begins here begins before the message.")
    created_at: str
    parent_message_id: str | None = Field(
        description="The message that it followed; the same for all ways on from there."
    )
    end_checkpoint_id: str | None = Field(
        description="Where the newest way through it ends; a fork from here returns to it."
    )


class SubagentTask(BaseModel):
    task_id: str = Field(description="The id of the call that began it.")
    run_id: str | None
    subagent_type: str
    description: str
    status: Literal["running", "completed", "failed", "cancelled", "timed_out", "turn_limit", "loop"]
    background: bool
    namespace: str = Field(description="Of its events; empty before its result has come.")
    text: str
    error: str
    files: list[dict[str, Any]]
    tokens: int
    cost: float | None = Field(description="In the currency of the configured prices; None: none is configured.")
    seconds: float
    model: str


class ModelUsage(BaseModel):
    tokens: int
    runs: int


class TokenUsage(BaseModel):
    thread_id: str
    total_tokens: int
    total_input_tokens: int
    total_output_tokens: int
    total_runs: int
    cost: float | None = Field(description="In the currency of the configured prices; None: none is configured.")
    by_model: dict[str, ModelUsage]
    by_caller: dict[str, int] = Field(examples=[{"lead_agent": 1200, "subagent": 0, "middleware": 80}])


@router.get("/api/threads/{thread_id}/messages", summary="What was said", response_model=list[Entry])
async def thread_messages(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    window: CurrentWindow,
) -> Response:
    """The last page, in order; its last entry is the newest message."""
    found, _ = await runtime.threads.transcript.messages(principal, thread_id, **window.model_dump())
    return await json_answer(found)


@router.get("/api/threads/{thread_id}/messages/page", summary="What was said, page by page", response_model=EntriesPage)
async def thread_messages_page(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before_seq: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """The newest page first, each in order; `before_seq` goes back."""
    found, more = await runtime.threads.transcript.messages(principal, thread_id, limit=limit, before_seq=before_seq)
    return await json_answer({"data": found, "has_more": more, "next_before_seq": found[0]["seq"] if more else None})


@router.get("/api/threads/{thread_id}/runs/{run_id}/messages", summary="What was said in a run", response_model=Entries)
async def thread_run_messages(
    thread_id: ThreadId,
    run_id: str,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    window: CurrentWindow,
) -> Response:
    found, more = await runtime.threads.transcript.run_messages(
        principal, run_id, thread_id=thread_id, **window.model_dump()
    )
    return await json_answer({"data": found, "has_more": more})


@router.get("/api/runs/{run_id}/messages", summary="What was said in a run", response_model=Entries)
async def run_messages(
    run_id: str,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    window: CurrentWindow,
) -> Response:
    found, more = await runtime.threads.transcript.run_messages(principal, run_id, **window.model_dump())
    return await json_answer({"data": found, "has_more": more})


@router.get(
    "/api/threads/{thread_id}/runs/{run_id}/events", summary="What happened in a run", response_model=list[Event]
)
async def run_events(
    thread_id: ThreadId,
    run_id: str,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    event_types: Annotated[str | None, Query(description="Separated by commas, such as `updates,custom`.")] = None,
    limit: Annotated[int, Query(ge=1, le=2000)] = 500,
) -> Response:
    """Up to now, from its beginning."""
    wanted = None if event_types is None else {name.strip() for name in event_types.split(",")}
    events = await runtime.threads.transcript.events(
        principal, run_id, thread_id=thread_id, event_types=wanted, limit=limit
    )
    return await json_answer(events)


@router.get(
    "/api/threads/{thread_id}/tasks", summary="What subagents did in a thread", response_model=list[SubagentTask]
)
async def thread_tasks(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Any:
    return await runtime.threads.transcript.tasks(principal, thread_id)


@router.get(
    "/api/threads/{thread_id}/tasks/{task_id}/messages",
    summary="What was said in a subagent",
    response_model=list[dict[str, Any]],
)
async def task_messages(
    thread_id: ThreadId, task_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    """Its prompt, the answers of its model and the results of its tools, so far."""
    return await json_answer(await runtime.threads.transcript.task_messages(principal, thread_id, task_id))


@router.post("/api/threads/{thread_id}/tasks/{task_id}/cancel", status_code=202, summary="Stop a subagent")
async def stop_task(
    thread_id: ThreadId, task_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> dict[str, Any]:
    """The agent goes on, and is told what it has so far. 409 if it has ended, or waits for a decision."""
    await runtime.runs.stop_task(principal, thread_id, task_id)
    return {}


@router.get(
    "/api/threads/{thread_id}/turns",
    summary="Where a conversation can be taken up again",
    response_model=list[Turn],
)
async def thread_turns(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Any:
    """To edit a message, or to have it answered anew: start a run with its `checkpoint_id`."""
    return await runtime.threads.transcript.turns(principal, thread_id)


@router.get("/api/threads/{thread_id}/token-usage", summary="What a thread has cost", response_model=TokenUsage)
async def token_usage(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Any:
    return await runtime.threads.transcript.token_usage(principal, thread_id)


@router.get(
    "/api/threads/{thread_id}/export",
    summary="A conversation as a file",
    response_class=Response,
    responses={200: {"content": {"text/markdown": {}, "application/json": {}, "application/zip": {}}}},
)
async def export_thread(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    format: Annotated[Literal["md", "json", "zip"], Query(description="`zip` holds both, and all files.")] = "md",
) -> Response:
    if format == "zip":
        archive = ThreadArchive(runtime.paths, runtime.threads.transcript)
        name, pieces = await archive.pieces(principal, thread_id)
        return StreamingResponse(pieces, media_type="application/zip", headers=_attachment(name))
    name, content = await runtime.threads.transcript.export(principal, thread_id, format)
    media_type = "text/markdown; charset=utf-8" if format == "md" else "application/json"
    return Response(content, media_type=media_type, headers=_attachment(name))


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
