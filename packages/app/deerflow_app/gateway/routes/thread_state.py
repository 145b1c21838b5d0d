"""The state of a thread: as it is, as it was, and as somebody wants it to be."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime, Listed
from deerflow_app.gateway.http.answers import SELECTABLE, RequestBody, json_answer, selected
from deerflow_app.gateway.routes.threads import ThreadId

router = APIRouter(tags=["thread state"])


class Checkpoint(BaseModel):
    """Names a checkpoint. What is left out: the newest one, of the root."""

    model_config = ConfigDict(extra="ignore")  # clients send back what they got

    checkpoint_id: str | None = None
    checkpoint_ns: str | None = ""


class Task(BaseModel):
    id: str
    name: str
    path: Any = None
    error: str | None
    interrupts: list[dict[str, Any]]
    checkpoint: dict[str, Any] | None
    state: dict[str, Any] | None
    result: Any = None


class ThreadState(BaseModel):
    model_config = SELECTABLE

    values: dict[str, Any]
    next: list[str] = Field(description="The nodes to run next. Empty: the thread is done until new input comes.")
    tasks: list[Task]
    metadata: dict[str, Any]
    created_at: str | None
    checkpoint: dict[str, Any]
    parent_checkpoint: dict[str, Any] | None
    interrupts: list[dict[str, Any]]
    checkpoint_id: str | None
    parent_checkpoint_id: str | None


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


@router.get("/api/threads/{thread_id}/state", summary="The present state", response_model=ThreadState)
async def get_state(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    subgraphs: Subgraphs = False,
    select: Select = None,
) -> Response:
    state = await runtime.threads.states.get(principal, thread_id, subgraphs=subgraphs)
    return await json_answer(selected(state, select or None))


@router.get("/api/threads/{thread_id}/state/{checkpoint_id}", summary="A former state", response_model=ThreadState)
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


@router.post(
    "/api/threads/{thread_id}/state/checkpoint", summary="The state at a checkpoint", response_model=ThreadState
)
async def get_state_at_checkpoint(
    thread_id: ThreadId, body: StateAt, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    state = await runtime.threads.states.get(
        principal, thread_id, checkpoint=_where(body.checkpoint), subgraphs=body.subgraphs
    )
    return await json_answer(selected(state, body.select or None))


@router.post("/api/threads/{thread_id}/state", summary="Change the state")
async def update_state(
    thread_id: ThreadId, body: StateUpdate, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Updated:
    """A new checkpoint, after the newest one or after `checkpoint`. A `title` alone can be set during a run, too."""
    where = _where(body.checkpoint) or ({"checkpoint_id": body.checkpoint_id} if body.checkpoint_id else None)
    made = await runtime.threads.states.update(
        principal, thread_id, body.values, as_node=body.as_node, checkpoint=where
    )
    return _updated(made)


@router.patch("/api/threads/{thread_id}/state", summary="Note something about a checkpoint")
async def patch_state(
    thread_id: ThreadId, body: StatePatch, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Updated:
    where = await runtime.threads.states.annotate(
        principal, thread_id, body.metadata, checkpoint=_where(body.checkpoint)
    )
    return _updated(where)


@router.post("/api/threads/{thread_id}/history", summary="Former states", response_model=list[ThreadState])
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


@router.get("/api/threads/{thread_id}/history", summary="Former states", response_model=list[ThreadState])
async def get_history(
    thread_id: ThreadId,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
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
