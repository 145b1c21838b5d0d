"""What models used and what it cost, over all threads."""

from __future__ import annotations

from datetime import date

from fastapi import APIRouter
from pydantic import BaseModel

from deerflow.features.usage import By, Limit, UsageReport
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime

router = APIRouter(tags=["usage"])


@router.get("/api/usage", summary="Tokens and money by day, model, agent or person")
async def usage(
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    by: By = "day",
    since: date | None = None,
    until: date | None = None,
    everyone: bool = False,
    person: str | None = None,
) -> UsageReport:
    """One's own of the last 30 days, or of the days named (UTC, both included); administrators may ask for everyone's, or for
    those of a person by id."""
    return await runtime.usage.report(principal, by=by, since=since, until=until, everyone=everyone, person=person)


class UsageLimits(BaseModel):
    limits: list[Limit]


@router.get("/api/usage/limits", summary="What may be spent, and how much of it is")
async def limits(principal: CurrentPrincipal, runtime: CurrentRuntime) -> UsageLimits:
    config = await runtime.config_source.acurrent()
    return UsageLimits(limits=await runtime.usage.limits(principal, config.spending))
