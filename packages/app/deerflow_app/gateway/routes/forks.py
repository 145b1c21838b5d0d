"""Forks at a message: prepare another answer or another wording, or branch into a thread of its own."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel, Field

from deerflow.threads.forks import Forks, ThreadBranch
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, RequestBody, ThreadId

router = Router(tags=["runs"])


async def _forks(runtime: CurrentRuntime) -> Forks:
    return Forks(runtime.threads)


CurrentForks = Annotated[Forks, Depends(_forks)]


class RegenerateRequest(RequestBody):
    message_id: str = Field(description="The answer, or the message that it answers.")


class EditRequest(RequestBody):
    human_message_id: str
    replacement_text: str = Field(min_length=1, max_length=1_000_000)


class Prepared(BaseModel):
    """Start an ordinary run with `input`, `checkpoint` and `metadata`."""

    input: dict[str, Any]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    target_run_id: str = Field(description="The run that it replaces.")


class PreparedEdit(Prepared):
    replacement_human_message_id: str = Field(description="The id of the message in `input`.")
    source_message_ids: list[str] = Field(description="The messages that stand in its place now.")


class BranchRequest(RequestBody):
    message_id: str = Field(description="The new thread has the turn of this message, and none after it.")
    message_ids: list[str] = Field(
        default=[], max_length=1000, description="Other messages of the same answer; the last in the thread counts."
    )
    title: str | None = Field(default=None, description="Default: that of the thread.")


@router.post("/api/threads/{thread_id}/runs/regenerate/prepare", summary="Prepare a run that answers again")
async def prepare_regeneration(
    thread_id: ThreadId, asked: RegenerateRequest, principal: CurrentPrincipal, forks: CurrentForks
) -> Prepared:
    """Changes nothing. 409 `no_way_back`: the states before the message were removed."""
    found = await forks.regeneration(principal, thread_id, asked.message_id)
    return Prepared.model_validate(found, from_attributes=True)


@router.post("/api/threads/{thread_id}/runs/edit-regenerate/prepare", summary="Prepare a run with another wording")
async def prepare_edit(
    thread_id: ThreadId, asked: EditRequest, principal: CurrentPrincipal, forks: CurrentForks
) -> PreparedEdit:
    """Changes nothing. Files and pictures of the message stay with it."""
    found = await forks.edit(principal, thread_id, asked.human_message_id, asked.replacement_text)
    return PreparedEdit(
        input=found.input,
        checkpoint=found.checkpoint,
        metadata=found.metadata,
        target_run_id=found.target_run_id,
        replacement_human_message_id=found.message_id,
        source_message_ids=found.replaced,
    )


@router.post("/api/threads/{thread_id}/branches", status_code=201, summary="Go on from a message in a new thread")
async def branch(
    thread_id: ThreadId, asked: BranchRequest, principal: CurrentPrincipal, forks: CurrentForks
) -> ThreadBranch:
    """409 while a run is on its way."""
    return await forks.branch(principal, thread_id, [asked.message_id, *asked.message_ids], asked.title)
