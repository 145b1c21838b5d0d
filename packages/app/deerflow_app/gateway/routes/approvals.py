"""What people have granted to agents, and what was decided about tool calls."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, Field

from deerflow.storage.approvals import ApprovalRepository
from deerflow.storage.approvals import Grant as GrantRow
from deerflow.storage.approvals import ToolDecision as DecisionRow
from deerflow_app.gateway.deps import CurrentAdmin, CurrentDatabase, CurrentPrincipal
from deerflow_app.gateway.http.answers import Moment

router = APIRouter(tags=["approvals"])


class Grant(BaseModel):
    id: str
    agent: str | None = Field(description="A custom agent; null: the lead agent.")
    tool: str
    thread_id: str | None = Field(description="null: in all threads.")
    pattern: dict[str, str] | None = Field(description="Globs by argument; null: every call.")
    created_at: Moment


class Grants(BaseModel):
    grants: list[Grant]


class ToolDecision(BaseModel):
    id: str
    run_id: str
    thread_id: str
    user_id: str
    agent: str | None
    tool: str
    call_id: str
    decision: str = Field(description="deny, grant, approve, edit, reject or respond.")
    code: str = Field(description="The guardrail's reason.", examples=["oap.tool_not_allowed"])
    policy_id: str | None
    created_at: Moment


class ToolDecisions(BaseModel):
    decisions: list[ToolDecision]


@router.get("/api/approvals/grants", summary="One's grants, newest first")
async def list_grants(principal: CurrentPrincipal, database: CurrentDatabase) -> Grants:
    found = await ApprovalRepository(database).grants(principal)
    return Grants(grants=[Grant(**_fields(grant)) for grant in found])


@router.delete("/api/approvals/grants/{grant_id}", status_code=204, summary="Revoke a grant")
async def revoke_grant(grant_id: str, principal: CurrentPrincipal, database: CurrentDatabase) -> None:
    await ApprovalRepository(database).revoke(principal, grant_id)


@router.get("/api/approvals/decisions", summary="What was decided about calls of everyone, newest first")
async def list_decisions(
    admin: CurrentAdmin,
    database: CurrentDatabase,
    run_id: str | None = None,
    thread_id: str | None = None,
    before: AwareDatetime | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ToolDecisions:
    found = await ApprovalRepository(database).decisions(run_id=run_id, thread_id=thread_id, before=before, limit=limit)
    return ToolDecisions(decisions=[ToolDecision(**_fields(one)) for one in found])


def _fields(row: GrantRow | DecisionRow) -> dict[str, Any]:
    return {**asdict(row), "agent": row.agent or None}
