"""Files that the agent made."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote_from_bytes

from fastapi import APIRouter, Depends, Header, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from deerflow.errors import RequestError, TooLargeError
from deerflow.files.artifacts import MAX_EDIT_BYTES, ArtifactService
from deerflow.files.content import FileContent, media_type
from deerflow.files.versions import RunChanges
from deerflow.sandbox.files import shown_path
from deerflow.sandbox.interface import Entry
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime
from deerflow_app.gateway.http.errors import ErrorBody
from deerflow_app.gateway.http.files import FILE_PATH, content_disposition, file_response, raw_path_after, with_charset

router = APIRouter(tags=["artifacts"])


async def artifact_service(runtime: CurrentRuntime) -> ArtifactService:
    return ArtifactService(runtime.paths, ThreadRepository(runtime.database))


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
    416: {"model": ErrorBody, "description": "The file has no such part."},
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


class ArtifactVersion(BaseModel):
    version: int = Field(description="To read it as `?version=`.")
    run_id: str | None = Field(description="The run that left the file like this; null: a person, or before all runs.")
    created_at: datetime
    size: int = Field(description="Bytes.")


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


@router.get("/api/threads/{thread_id}/changes", summary="What each run did to files")
async def list_changes(thread_id: str, principal: CurrentPrincipal, artifacts: CurrentArtifacts) -> list[RunChanges]:
    """Outputs and workspace, the newest run first; runs that changed nothing are left out."""
    return await artifacts.changes(principal, thread_id)


@router.get("/api/threads/{thread_id}/artifacts/versions", summary="List the versions of a delivered file")
async def list_versions(
    thread_id: str, path: str, principal: CurrentPrincipal, artifacts: CurrentArtifacts
) -> list[ArtifactVersion]:
    """The newest first. One is kept at the end of each run that changed the file, and for each edit; not of large files."""
    kept = await artifacts.versions(principal, thread_id, path)
    return [ArtifactVersion.model_validate(version, from_attributes=True) for version in kept]


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
    kind = media_type(content.name, content.head)
    headers = _HEADERS | ({"cache-control": "private, max-age=300"} if ".skill/" in path else {})
    attached = download or kind in _ACTIVE or not kind.startswith(_SHOWN)
    headers["content-disposition"] = content_disposition("attachment" if attached else "inline", content.name)
    if kind != "application/pdf":
        # Browsers show no PDF in a sandbox; their viewers run no script of the site.
        headers["content-security-policy"] = _POLICY
    shown = with_charset("text/plain" if kind in _SCRIPTS else kind, content.head)
    return file_response(request, content, media_type=shown, headers=headers)


@router.put(
    _PATH,
    summary="Edit a text",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"text/plain": {"schema": {"type": "string", "maxLength": MAX_EDIT_BYTES}}},
        }
    },
    responses={
        412: {"model": ErrorBody, "description": "It was changed meanwhile."},
        428: {"model": ErrorBody, "description": "`If-Match` is missing."},
        507: {"model": ErrorBody, "description": "The disk is full."},
    },
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
    """Replaces an existing file with the body, in one step."""
    if not if_match:
        raise PreconditionRequiredError("Send the ETag of the text you edited as If-Match.")
    path = raw_path_after(request, f"/threads/{thread_id}/artifacts/", path)
    content = await artifacts.write(principal, thread_id, path, await _text(request), etag=if_match.strip())
    content.close()
    response.headers["etag"] = content.etag
    return EditedArtifact(
        path="/" + shown_path(path).lstrip("/"), size=content.size, modified=_moment(content), etag=content.etag
    )


async def _text(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_EDIT_BYTES:
            raise TooLargeError(f"A text may have {MAX_EDIT_BYTES >> 20} MB.")
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
