"""What models used and what it cost, over all threads."""

from __future__ import annotations

from datetime import date

from fastapi import APIRouter

from deerflow.features.usage import By, UsageReport
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
) -> UsageReport:
    """One's own of the last 30 days, or of the days named (UTC, both included); administrators may ask for everyone's."""
    return await runtime.usage.report(principal, by=by, since=since, until=until, everyone=everyone)
