"""Files sent to a thread."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal
from urllib.parse import unquote

from fastapi import Depends
from pydantic import BaseModel, Field
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from deerflow.errors import InvalidRequestError, RequestError, TooLargeError
from deerflow.files.uploads import DeletedUpload, UploadLimits, UploadService, upload_entry
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.http.errors import described
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, raw_body

router = Router(tags=["uploads"])


async def upload_service(runtime: CurrentRuntime) -> UploadService:
    return UploadService(runtime.paths, ThreadRepository(runtime.database))


CurrentUploads = Annotated[UploadService, Depends(upload_service)]

_ROOM_FOR_HEADERS = 1 << 20
_LINGER_BYTES, _LINGER_SECONDS = 64 << 20, 10.0


class UploadedFile(BaseModel):
    filename: str = Field(examples=["report_1.pdf"])
    original_filename: str | None = Field(default=None, description="As it was sent, if that name was taken.")
    size: int = Field(description="Bytes.", examples=[48213])
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


class AllowedUpload(BaseModel):
    """Of one request; sizes in bytes."""

    max_files: int
    max_file_size: int
    max_total_size: int


_FORM = {
    "type": "object",
    "required": ["files"],
    "properties": {"files": {"type": "array", "items": {"type": "string", "format": "binary"}}},
}


@router.post(
    "/api/threads/{thread_id}/uploads",
    summary="Send files",
    response_model_exclude_none=True,
    openapi_extra=raw_body("multipart/form-data", _FORM),
    responses=described({507: "The disk is full."}),
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


@router.get("/api/threads/{thread_id}/uploads/limits", summary="How much can be sent at once")
async def upload_limits(thread_id: str, principal: CurrentPrincipal, uploads: CurrentUploads) -> AllowedUpload:
    """Also of a thread that is not there yet: files may come before the first message."""
    found = await uploads.limits_for(principal, thread_id)
    return AllowedUpload(max_files=found.files, max_file_size=found.file_bytes, max_total_size=found.total_bytes)


@router.delete("/api/threads/{thread_id}/uploads/{filename}", summary="Delete a file that was sent")
async def delete_upload(
    thread_id: str, filename: str, principal: CurrentPrincipal, uploads: CurrentUploads
) -> DeletedUpload:
    return await uploads.delete(principal, thread_id, filename)


def _check_announced(request: Request, limits: UploadLimits) -> None:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:18]) > limits.total_bytes + _ROOM_FOR_HEADERS:
        most = limits.total_bytes / (1 << 20)
        text = f"All files of one upload together may have {most:g} MB."
        raise TooLargeError(text, reason="upload_too_large", megabytes=most)


async def _linger(request: Request) -> None:
    """Read on for a while: a browser that is still sending sees a broken connection instead of our answer."""
    left = _LINGER_BYTES
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(_LINGER_SECONDS):
            async for chunk in request.stream():
                left -= len(chunk)
                if left < 0:
                    return


# multipart bodies: files come out of them while they come in; nothing is held but the piece that was read last ----------


MAX_PARTS = 1000
"""Parts of any kind, since those that are no files are skipped."""

_EXTENDED_NAME = re.compile(rb"filename\*=(?:utf-8|UTF-8)''([^;\s]+)")


class BodyError(RequestError):
    """The body is not what its headers say."""

    code = "invalid_body"


@dataclass
class MultipartFile:
    """One file of the body. Its chunks have to be read before the next file comes."""

    filename: str
    rest: AsyncIterator[bytes]

    def chunks(self) -> AsyncIterator[bytes]:
        return self.rest


async def multipart_files(request: Request, field_name: str) -> AsyncGenerator[MultipartFile, None]:
    """The files sent in the field ``field_name``; other parts are skipped.

    Raises:
        InvalidRequestError: the body is no form. BodyError: it is broken, or was cut.
    """
    events = _events(request, field_name)
    async for event in events:
        if isinstance(event, str):
            file = MultipartFile(event, _until_end(events))
            yield file
            async for _ in file.rest:
                # Whoever did not want it all does not get the rest as the next file.
                pass


async def _until_end(events: AsyncIterator[str | bytes | None]) -> AsyncGenerator[bytes, None]:
    async for event in events:
        if not isinstance(event, bytes):
            return
        yield event


async def _events(request: Request, field_name: str) -> AsyncGenerator[str | bytes | None, None]:
    """The name of a file, its bytes, and None at its end; again for the next one."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidRequestError("Send the files as multipart/form-data, each in a field 'files'.")
    reader = _Reader(boundary, field_name)
    try:
        async for chunk in request.stream():
            reader.feed(chunk)
            while reader.events:
                yield reader.events.popleft()
    except ClientDisconnect:
        raise BodyError("The upload was cut off.", reason="upload_cut_off") from None
    if not reader.ended:
        raise BodyError("The body ends before the form does.", reason="upload_cut_off")


class _Reader:
    """Turns the parser's callbacks into events."""

    def __init__(self, boundary: bytes, field_name: str) -> None:
        self.events: deque[str | bytes | None] = deque()
        self.ended = False
        self._field = field_name.encode()
        self._parts = 0
        self._name = self._value = b""
        self._headers: dict[bytes, bytes] = {}
        self._is_file = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begin,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._data,
                "on_part_end": self._part_end,
                "on_end": self._end,
            },
        )

    def feed(self, chunk: bytes) -> None:
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise BodyError("The form cannot be read: it is not valid multipart/form-data.") from None

    def _part_begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise BodyError(f"The form has more than {MAX_PARTS} parts.")
        self._headers, self._is_file = {}, False

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _headers_end(self) -> None:
        disposition = self._headers.get(b"content-disposition", b"")
        _, options = parse_options_header(disposition)
        name = options.get(b"filename")
        if name is None and (extended := _EXTENDED_NAME.search(disposition)):
            # Against RFC 7578, but some clients send names that are not ASCII in no other way.
            name = unquote(extended[1].decode("ascii", "replace")).encode()
        # A file input left empty sends a part without a name.
        if name and options.get(b"name") == self._field:
            self._is_file = True
            self.events.append(name.decode("utf-8", "replace"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self.events.append(bytes(data[start:end]))

    def _part_end(self) -> None:
        if self._is_file:
            self.events.append(None)

    def _end(self) -> None:
        self.ended = True
