"""What a thread keeps of the web."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from deerflow.files.pages import PageService
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime
from deerflow_app.gateway.http.answers import RequestBody

router = APIRouter(tags=["pages"])


async def page_service(runtime: CurrentRuntime) -> PageService:
    return PageService(runtime.paths, ThreadRepository(runtime.database))


CurrentPages = Annotated[PageService, Depends(page_service)]


class Page(BaseModel):
    url: str | None = Field(description="Where it stood, after redirects; null: a file that is no page of text.")
    title: str
    path: str = Field(description="What the agent read.", examples=["/mnt/user-data/workspace/.web/example.org-1f.md"])
    read_at: datetime


class PictureRequest(RequestBody):
    url: str = Field(
        max_length=2000, description="http or https, and public unless the configuration opens its network."
    )


class KeptPicture(BaseModel):
    path: str = Field(examples=["/mnt/user-data/workspace/.web/example.org-deer-1f.jpg"])


@router.get("/api/threads/{thread_id}/pages", summary="List the web pages that were read")
async def list_pages(thread_id: str, principal: CurrentPrincipal, pages: CurrentPages) -> list[Page]:
    """The newest first, also those that subagents read. Each can be read as a file, as it was then."""
    kept = await pages.list(principal, thread_id)
    return [Page.model_validate(page, from_attributes=True) for page in kept]


@router.post("/api/threads/{thread_id}/pages/pictures", summary="Load a picture of the web")
async def load_picture(
    thread_id: str, body: PictureRequest, principal: CurrentPrincipal, pages: CurrentPages, runtime: CurrentRuntime
) -> KeptPicture:
    """The server loads it and keeps it in the thread, so that no browser calls a foreign server."""
    config = await runtime.config_source.acurrent()
    return KeptPicture(path=await pages.picture(principal, thread_id, body.url, config))
