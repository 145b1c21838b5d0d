"""Parts of the API that this server has, for clients that show more or less accordingly."""

from __future__ import annotations

from fastapi import Request
from pydantic import BaseModel

from deerflow.features.transcription import can_transcribe
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime

router = Router(tags=["system"])


class Feature(BaseModel):
    enabled: bool


class Features(BaseModel):
    agents_api: Feature
    browser_control: Feature
    mcp_tasks: Feature
    transcription: Feature


@router.get("/api/features", summary="Which parts of the API are there")
async def list_features(request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Features:
    config = await runtime.config_source.acurrent()
    paths = {getattr(route, "path", "") for route in request.app.routes}
    return Features(
        agents_api=Feature(enabled=config.agents_api.enabled),
        browser_control=Feature(enabled="/api/threads/{thread_id}/browser/navigate" in paths),
        transcription=Feature(enabled=can_transcribe(config)),
        mcp_tasks=Feature(enabled="/api/threads/{thread_id}/mcp-tasks" in paths),
    )
