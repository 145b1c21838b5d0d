"""Sites that the agent made, to be looked at: with their scripts, but without any of the user's rights."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, RedirectResponse

from deerflow.files.content import media_type
from deerflow.files.pages import PreviewService
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime, CurrentSettings
from deerflow_app.gateway.http.answers import RequestBody
from deerflow_app.gateway.http.files import FILE_PATH, file_response, raw_path_after, with_charset

router = APIRouter(tags=["preview"])


async def preview_service(runtime: CurrentRuntime, settings: CurrentSettings) -> PreviewService:
    return PreviewService(runtime.paths, ThreadRepository(runtime.database), settings.auth_secret)


CurrentPreviews = Annotated[PreviewService, Depends(preview_service)]

_PATH = "/preview/{token}/" + FILE_PATH

_PERMISSIONS = "allow-scripts allow-forms allow-modals allow-downloads"
_SANDBOX = f"sandbox {_PERMISSIONS}"
_POLICY = (
    f"{_SANDBOX}; default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'none'"
)
_NETWORK_POLICY = (
    f"{_SANDBOX} allow-popups; default-src 'self' https: wss: 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action https:"
)
_FRAME = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Preview</title>
<style>html,body,iframe{{margin:0;width:100%;height:100%;border:0;display:block}}</style>
<iframe sandbox="{permissions}" src="?framed" title="Preview"></iframe>"""
"""What a window or tab of its own gets: a page of the agent alone in it could lead its reader elsewhere, with what it knows."""
_HEADERS = {
    "cache-control": "private, no-cache",
    "referrer-policy": "no-referrer",
    # The page has no origin, so its own scripts, fonts and data come from another site in the eyes of the browser.
    # They are for whoever knows the address, and no cookie is ever read here.
    "cross-origin-resource-policy": "cross-origin",
    "access-control-allow-origin": "*",
    "cross-origin-opener-policy": "unsafe-none",
    "x-robots-tag": "noindex",
    "vary": "sec-fetch-dest",
}


class PreviewRequest(RequestBody):
    path: str = Field(
        max_length=4096,
        description="A page, or a directory with an `index.html`.",
        examples=["/mnt/user-data/outputs/site/index.html"],
    )
    allow_network: bool = Field(
        default=False, description="Let the page load from other servers, and so tell them what it holds."
    )


class PreviewAnswer(BaseModel):
    url: str = Field(description="On this server. Whoever has it sees the page and its directory until it expires.")
    expires_at: datetime


@router.post("/api/threads/{thread_id}/preview", summary="Get an address to look at a site")
async def create_preview(
    thread_id: str, body: PreviewRequest, principal: CurrentPrincipal, previews: CurrentPreviews
) -> PreviewAnswer:
    preview = await previews.create(principal, thread_id, body.path, network=body.allow_network)
    return PreviewAnswer(url=preview.path, expires_at=datetime.fromtimestamp(preview.expires_at, UTC))


@router.get(_PATH, summary="A file of a site", response_class=Response)
@router.head(_PATH, include_in_schema=False)
async def read_preview(token: str, path: str, request: Request, previews: CurrentPreviews) -> Response:
    """Needs no session: the address is the permission. 404 if it is forged or expired."""
    file = await previews.open(token, raw_path_after(request, f"/preview/{token}/", path))
    headers = {**_HEADERS, "content-security-policy": _NETWORK_POLICY if file.network else _POLICY}
    if file.content is None:
        # Relative: what stands before us may serve us under another path. Not "x/", which "a:b/" would make a scheme.
        last = request.url.path.rsplit("/", 1)[-1]
        return RedirectResponse(f"./{last}/", 307, headers=headers)
    if request.headers.get("sec-fetch-dest") == "document":
        file.content.close()
        permissions = f"{_PERMISSIONS} allow-popups" if file.network else _PERMISSIONS
        places = "'self' https:" if file.network else "'self'"
        headers |= {
            "cache-control": "no-store",
            "content-security-policy": f"default-src 'none'; style-src 'unsafe-inline'; frame-src {places}; "
            "frame-ancestors 'none'",
        }
        return HTMLResponse(_FRAME.format(permissions=permissions), headers=headers)
    kind = with_charset(media_type(file.content.name, file.content.head), file.content.head)
    return file_response(request, file.content, media_type=kind, headers=headers)
