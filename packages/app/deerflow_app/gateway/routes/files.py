"""Files of a thread: those that the agent made, what it keeps of the web, and sites to be looked at."""

from __future__ import annotations

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote, quote_from_bytes

from fastapi import Depends, Header, Request, Response
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, StreamingResponse

from deerflow.errors import RequestError, TooLargeError
from deerflow.features.reports import Format
from deerflow.files.artifacts import MAX_EDIT_BYTES, ArtifactService
from deerflow.files.content import BINARY, FileContent, media_type
from deerflow.files.pages import PageService
from deerflow.files.previews import Preview, PreviewService
from deerflow.identity import Principal
from deerflow.sandbox.files import shown_path
from deerflow.sandbox.interface import Entry
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.http.errors import described
from deerflow_app.gateway.http.files import FILE_PATH, content_disposition, file_response, raw_path_after, with_charset
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, CurrentSettings, RequestBody

router = Router(tags=["artifacts"])
page_routes = Router(tags=["pages"])
preview_routes = Router(tags=["preview"])


async def artifact_service(runtime: CurrentRuntime) -> ArtifactService:
    return ArtifactService(runtime.paths, ThreadRepository(runtime.database), runtime.agent_provider.harness.converters)


CurrentArtifacts = Annotated[ArtifactService, Depends(artifact_service)]

_PATH = "/api/threads/{thread_id}/artifacts/" + FILE_PATH

_SCRIPTS = {"text/javascript", "text/css"}
"""Sent as plain text, or a page of ours could be made to load them as its own."""
_ACTIVE = {"text/html", "text/xml", "application/xhtml+xml", "image/svg+xml"}
_SHOWN = ("text/", "image/", "audio/", "video/", "application/pdf", "application/json")
_POLICY = "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; sandbox"
_HEADERS = {
    "cache-control": "private, no-cache",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "headers": {"ETag": {"schema": {"type": "string"}}},
    },
    206: {"description": "The part that `Range` asked for."},
    304: {"description": "The client has it already."},
    **described({416: "The file has no such part."}),
}


class PreconditionRequiredError(RequestError):
    status = 428
    code = "precondition_required"


class Artifact(BaseModel):
    path: str = Field(description="As the agent sees it.", examples=["/mnt/user-data/outputs/report.md"])
    filename: str
    size: int = Field(description="Bytes.")
    modified: datetime
    mime_type: str
    artifact_url: str


class ArtifactList(BaseModel):
    artifacts: list[Artifact]
    truncated: bool = Field(description="There are more than are listed.")


class EditedArtifact(BaseModel):
    path: str
    size: int
    modified: datetime
    etag: str = Field(description="To send as `If-Match` with the next edit.")
    sha256: str = Field(description="Of what it holds now, for `expected_sha256`.")


class ArtifactEdit(BaseModel):
    content: str
    expected_sha256: str = Field(pattern="^[0-9a-fA-F]{64}$", description="Of the file as it was read.")


class ArtifactVersion(BaseModel):
    version: int = Field(description="To read it as `?version=`.")
    run_id: str | None = Field(description="The run that left the file like this; null: a person, or before all runs.")
    created_at: datetime
    size: int = Field(description="Bytes.")


_EDIT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/plain": {"schema": {"type": "string", "maxLength": MAX_EDIT_BYTES}},
            "application/json": {"schema": ArtifactEdit.model_json_schema()},
        },
    }
}


@router.get("/api/threads/{thread_id}/artifacts", summary="List what the agent delivered")
async def list_artifacts(thread_id: str, principal: CurrentPrincipal, artifacts: CurrentArtifacts) -> ArtifactList:
    """All files in `/mnt/user-data/outputs`, by path."""
    listing = await artifacts.list(principal, thread_id)
    return ArtifactList(artifacts=[_artifact(thread_id, entry) for entry in listing.files], truncated=listing.truncated)


@router.get(
    "/api/threads/{thread_id}/artifacts.zip",
    summary="Download everything delivered",
    response_class=Response,
    responses={200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def download_all(thread_id: str, principal: CurrentPrincipal, artifacts: CurrentArtifacts) -> Response:
    pieces = await artifacts.archive(principal, thread_id)
    headers = {**_HEADERS, "content-disposition": content_disposition("attachment", f"{thread_id}.zip")}
    return StreamingResponse(pieces, media_type="application/zip", headers=headers)


@router.get(
    "/api/threads/{thread_id}/artifacts/versions",
    summary="List the versions of a delivered file",
    response_model=list[ArtifactVersion],
)
async def list_versions(thread_id: str, path: str, principal: CurrentPrincipal, artifacts: CurrentArtifacts) -> Any:
    """The newest first. One is kept at the end of each run that changed the file, and for each edit; not of large files."""
    return await artifacts.versions(principal, thread_id, path)


@router.get(
    _PATH,
    summary="Read a file",
    response_class=Response,
    responses=_FILE,
)
@router.head(_PATH, include_in_schema=False)
async def read_artifact(
    thread_id: str,
    path: str,
    request: Request,
    principal: CurrentPrincipal,
    artifacts: CurrentArtifacts,
    download: bool = False,
    version: int | None = None,
) -> Response:
    """`path` is as the agent sees it: `mnt/user-data/outputs/…`; `….skill/SKILL.md` reads from that archive.
    `version` reads what the file held earlier.

    Pages and other files that could run scripts always come as a download; see previews for how to look at a site.
    """
    path = raw_path_after(request, f"/threads/{thread_id}/artifacts/", path)
    if version is None:
        content = await artifacts.open(principal, thread_id, path)
    else:
        content = await artifacts.open_version(principal, thread_id, path, version)
    kind, known = await _named(principal, artifacts, content)
    headers = _HEADERS | ({"cache-control": "private, max-age=300"} if ".skill/" in path else {})
    attached = download or kind in _ACTIVE or not kind.startswith(_SHOWN)
    headers["content-disposition"] = content_disposition("attachment" if attached else "inline", content.name)
    if kind != "application/pdf":
        # Browsers show no PDF in a sandbox; their viewers run no script of the site.
        headers["content-security-policy"] = _POLICY
    shown = with_charset("text/plain" if kind in _SCRIPTS else kind, content.head, known)
    return file_response(request, content, media_type=shown, headers=headers)


class ReportRequest(RequestBody):
    path: str = Field(max_length=4096, description="A Markdown file.", examples=["/mnt/user-data/outputs/report.md"])
    format: Format


@router.post(
    "/api/threads/{thread_id}/reports",
    summary="Save a Markdown file as PDF or Word",
    response_class=Response,
    responses={
        200: {
            "description": "The document. `X-Problems` names what is missing in it: a list in JSON, percent-encoded.",
            "content": {BINARY: {"schema": {"type": "string", "format": "binary"}}},
        },
        **described({409: "The skill that makes it is off.", 503: "The sandbox cannot make it; says what is missing."}),
    },
)
async def make_report(
    thread_id: str, body: ReportRequest, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    """Made in the thread's sandbox, by the scripts of the skills `pdf` and `report-writing`. It is kept nowhere."""
    report = await runtime.reports.make(principal, thread_id, body.path, body.format)
    headers = _HEADERS | {"content-disposition": content_disposition("attachment", report.filename)}
    if report.problems:
        headers["x-problems"] = quote(json.dumps(report.problems, ensure_ascii=False))
    return Response(report.data, media_type=media_type(report.filename), headers=headers)


async def _named(principal: Principal, artifacts: ArtifactService, content: FileContent) -> tuple[str, str | None]:
    """Return the media type and the encoding. A text whose name says nothing is one in whatever encoding."""
    kind = media_type(content.name, content.head)
    if not kind.startswith("text/") and (kind != BINARY or not content.head):
        return kind, None
    known = await artifacts.charset(principal, content)
    return ("text/plain" if kind == BINARY and known else kind), known


@router.put(
    _PATH,
    summary="Edit a text",
    openapi_extra=_EDIT,
    responses=described(
        {
            409: "It was changed meanwhile, by `expected_sha256`.",
            412: "It was changed meanwhile, by `If-Match`.",
            428: "`If-Match` is missing.",
            507: "The disk is full.",
        }
    ),
)
async def edit_artifact(
    thread_id: str,
    path: str,
    request: Request,
    response: Response,
    principal: CurrentPrincipal,
    artifacts: CurrentArtifacts,
    if_match: Annotated[str | None, Header(description="The `ETag` of the text that was edited; `*` for any.")] = None,
) -> EditedArtifact:
    """Replaces an existing file with the body, in one step. Without `If-Match` the body is JSON: `{content, expected_sha256}`."""
    data, etag, expected = await _text(request), (if_match or "*").strip(), None
    if not if_match:
        data, expected = _edit(data)
    path = raw_path_after(request, f"/threads/{thread_id}/artifacts/", path)
    content = await artifacts.write(principal, thread_id, path, data, etag=etag, sha256=expected)
    content.close()
    response.headers["etag"] = content.etag
    return EditedArtifact(
        path="/" + shown_path(path).lstrip("/"),
        size=content.size,
        modified=_moment(content),
        etag=content.etag,
        sha256=await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest()),
    )


def _edit(body: bytes) -> tuple[bytes, str]:
    try:
        edit = ArtifactEdit.model_validate_json(body)
    except ValidationError:
        raise PreconditionRequiredError(
            "Send the ETag of the text you edited as If-Match, or its SHA-256 as expected_sha256 beside content, in JSON."
        ) from None
    return edit.content.encode("utf-8", "surrogatepass"), edit.expected_sha256


async def _text(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_EDIT_BYTES:
            most = MAX_EDIT_BYTES >> 20
            raise TooLargeError(f"A text may have {most} MB.", reason="text_too_large", megabytes=most)
    return bytes(body)


def _artifact(thread_id: str, entry: Entry) -> Artifact:
    shown = shown_path(entry.path)
    raw = entry.path.encode("utf-8", "surrogateescape")
    return Artifact(
        path=shown,
        filename=shown.rsplit("/", 1)[-1],
        size=entry.size,
        modified=datetime.fromtimestamp(entry.modified, UTC),
        mime_type=media_type(entry.path),
        artifact_url=f"/api/threads/{thread_id}/artifacts{quote_from_bytes(raw)}",
    )


def _moment(content: FileContent) -> datetime:
    return datetime.fromtimestamp(content.modified, UTC)


# pages: what a thread keeps of the web ---------------------------------------------------------------------------------


async def page_service(runtime: CurrentRuntime) -> PageService:
    return PageService(runtime.paths, ThreadRepository(runtime.database), runtime.database)


CurrentPages = Annotated[PageService, Depends(page_service)]


class ReadPage(BaseModel):
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


@page_routes.get(
    "/api/threads/{thread_id}/pages", summary="List the web pages that were read", response_model=list[ReadPage]
)
async def list_pages(thread_id: str, principal: CurrentPrincipal, pages: CurrentPages) -> Any:
    """The newest first, also those that subagents read. Each can be read as a file, as it was then."""
    return await pages.list(principal, thread_id)


@page_routes.post("/api/threads/{thread_id}/pages/pictures", summary="Load a picture of the web")
async def load_picture(
    thread_id: str, body: PictureRequest, principal: CurrentPrincipal, pages: CurrentPages, runtime: CurrentRuntime
) -> KeptPicture:
    """The server loads it and keeps it in the thread, so that no browser calls a foreign server."""
    config = await runtime.config_source.acurrent()
    return KeptPicture(path=await pages.picture(principal, thread_id, body.url, config))


# previews: sites that the agent made, to be looked at with their scripts, but without any of the user's rights ----------


async def preview_service(runtime: CurrentRuntime, settings: CurrentSettings) -> PreviewService:
    return PreviewService(runtime.paths, ThreadRepository(runtime.database), settings.auth_secret)


CurrentPreviews = Annotated[PreviewService, Depends(preview_service)]

_SITE_PATH = "/preview/{token}/" + FILE_PATH

_PERMISSIONS = "allow-scripts allow-forms allow-modals allow-downloads"
_SANDBOX = f"sandbox {_PERMISSIONS}"
_SITE_POLICY = (
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
_SITE_HEADERS = {
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
    url: str = Field(
        validation_alias="path",
        description="On this server. Whoever has it sees the page and its directory until it expires.",
    )
    expires_at: datetime


@preview_routes.post(
    "/api/threads/{thread_id}/preview",
    summary="Get an address to look at a site",
    response_model=PreviewAnswer,
)
async def create_preview(
    thread_id: str, body: PreviewRequest, principal: CurrentPrincipal, previews: CurrentPreviews
) -> Preview:
    return await previews.create(principal, thread_id, body.path, network=body.allow_network)


@preview_routes.get(_SITE_PATH, summary="A file of a site", response_class=Response)
@preview_routes.head(_SITE_PATH, include_in_schema=False)
async def read_preview(token: str, path: str, request: Request, previews: CurrentPreviews) -> Response:
    """Needs no session: the address is the permission. 404 if it is forged or expired."""
    file = await previews.open(token, raw_path_after(request, f"/preview/{token}/", path))
    headers = {**_SITE_HEADERS, "content-security-policy": _NETWORK_POLICY if file.network else _SITE_POLICY}
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
