"""Files sent to a thread."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from deerflow.errors import TooLargeError
from deerflow.files.uploads import UploadLimits, UploadService, upload_entry
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime
from deerflow_app.gateway.http.errors import ErrorBody
from deerflow_app.gateway.http.multipart import multipart_files

router = APIRouter(tags=["uploads"])


async def upload_service(runtime: CurrentRuntime) -> UploadService:
    return UploadService(runtime.paths, ThreadRepository(runtime.database))


CurrentUploads = Annotated[UploadService, Depends(upload_service)]

_ROOM_FOR_HEADERS = 1 << 20
_LINGER_BYTES, _LINGER_SECONDS = 64 << 20, 10.0


class UploadedFile(BaseModel):
    filename: str = Field(examples=["report_1.pdf"])
    original_filename: str | None = Field(default=None, description="As it was sent, if that name was taken.")
    size: str = Field(description="Bytes, as text.", examples=["48213"])
    path: str = Field(description="As the agent sees it.", examples=["/mnt/user-data/uploads/report_1.pdf"])
    virtual_path: str
    artifact_url: str
    conversion: Literal["running", "done", "failed"] | None = Field(default=None, description="Of a document to text.")
    conversion_error: str | None = None
    markdown_file: str | None = Field(default=None, description="The document's text.", examples=["report_1.pdf.md"])
    markdown_path: str | None = None
    markdown_virtual_path: str | None = None
    markdown_artifact_url: str | None = None


class ListedFile(UploadedFile):
    extension: str = Field(examples=[".pdf"])
    modified: float = Field(description="Seconds since the epoch.")


class UploadAnswer(BaseModel):
    success: bool
    files: list[UploadedFile]
    message: str


class UploadList(BaseModel):
    files: list[ListedFile]
    count: int


class Deleted(BaseModel):
    success: bool
    message: str


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {"files": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            }
        },
    }
}


@router.post(
    "/api/threads/{thread_id}/uploads",
    summary="Send files",
    response_model_exclude_none=True,
    openapi_extra=_BODY,
    responses={507: {"model": ErrorBody, "description": "The disk is full."}},
)
async def upload(
    thread_id: str, request: Request, principal: CurrentPrincipal, uploads: CurrentUploads, runtime: CurrentRuntime
) -> UploadAnswer:
    """All files or none. The thread is made if there is none of this id; nothing is overwritten."""
    try:
        _check_announced(request, uploads.limits)
        async with aclosing(multipart_files(request, "files")) as files:
            saved = await uploads.save(principal, thread_id, files)
    except TooLargeError:
        await _linger(request)
        raise
    await runtime.documents.begin(principal, thread_id, [one.upload for one in saved])
    states = await runtime.documents.states(thread_id, [one.upload for one in saved])
    entries = [
        UploadedFile(**upload_entry(thread_id, one.upload, one.original), **states.get(one.upload.filename, {}))
        for one in saved
    ]
    count = f"{len(entries)} file{'s' if len(entries) != 1 else ''}"
    return UploadAnswer(success=True, files=entries, message=f"Successfully uploaded {count}")


@router.get("/api/threads/{thread_id}/uploads/list", summary="What was sent", response_model_exclude_none=True)
async def list_uploads(
    thread_id: str, principal: CurrentPrincipal, uploads: CurrentUploads, runtime: CurrentRuntime
) -> UploadList:
    listed = await uploads.list(principal, thread_id)
    states = await runtime.documents.states(thread_id, listed)
    files = [
        ListedFile(
            **upload_entry(thread_id, one),
            **states.get(one.filename, {}),
            extension=PurePosixPath(one.filename).suffix,
            modified=one.modified,
        )
        for one in listed
    ]
    return UploadList(files=files, count=len(files))


@router.delete("/api/threads/{thread_id}/uploads/{filename}", summary="Delete a file that was sent")
async def delete_upload(thread_id: str, filename: str, principal: CurrentPrincipal, uploads: CurrentUploads) -> Deleted:
    await uploads.delete(principal, thread_id, filename)
    return Deleted(success=True, message=f"Deleted {filename}")


def _check_announced(request: Request, limits: UploadLimits) -> None:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:18]) > limits.total_bytes + _ROOM_FOR_HEADERS:
        raise TooLargeError(f"All files of one upload together may have {limits.total_bytes / (1 << 20):g} MB.")


async def _linger(request: Request) -> None:
    """Read on for a while: a browser that is still sending sees a broken connection instead of our answer."""
    left = _LINGER_BYTES
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(_LINGER_SECONDS):
            async for chunk in request.stream():
                left -= len(chunk)
                if left < 0:
                    return
