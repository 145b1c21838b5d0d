"""Threads: made, found, annotated, copied, deleted; and their state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Response
from langgraph import types
from pydantic import BaseModel, Field, with_config

from deerflow.errors import InvalidRequestError
from deerflow.features.assistants.service import assistants_meant
from deerflow.identity import Principal
from deerflow.runs.protocol_stream import RECENT_RUNS, position_after
from deerflow.storage.search import Hit
from deerflow.storage.threads import ThreadFilter, ThreadStatus
from deerflow.threads.checkpoint import StateView
from deerflow.threads.view import ThreadView
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import (
    HEADERS,
    ID,
    SELECTABLE,
    CurrentPrincipal,
    CurrentRuntime,
    Listed,
    PageSize,
    RequestBody,
    SortedPage,
    ThreadId,
    at_path,
    json_answer,
    page_answer,
    selected,
)

router = Router(tags=["threads"])
state_routes = Router(tags=["thread state"])

ThreadField = Literal[
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "config",
    "context",
    "status",
    "values",
    "values.title",
    "interrupts",
]
MAX_MINUTES = 5_256_000


class ThreadNow(ThreadView):
    stream_position: Annotated[
        int,
        Field(
            description="A position in the streaming protocol before everything that these values do not hold: `since` of a "
            "stream that goes on from here. 0: from the beginning."
        ),
    ]


@with_config(SELECTABLE)
class FoundThread(ThreadView):
    extracted: Annotated[dict[str, Any], Field(description="What `extract` names; null where there is nothing.")]


class Ttl(RequestBody):
    """After how many minutes the thread is deleted."""

    ttl: float = Field(gt=0, le=MAX_MINUTES, description="Minutes.")
    strategy: Literal["delete", "keep_latest"] = Field(
        default="delete", description="`keep_latest` has no effect: the thread stays."
    )


Minutes = Annotated[float, Field(gt=0, le=MAX_MINUTES)]


class Update(RequestBody):
    values: dict[str, Any] | None = None
    as_node: str | None = None
    command: None = Field(default=None, description="Not supported.")


class Superstep(RequestBody):
    updates: list[Update] = Field(min_length=1)


class ThreadRequest(RequestBody):
    thread_id: str | None = Field(default=None, pattern=ID, description="Default: a new one.")
    assistant_id: str | None = Field(default=None, max_length=128)
    metadata: dict[str, Any] | None = None
    if_exists: Literal["raise", "do_nothing"] | None = Field(
        default=None, description="Default: one's own thread is given back; a foreign id is always refused."
    )
    ttl: Ttl | Minutes | None = None
    supersteps: list[Superstep] | None = Field(default=None, max_length=1000, description="Steps to begin with.")


class ThreadPatch(RequestBody):
    metadata: dict[str, Any] | None = Field(default=None, description="Merged into the thread's, key by key.")
    ttl: Ttl | Minutes | None = None


class ThreadConditions(RequestBody):
    metadata: dict[str, Any] | None = Field(default=None, description="What the metadata must contain.")
    values: dict[str, Any] | None = Field(default=None, description="Only `title` can be searched for.")
    status: ThreadStatus | None = None

    def filter(self, principal: Principal, ids: list[str] | None = None) -> ThreadFilter:
        values = dict(self.values or {})
        title = values.pop("title", None)
        if values or not isinstance(title, str | None):
            raise InvalidRequestError("values: threads can be searched by the text of their title only.")
        metadata = self.metadata or {}
        return ThreadFilter(metadata, ids, self.status, title, assistants_meant(principal, metadata))


class ThreadSearch(ThreadConditions, SortedPage):
    ids: list[str] | None = Field(default=None, max_length=1000)
    extract: dict[str, str] | None = Field(
        default=None,
        max_length=10,
        description="Paths of what stands in `extracted`, by names of yours: `values.messages[-1].content`.",
    )
    limit: int = Field(default=100, ge=1, le=1000)
    sort_by: Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"] | None = None
    select: list[ThreadField] | None = Field(
        default=None, description="Only these fields. With `values.title` instead of `values` lists are quick."
    )


class Prune(RequestBody):
    thread_ids: list[str] = Field(max_length=1000)
    strategy: Literal["delete", "keep_latest"] = "delete"


class Pruned(BaseModel):
    pruned_count: int


@router.post("/api/threads", summary="Make a thread", response_model=ThreadView)
async def create_thread(
    principal: CurrentPrincipal, runtime: CurrentRuntime, body: ThreadRequest | None = None
) -> Response:
    body = body or ThreadRequest()
    steps = [
        [types.StateUpdate(update.values, update.as_node) for update in step.updates] for step in body.supersteps or ()
    ]
    made = await runtime.threads.create(
        principal,
        body.thread_id,
        metadata=body.metadata,
        assistant_id=body.assistant_id,
        if_exists=body.if_exists or "do_nothing",
        ttl=_duration(body.ttl),
        supersteps=steps,
    )
    return await json_answer(made)


@router.post(
    "/api/threads/search",
    summary="Find threads",
    response_model=list[FoundThread],
    responses=HEADERS,
)
async def search_threads(
    principal: CurrentPrincipal, runtime: CurrentRuntime, body: ThreadSearch | None = None
) -> Response:
    """The newest first, unless sorted otherwise. A `graph_id` or `assistant_id` in `metadata` finds the threads with such runs."""
    body = body or ThreadSearch()
    found, total = await runtime.threads.search(
        principal,
        body.filter(principal, body.ids),
        body.page(),
        with_state=_needs_state(body),
    )
    return await page_answer([_found(thread, body) for thread in found], body, total)


def _needs_state(wanted: ThreadSearch) -> bool:
    of_state = {"values", "interrupts"}
    roots = {path.partition(".")[0].partition("[")[0] for path in (wanted.extract or {}).values()}
    return wanted.select is None or not of_state.isdisjoint({*wanted.select, *roots})


def _found(thread: ThreadView, wanted: ThreadSearch) -> Mapping[str, Any]:
    shown = selected(thread, wanted.select)
    if not wanted.extract:
        return shown
    return {**shown, "extracted": {name: at_path(thread, path) for name, path in wanted.extract.items()}}


@router.post("/api/threads/count", summary="Count threads")
async def count_threads(
    principal: CurrentPrincipal, runtime: CurrentRuntime, body: ThreadConditions | None = None
) -> int:
    return await runtime.threads.count(principal, (body or ThreadConditions()).filter(principal))


@router.post("/api/threads/prune", summary="Delete threads, or their history")
async def prune_threads(body: Prune, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Pruned:
    """`keep_latest` keeps what was said and the present state, and drops the way back. Threads that are not there or in
    use are left out of the count."""
    return Pruned(pruned_count=await runtime.threads.prune(principal, body.thread_ids, body.strategy))


@router.get("/api/threads/{thread_id}", summary="A thread with its state", response_model=ThreadNow)
async def get_thread(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    # First the position: what is said meanwhile is told twice, not lost.
    position = position_after(await runtime.runs.list(principal, thread_id, limit=RECENT_RUNS))
    return await json_answer({**await runtime.threads.get(principal, thread_id), "stream_position": position})


@router.patch(
    "/api/threads/{thread_id}",
    summary="Note something about a thread",
    response_model=ThreadView,
    responses={204: {"description": "Done; the client did not want to see the thread."}},
)
async def patch_thread(
    thread_id: ThreadId,
    body: ThreadPatch,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    prefer: Annotated[str | None, Header(description="`return=minimal`: no thread in the answer (RFC 7240).")] = None,
) -> Response:
    patched = await runtime.threads.update(principal, thread_id, metadata=body.metadata, ttl=_duration(body.ttl))
    if prefer is not None and "return=minimal" in prefer.replace(" ", "").lower():
        return Response(status_code=204, headers={"Preference-Applied": "return=minimal"})
    return await json_answer(patched)


@router.delete("/api/threads/{thread_id}", status_code=204, summary="Delete a thread")
async def delete_thread(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    memory: Annotated[bool, Query(description="Also forget the facts that were learned in it.")] = False,
) -> None:
    """With everything: its run is stopped, its files are deleted."""
    await runtime.threads.delete(principal, thread_id)
    if memory:
        await runtime.forget_thread(principal, thread_id)


@router.post("/api/threads/{thread_id}/copy", summary="Copy a thread", response_model=ThreadView)
async def copy_thread(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    """History, files and title; not its runs."""
    return await json_answer(await runtime.threads.copy(principal, thread_id))


class Hits(BaseModel):
    data: list[Hit]
    has_more: bool


@router.get("/api/search/messages", summary="Find what was said", response_model=Hits)
async def search_messages(
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    q: Annotated[str, Query(max_length=1000, description="Words; all must be there, the last letters may be missing.")],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> Response:
    """In messages and titles of one's own threads, the newest first."""
    found = await runtime.threads.messages.search(principal, q, limit=limit + 1, offset=offset)
    return await json_answer({"data": found[:limit], "has_more": len(found) > limit})


def _duration(ttl: Ttl | float | None) -> timedelta | None:
    if isinstance(ttl, Ttl):
        return timedelta(minutes=ttl.ttl) if ttl.strategy == "delete" else None
    return None if ttl is None else timedelta(minutes=ttl)


# state: as it is, as it was, and as somebody wants it to be ------------------------------------------------------------


class Checkpoint(BaseModel):
    """Names a checkpoint. What is left out: the newest one, of the root."""

    # Clients send back what they got: what else there is in it is ignored.
    checkpoint_id: str | None = None
    checkpoint_ns: str | None = ""


@with_config(SELECTABLE)
class FoundState(StateView):
    pass


class StateAt(RequestBody):
    checkpoint: Checkpoint
    subgraphs: bool = False
    select: list[str] | None = None


class StateUpdate(RequestBody):
    values: dict[str, Any] | None = Field(default=None, description="Through the reducers. None: only fork.")
    as_node: str | None = Field(default=None, description="The node whose step this is to be.")
    checkpoint: Checkpoint | None = Field(default=None, description="Fork from here.")
    checkpoint_id: str | None = None


class StatePatch(RequestBody):
    metadata: dict[str, Any]
    checkpoint: Checkpoint | None = None


class Updated(BaseModel):
    checkpoint: dict[str, Any]
    checkpoint_id: str | None
    configurable: dict[str, Any]


class HistoryRequest(RequestBody):
    limit: int = Field(default=10, ge=1, le=1000)
    before: str | dict[str, Any] | None = Field(default=None, description="A checkpoint: only older ones.")
    metadata: dict[str, Any] | None = Field(default=None, description="Only checkpoints whose metadata has these.")
    checkpoint: Checkpoint | None = Field(default=None, description="Begin here, or: only of this subgraph.")
    select: list[str] | None = Field(default=None, description="Only these fields, such as `next` or `values.title`.")


Subgraphs = Annotated[bool, Query(description="With the states of subgraphs.")]
Select = Annotated[
    list[str] | None, Listed, Query(description="Only these fields, such as `next` or `values.messages`.")
]


@state_routes.get("/api/threads/{thread_id}/state", summary="The present state", response_model=FoundState)
async def get_state(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    subgraphs: Subgraphs = False,
    select: Select = None,
) -> Response:
    state = await runtime.threads.states.get(principal, thread_id, subgraphs=subgraphs)
    return await json_answer(selected(state, select or None))


@state_routes.get("/api/threads/{thread_id}/state/{checkpoint_id}", summary="A former state", response_model=FoundState)
async def get_state_at(
    thread_id: ThreadId,
    checkpoint_id: str,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    subgraphs: Subgraphs = False,
    select: Select = None,
) -> Response:
    where = {"checkpoint_id": checkpoint_id}
    state = await runtime.threads.states.get(principal, thread_id, checkpoint=where, subgraphs=subgraphs)
    return await json_answer(selected(state, select or None))


@state_routes.post(
    "/api/threads/{thread_id}/state/checkpoint", summary="The state at a checkpoint", response_model=FoundState
)
async def get_state_at_checkpoint(
    thread_id: ThreadId, body: StateAt, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    state = await runtime.threads.states.get(
        principal, thread_id, checkpoint=_where(body.checkpoint), subgraphs=body.subgraphs
    )
    return await json_answer(selected(state, body.select or None))


@state_routes.post("/api/threads/{thread_id}/state", summary="Change the state")
async def update_state(
    thread_id: ThreadId, body: StateUpdate, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Updated:
    """A new checkpoint, after the newest one or after `checkpoint`. A `title` alone can be set during a run, too."""
    where = _where(body.checkpoint) or ({"checkpoint_id": body.checkpoint_id} if body.checkpoint_id else None)
    made = await runtime.threads.states.update(
        principal, thread_id, body.values, as_node=body.as_node, checkpoint=where
    )
    return _updated(made)


@state_routes.patch("/api/threads/{thread_id}/state", summary="Note something about a checkpoint")
async def patch_state(
    thread_id: ThreadId, body: StatePatch, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Updated:
    where = await runtime.threads.states.annotate(
        principal, thread_id, body.metadata, checkpoint=_where(body.checkpoint)
    )
    return _updated(where)


@state_routes.post("/api/threads/{thread_id}/history", summary="Former states", response_model=list[FoundState])
async def post_history(
    thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime, body: HistoryRequest | None = None
) -> Response:
    """The newest first."""
    body = body or HistoryRequest()
    states = await runtime.threads.states.history(
        principal,
        thread_id,
        limit=body.limit,
        before=_checkpoint_id(body.before),
        checkpoint=_where(body.checkpoint),
        metadata=body.metadata,
    )
    return await json_answer([selected(state, body.select or None) for state in states])


@state_routes.get("/api/threads/{thread_id}/history", summary="Former states", response_model=list[FoundState])
async def get_history(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    limit: PageSize = 10,
    before: Annotated[str | None, Query(description="A checkpoint's id: only older ones.")] = None,
) -> Response:
    """The newest first."""
    return await json_answer(await runtime.threads.states.history(principal, thread_id, limit=limit, before=before))


def _where(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    if checkpoint is None or not (checkpoint.checkpoint_id or checkpoint.checkpoint_ns):
        return None
    return {"checkpoint_id": checkpoint.checkpoint_id, "checkpoint_ns": checkpoint.checkpoint_ns or ""}


def _checkpoint_id(before: str | dict[str, Any] | None) -> str | None:
    """Clients name it by its id, as a checkpoint, or as a configuration that holds one."""
    if isinstance(before, dict):
        named = before.get("configurable", before)
        before = named.get("checkpoint_id") if isinstance(named, dict) else None
    return before if isinstance(before, str) else None


def _updated(checkpoint: dict[str, Any]) -> Updated:
    return Updated(checkpoint=checkpoint, checkpoint_id=checkpoint.get("checkpoint_id"), configurable=checkpoint)
