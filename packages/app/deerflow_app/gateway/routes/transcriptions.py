"""Dictation: what a person says becomes text."""

from __future__ import annotations

from fastapi import Request
from pydantic import BaseModel

from deerflow.features.transcription import ENDINGS, transcribe
from deerflow_app.gateway.http.errors import described
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime

router = Router(tags=["transcriptions"])
_SOUND = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in ENDINGS},
    }
}


class Transcription(BaseModel):
    text: str


@router.post(
    "/api/transcriptions",
    summary="Turn a recording into text",
    openapi_extra=_SOUND,
    responses=described({404: "No endpoint is configured.", 503: "The endpoint does not do it; says why."}),
)
async def create_transcription(request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Transcription:
    """The body is the recording, of the format that its `Content-Type` names. It goes to the endpoint of the section
    `transcription` of the configuration, and is kept nowhere."""
    config = await runtime.config_source.acurrent()
    kind = request.headers.get("content-type", "")
    return Transcription(text=await transcribe(config, await request.body(), kind))
