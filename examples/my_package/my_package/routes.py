"""Routes of your own, served under ``/api/capabilities/glossary`` to people who are signed in."""

from __future__ import annotations

from fastapi import APIRouter

from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime
from my_package.glossary import NAMESPACE

router = APIRouter()


@router.get("/lookups", summary="How many of your runs looked up each term")
async def lookups(principal: CurrentPrincipal, runtime: CurrentRuntime) -> dict[str, int]:
    found = await runtime.store.of(principal).asearch(NAMESPACE, limit=1000)
    return {item.key: len(item.value["runs"]) for item in found}
