"""What people have granted to agents, and what was decided about tool calls."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, BaseModel, Field

from deerflow.storage.approvals import ApprovalRepository, GrantView, ToolDecision, grant_view
from deerflow.storage.moment import Moment
from deerflow.storage.provenance import Source, SourceKind
from deerflow.threads.service import WaitingFor
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import (
    CurrentAdmin,
    CurrentDatabase,
    CurrentPrincipal,
    CurrentRuntime,
    PageSize,
    RequestBody,
    ThreadId,
)

router = Router(tags=["approvals"])


class Grants(BaseModel):
    grants: list[GrantView]


class ToolDecisions(BaseModel):
    decisions: list[ToolDecision]


class Sources(BaseModel):
    sources: list[Source]


class TrustedSource(RequestBody):
    kind: SourceKind
    name: str


class WaitingThread(BaseModel):
    thread_id: str
    title: str | None
    since: Moment = Field(validation_alias="waits_since")


class WaitingThreads(BaseModel):
    threads: list[WaitingThread]


@router.get(
    "/api/approvals/waiting",
    summary="One's threads that wait for a decision or an answer, newest first",
    response_model=WaitingThreads,
)
async def waiting_threads(principal: CurrentPrincipal, runtime: CurrentRuntime, limit: PageSize = 100) -> Any:
    return {"threads": await runtime.threads.repository.waiting(principal, limit)}


@router.get("/api/threads/{thread_id}/waiting", summary="What a thread waits for")
async def waiting_for(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> WaitingFor:
    return await runtime.threads.waiting_for(principal, thread_id)


@router.delete("/api/threads/{thread_id}/waiting", status_code=204, summary="Decide later")
async def dismiss(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    """Takes the thread from those that wait, until it asks again. What it waits for stays open."""
    await runtime.threads.dismiss(principal, thread_id)


@router.get(
    "/api/threads/{thread_id}/sources",
    summary="Where foreign text in a thread came from, oldest first",
    response_model=Sources,
)
async def list_sources(thread_id: ThreadId, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Any:
    return {"sources": await runtime.threads.repository.sources(principal, thread_id)}


@router.post("/api/threads/{thread_id}/sources/trust", status_code=204, summary="Trust a source of a thread")
async def trust_source(
    thread_id: ThreadId, trusted: TrustedSource, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> None:
    """What the source has brought so far counts as your own text. Changed content counts as foreign again."""
    await runtime.threads.repository.trust(principal, thread_id, trusted.kind, trusted.name)


@router.get("/api/approvals/grants", summary="One's grants, newest first", response_model=Grants)
async def list_grants(principal: CurrentPrincipal, database: CurrentDatabase) -> Any:
    return {"grants": [grant_view(grant) for grant in await ApprovalRepository(database).grants(principal)]}


@router.delete("/api/approvals/grants/{grant_id}", status_code=204, summary="Revoke a grant")
async def revoke_grant(grant_id: str, principal: CurrentPrincipal, database: CurrentDatabase) -> None:
    await ApprovalRepository(database).revoke(principal, grant_id)


@router.get(
    "/api/approvals/decisions",
    summary="What was decided about calls of everyone, newest first",
    response_model=ToolDecisions,
)
async def list_decisions(
    admin: CurrentAdmin,
    database: CurrentDatabase,
    run_id: str | None = None,
    thread_id: str | None = None,
    before: AwareDatetime | None = None,
    limit: PageSize = 100,
) -> Any:
    found = await ApprovalRepository(database).decisions(run_id=run_id, thread_id=thread_id, before=before, limit=limit)
    return {"decisions": found}
