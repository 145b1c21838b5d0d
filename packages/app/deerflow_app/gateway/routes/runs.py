"""Runs: started, followed, steered, stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import Body, Depends, Header, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import Field, model_validator

from deerflow.agents.middlewares.summarization_middleware import ContextTable
from deerflow.context.run_options import RunOptions
from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.features.tracing.otlp import otlp
from deerflow.features.tracing.timeline import Timeline
from deerflow.identity import Principal
from deerflow.runs.request import RunRequest
from deerflow.runs.view import RunReceipts, RunView, receipts_view, run_view
from deerflow.storage.runs import Run
from deerflow.tracing import TRACEPARENT
from deerflow_app.gateway.auth.scopes import require
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.http.streaming import event_stream, final_values, position, run_headers, thread_stream
from deerflow_app.gateway.routes import (
    ID,
    CurrentCredential,
    CurrentPrincipal,
    CurrentRuntime,
    Listed,
    PageSize,
    RequestBody,
    Runtime,
    ThreadId,
    raw,
    selected,
)

router = Router(tags=["runs"])

RunId = Annotated[str, Path(pattern=ID, examples=["0b7a9a3e-5a2e-4d7c-9f2f-6f2f0d1c9a11"])]
LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="Only what comes after this event; -1: everything.")
]
Modes = Annotated[list[str] | None, Listed, Query(description="Default: what the run was started with.")]
TimelineFormat = Annotated[
    Literal["json", "otlp"], Query(description="otlp: a trace of OpenTelemetry, as collectors take it at /v1/traces.")
]
Action = Annotated[
    Literal["interrupt", "rollback"],
    Query(description="interrupt keeps what was done, also half an answer; rollback undoes it and deletes the run."),
]
EXAMPLE = {
    "assistant_id": "lead_agent",
    "input": {"messages": [{"role": "user", "content": "Write a haiku to a file."}]},
    "stream_mode": ["messages-tuple", "updates"],
}


async def _joining(
    request: Annotated[RunRequest, Body(openapi_examples={"message": {"value": EXAMPLE}})],
    traceparent: Annotated[str | None, Header(description="W3C Trace Context: the run joins this trace.")] = None,
) -> RunRequest:
    is_new = request.traceparent is None and TRACEPARENT.fullmatch(traceparent or "")
    return request.model_copy(update={"traceparent": traceparent}) if is_new else request


Request = Annotated[RunRequest, Depends(_joining)]


async def _current_run(thread_id: ThreadId, run_id: RunId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Run:
    return await runtime.runs.get(principal, run_id, thread_id=thread_id)


CurrentRun = Annotated[Run, Depends(_current_run)]


async def _cancelling(credential: CurrentCredential, cancel_on_disconnect: bool = False) -> bool:
    """A GET that may stop the run is more than reading."""
    if cancel_on_disconnect:
        require(credential, "write")
    return cancel_on_disconnect


Cancelling = Annotated[bool, Depends(_cancelling)]


async def _joined(
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    cancel_on_disconnect: Cancelling,
    stream_mode: Modes = None,
    last_event_id: LastEventId = None,
) -> Callable[[Run], Response]:
    """Makes the stream of a run that goes on already."""

    def stream_of(run: Run) -> Response:
        asked = RunRequest.model_validate(run.kwargs["request"])
        return event_stream(
            runtime,
            principal,
            run,
            modes=stream_mode or asked.modes,
            subgraphs=asked.stream_subgraphs,
            after=position(last_event_id),
            cancel_on_disconnect=cancel_on_disconnect,
        )

    return stream_of


Joined = Annotated[Callable[[Run], Response], Depends(_joined)]

STREAM = raw("text/event-stream", "Server-sent events up to the run's `end`.")
VALUES = raw(
    "application/json",
    "The thread's values when the run has ended; `__error__` {error, message} if it failed.",
    example={"messages": [], "title": "A haiku"},
)


class Cancellation(RequestBody):
    """Which runs: the named ones, or all of a status."""

    thread_id: str | None = None
    run_ids: list[str] | None = None
    status: Literal["pending", "running", "all"] | None = None


class BatchRun(RunRequest):
    """The JavaScript SDK sends the runs of a batch with its own names (``assistantId``) besides or instead of the API's."""

    @model_validator(mode="before")
    @classmethod
    def _snake_case(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        renamed = {re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0].lower()}", key): key for key in given}
        return {name: given.get(name, given[key]) for name, key in renamed.items()}


class Steering(RequestBody):
    message: dict[str, Any] | str = Field(examples=[{"role": "user", "content": "In French, please."}])


# on a thread ------------------------------------------------------------------------------------------------------------


@router.get("/api/threads/{thread_id}/context", summary="What fills the model's window")
async def context(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    model_name: Annotated[str | None, Query(description="Default: the first model.")] = None,
) -> ContextTable:
    """In tokens, about as the model's provider counts them."""
    return await runtime.context_table(principal, thread_id, RunOptions(model_name=model_name))


@router.post("/api/threads/{thread_id}/compact", summary="Summarize the conversation for the model")
async def compact(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    keep: Annotated[str, Body(embed=True, description="What to keep above all.", max_length=4000)] = "",
    model_name: Annotated[str | None, Body(embed=True)] = None,
) -> RunView:
    """Starts a run with the message `/compact`, as people type it. What is stored of the conversation stays whole."""
    said = {"role": "user", "content": f"/compact {keep}".strip()}
    request = RunRequest(input={"messages": [said]}, context={"model_name": model_name} if model_name else None)
    return run_view(await runtime.runs.start(principal, request, thread_id=thread_id))


@router.post("/api/threads/{thread_id}/runs", summary="Start a run in the background")
async def create(
    thread_id: ThreadId, request: Request, response: Response, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> RunView:
    run = await runtime.runs.start(principal, request, thread_id=thread_id)
    response.headers.update(run_headers(run))
    return run_view(run)


@router.post(
    "/api/threads/{thread_id}/runs/stream",
    summary="Start a run and follow it",
    **STREAM,
)
async def stream(
    thread_id: ThreadId, request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    run = await runtime.runs.start(principal, request, thread_id=thread_id)
    return _followed(runtime, principal, run, request)


@router.post(
    "/api/threads/{thread_id}/runs/wait",
    summary="Start a run and wait for its end",
    **VALUES,
)
async def wait(thread_id: ThreadId, request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    run = await runtime.runs.start(principal, request, thread_id=thread_id)
    return final_values(runtime, principal, run, cancel_on_disconnect=request.on_disconnect == "cancel")


@router.get("/api/threads/{thread_id}/runs", summary="The runs of a thread, newest first")
async def list_runs(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    limit: PageSize = 10,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    status: Literal["pending", "running", "success", "error", "interrupted", "timeout"] | None = None,
    select: Annotated[list[str] | None, Listed, Query(description="Only these fields.")] = None,
) -> list[Mapping[str, Any]]:
    found = await runtime.runs.list(principal, thread_id, limit=limit, offset=offset, status=status)
    if unknown := [name for name in select or () if name not in RunView.__annotations__]:
        raise InvalidRequestError(f"select: runs have no field {unknown[0]!r}.")
    return [selected(run_view(run), select) for run in found]


@router.get("/api/threads/{thread_id}/stream", summary="Follow a thread", **STREAM)
async def join_thread(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    stream_mode: Annotated[
        list[Literal["run_modes", "lifecycle", "state_update"]] | None,
        Listed,
        Query(description="Default: run_modes."),
    ] = None,
    last_event_id: LastEventId = None,
) -> Response:
    """All its runs, one after the other, for ever. Without `Last-Event-ID`: from the run that is on its way, if there is one."""
    thread = await runtime.threads.repository.get(principal, thread_id)
    after = position(last_event_id) if last_event_id else None
    return thread_stream(runtime, thread, modes=frozenset(stream_mode or ["run_modes"]), after=after)


@router.post("/api/threads/{thread_id}/steer", summary="Hand a message to the run that is on its way")
async def steer(
    thread_id: ThreadId, request: Steering, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> RunView:
    """The run takes it up at its next step. 409 if none is running: start a run with the message instead."""
    message = {"role": "user", "content": request.message} if isinstance(request.message, str) else request.message
    return run_view(await runtime.runs.steer(principal, thread_id, message))


@router.get("/api/threads/{thread_id}/runs/{run_id}", summary="A run")
async def get(run: CurrentRun) -> RunView:
    return run_view(run)


@router.get("/api/threads/{thread_id}/runs/{run_id}/receipts", summary="What a run can show for its answer")
async def receipts(run: CurrentRun) -> RunReceipts:
    """Commands with their exit codes, files with their digests, sources and checks: what tools did, not what they printed."""
    return receipts_view(run)


@router.get("/api/threads/{thread_id}/runs/{run_id}/timeline", summary="When a run did what", response_model=Timeline)
async def get_timeline(
    thread_id: ThreadId,
    run_id: RunId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    format: TimelineFormat = "json",
) -> Any:
    """Calls of models and tools, subagents, what the run waited for, tokens and money; also while it goes on.

    A run that waited for a person's decision is followed by those that went on with it.
    """
    return _timeline(await runtime.timelines.of(principal, run_id, thread_id=thread_id), format)


@router.get("/api/runs/{run_id}/timeline", summary="When a run did what, whatever its thread", response_model=Timeline)
async def timeline_of(
    run_id: RunId, principal: CurrentPrincipal, runtime: CurrentRuntime, format: TimelineFormat = "json"
) -> Any:
    """The id of a thread stands for its newest turn."""
    return _timeline(await runtime.timelines.of(principal, run_id), format)


def _timeline(found: Timeline, format: str) -> Timeline | JSONResponse:
    return JSONResponse(otlp(found)) if format == "otlp" else found


@router.delete("/api/threads/{thread_id}/runs/{run_id}", status_code=204, summary="Delete a run that has ended")
async def delete(thread_id: ThreadId, run_id: RunId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    """What it said stays in the thread."""
    await runtime.runs.delete(principal, run_id, thread_id=thread_id)


@router.post("/api/threads/{thread_id}/runs/{run_id}/cancel", status_code=202, summary="Stop a run")
async def cancel(
    thread_id: ThreadId,
    run_id: RunId,
    response: Response,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    wait: Annotated[bool, Query(description="Answer when it has ended.")] = False,
    action: Action = "interrupt",
) -> dict[str, Any]:
    """404 if it has ended already."""
    await runtime.runs.cancel(principal, run_id, thread_id=thread_id, action=action, wait=wait)
    response.status_code = 200 if wait else 202
    return {}


@router.get("/api/threads/{thread_id}/runs/{run_id}/join", summary="Wait for a run", **VALUES)
async def join(
    run: CurrentRun, principal: CurrentPrincipal, runtime: CurrentRuntime, cancel_on_disconnect: Cancelling
) -> Response:
    return final_values(runtime, principal, run, cancel_on_disconnect=cancel_on_disconnect)


@router.get("/api/threads/{thread_id}/runs/{run_id}/stream", summary="Follow a run", **STREAM)
async def join_stream(run: CurrentRun, joined: Joined) -> Response:
    """During the run and after it, from its beginning or after `Last-Event-ID`; each event is sent once."""
    return joined(run)


@router.post("/api/threads/{thread_id}/runs/{run_id}/stream", summary="Stop a run and follow it to its end", **STREAM)
async def stop_and_join_stream(
    run: CurrentRun,
    joined: Joined,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    action: Annotated[Literal["interrupt", "rollback"] | None, Query(description="Default: only follow it.")] = None,
    wait: Annotated[bool, Query(description="Answer 204 when it has been stopped, without the stream.")] = False,
) -> Response:
    """A run that has ended already is followed as `GET` does it."""
    if action is not None and not run.ended:
        try:
            await runtime.runs.cancel(principal, run.run_id, thread_id=run.thread_id, action=action, wait=wait)
        except NotFoundError:
            return joined(run)  # it ended meanwhile
        if wait:
            return Response(status_code=204)
    return joined(run)


# on a thread of their own -------------------------------------------------------------------------------------------------


@router.post("/api/runs", summary="Start a run on a thread of its own")
async def create_stateless(
    request: Request, response: Response, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> RunView:
    """The thread goes with the run unless `on_completion` is `keep`."""
    run = await _start_stateless(runtime, principal, request)
    response.headers.update(run_headers(run))
    return run_view(run)


@router.post(
    "/api/runs/stream",
    summary="Start a run on a thread of its own and follow it",
    **STREAM,
)
async def stream_stateless(request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    return _followed(runtime, principal, await _start_stateless(runtime, principal, request), request)


@router.post("/api/runs/wait", summary="Start a run on a thread of its own and wait", **VALUES)
async def wait_stateless(request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    run = await _start_stateless(runtime, principal, request)
    return final_values(runtime, principal, run, cancel_on_disconnect=request.on_disconnect == "cancel")


@router.post("/api/runs/batch", summary="Start several runs, each on a thread of its own")
async def batch(
    requests: Annotated[list[BatchRun], Body(min_length=1, max_length=100)],
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
) -> list[RunView]:
    return [run_view(await _start_stateless(runtime, principal, request)) for request in requests]


@router.post("/api/runs/cancel", status_code=204, summary="Stop several runs")
async def cancel_many(
    request: Cancellation, principal: CurrentPrincipal, runtime: CurrentRuntime, action: Action = "interrupt"
) -> None:
    if request.run_ids is None and request.status is None:
        raise InvalidRequestError("Say which runs: run_ids, or status pending, running or all.")
    await runtime.runs.cancel_many(
        principal, thread_id=request.thread_id, run_ids=request.run_ids, status=request.status, action=action
    )


@router.get("/api/runs/{run_id}/stream", summary="Follow a run", **STREAM)
async def join_stateless(
    run_id: RunId, principal: CurrentPrincipal, runtime: CurrentRuntime, joined: Joined
) -> Response:
    return joined(await runtime.runs.get(principal, run_id))


async def _start_stateless(runtime: Runtime, principal: Principal, request: RunRequest) -> Run:
    """``config.configurable.thread_id`` names a thread of the principal's to keep, made if there is none."""
    thread_id = request.configurable().get("thread_id")
    if thread_id is not None:
        if not isinstance(thread_id, str):
            raise InvalidRequestError("config.configurable.thread_id must be text.")
        request = request.model_copy(update={"if_not_exists": "create"})
    return await runtime.runs.start(principal, request, thread_id=thread_id)


def _followed(runtime: Runtime, principal: Principal, run: Run, request: RunRequest) -> Response:
    return event_stream(
        runtime,
        principal,
        run,
        modes=request.modes,
        subgraphs=request.stream_subgraphs,
        cancel_on_disconnect=request.on_disconnect == "cancel",
    )
