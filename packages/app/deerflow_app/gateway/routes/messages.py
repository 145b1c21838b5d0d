"""What was said in a thread, run by run, and what it cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from deerflow.files.artifacts import ThreadArchive
from deerflow.threads.view import EventEntry, MessageEntry, SubagentTask, ThreadTurn, ThreadUsage
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, ThreadId, json_answer

router = Router(tags=["messages"])


class MessageWindow(BaseModel):
    limit: int = Field(default=50, ge=1, le=200)
    before_seq: int | None = Field(default=None, ge=0, description="The last ones before this place.")
    after_seq: int | None = Field(default=None, ge=0, description="The first ones after this place.")


CurrentWindow = Annotated[MessageWindow, Query()]


class Entries(BaseModel):
    data: list[MessageEntry]
    has_more: bool


class EntriesPage(Entries):
    next_before_seq: int | None = Field(
        description="`before_seq` of the page before this one; null: this is the first."
    )


@router.get("/api/threads/{thread_id}/messages", summary="What was said", response_model=list[MessageEntry])
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
    "/api/threads/{thread_id}/runs/{run_id}/events", summary="What happened in a run", response_model=list[EventEntry]
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


@router.get("/api/threads/{thread_id}/tasks", summary="What subagents did in a thread")
async def thread_tasks(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> list[SubagentTask]:
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
)
async def thread_turns(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> list[ThreadTurn]:
    """To edit a message, or to have it answered anew: start a run with its `checkpoint_id`."""
    return await runtime.threads.transcript.turns(principal, thread_id)


@router.get("/api/threads/{thread_id}/token-usage", summary="What a thread has cost")
async def token_usage(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> ThreadUsage:
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
