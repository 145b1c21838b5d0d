"""Files that a person sends to a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NotRequired, Protocol
from urllib.parse import quote

from typing_extensions import TypedDict

from deerflow.config.paths import Paths
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError, TooLargeError
from deerflow.files.content import file_requests
from deerflow.identity import Principal, check_id
from deerflow.storage.provenance import Source
from deerflow.storage.threads import ThreadRepository
from deerflow.uploads import PathTraversalError, Staging, Upload, delete_upload, list_uploads, save_uploads

_BLOCK = 1 << 20
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Of one request; sizes in bytes."""

    files: int = 20
    file_bytes: int = 100 * _MEGABYTE
    total_bytes: int = 500 * _MEGABYTE


class IncomingFile(Protocol):
    """A file as it comes in. ``chunks`` has to be read to its end before the next file is asked for."""

    filename: str

    def chunks(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class SavedUpload:
    """``original``: the name that was asked for; the upload's own differs if that was taken."""

    upload: Upload
    original: str


class UploadEntry(TypedDict):
    """``size``: bytes. ``original_filename``: the name that was asked for, if it was taken."""

    filename: str
    size: int
    path: str
    virtual_path: str
    artifact_url: str
    original_filename: NotRequired[str]


class DeletedUpload(TypedDict):
    success: bool
    message: str


class UploadService:
    """Takes, lists and deletes uploads."""

    def __init__(self, paths: Paths, threads: ThreadRepository, limits: UploadLimits = UploadLimits()) -> None:
        self._paths = paths
        self._threads = threads
        self.limits = limits

    async def save(self, principal: Principal, thread_id: str, files: AsyncIterator[IncomingFile]) -> list[SavedUpload]:
        """Write files to disk as they come in. Either all are there afterwards, or none; nothing is overwritten.

        A thread that does not exist yet is made, since files may come before the first message.

        Raises:
            NotFoundError: the thread is another person's, or was deleted meanwhile.
            InvalidRequestError: no file, an unusable name, or an id that may not be one.
            TooLargeError: a limit is passed; what came in until then is removed.
            DiskFullError: likewise.
        """
        await self._own_thread(principal, thread_id)
        try:
            published, names = await self._save(thread_id, principal.user_id, files)
        except Exception:
            await self._check_not_deleted(principal, thread_id)
            raise
        await self._check_not_deleted(principal, thread_id)
        return [SavedUpload(upload, name) for upload, name in zip(published, names, strict=True)]

    async def _save(
        self, thread_id: str, user_id: str, files: AsyncIterator[IncomingFile]
    ) -> tuple[Sequence[Upload], Sequence[str]]:
        staging = await asyncio.to_thread(self._prepare, thread_id, user_id)
        try:
            names = await self._receive(staging, files)
            await self._threads.add_sources(thread_id, [Source("upload", name) for name in names])
            with file_requests(thread_id):
                return await asyncio.to_thread(staging.publish), names
        finally:
            # In a thread of its own, since a cancelled request may not wait for it.
            await asyncio.shield(asyncio.to_thread(staging.discard))

    async def _check_not_deleted(self, principal: Principal, thread_id: str) -> None:
        """Remove the directory that was made anew for a thread which was deleted meanwhile. Raises NotFoundError."""
        try:
            await self._threads.get(principal, thread_id, to_change=True)
        except NotFoundError:
            directory = self._paths.thread_dir(thread_id, principal.user_id)
            await asyncio.to_thread(self._paths.remove, directory)
            raise NotFoundError("The thread was deleted meanwhile.", reason="thread_gone") from None

    async def limits_for(self, principal: Principal, thread_id: str) -> UploadLimits:
        """Return the limits of uploads to a thread, which may not be there yet. Raises NotFoundError: it is someone else's."""
        await self._threads.check_not_foreign(principal, thread_id)
        return self.limits

    async def list(self, principal: Principal, thread_id: str) -> list[Upload]:
        """Raises NotFoundError."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(list_uploads, self._paths.uploads(thread_id, principal.user_id))

    async def delete(self, principal: Principal, thread_id: str, filename: str) -> DeletedUpload:
        """Raises NotFoundError, or RequestError for a name that leads elsewhere."""
        await self._threads.get(principal, thread_id, to_change=True)
        uploads = self._paths.uploads(thread_id, principal.user_id)
        try:
            await asyncio.to_thread(delete_upload, uploads, filename)
        except FileNotFoundError:
            raise NotFoundError(f"There is no upload {filename!r}.") from None
        except (PathTraversalError, IsADirectoryError, PermissionError, ValueError):
            raise RequestError("Invalid path", code="invalid_path") from None
        return _deleted(filename)

    async def _own_thread(self, principal: Principal, thread_id: str) -> None:
        try:
            check_id(thread_id, "thread id")
        except ValueError as error:
            raise InvalidRequestError(str(error)) from None
        try:
            await self._threads.get(principal, thread_id, to_change=True)
        except NotFoundError:
            try:
                await self._threads.create(principal, thread_id)
            except ConflictError:
                raise NotFoundError(f"There is no thread {thread_id}.", reason="thread_gone") from None

    def _prepare(self, thread_id: str, user_id: str) -> Staging:
        with file_requests(thread_id):
            self._paths.ensure_thread_dirs(thread_id, user_id)
            return Staging(self._paths.uploads(thread_id, user_id))

    async def _receive(self, staging: Staging, files: AsyncIterator[IncomingFile]) -> list[str]:
        names: list[str] = []
        total = 0
        async for file in files:
            if len(names) == self.limits.files:
                count = self.limits.files
                raise TooLargeError(f"Send at most {count} files at once.", reason="upload_too_many", count=count)
            try:
                with file_requests(file.filename):
                    await asyncio.to_thread(staging.begin, file.filename)
            except ValueError as error:
                raise InvalidRequestError(str(error)) from None
            names.append(file.filename.rsplit("/", 1)[-1])
            total += await self._receive_one(
                staging, file, min(self.limits.file_bytes, self.limits.total_bytes - total)
            )
        if not names:
            raise InvalidRequestError("Send at least one file in the field 'files'.", reason="upload_empty")
        return names

    async def _receive_one(self, staging: Staging, file: IncomingFile, room: int) -> int:
        """Write one file and return its size. Blocks of a sensible size spare the disk and the threads."""
        size, block = 0, bytearray()
        async for chunk in file.chunks():
            size += len(chunk)
            if size > room:
                one, all_ = self.limits.file_bytes / _MEGABYTE, self.limits.total_bytes / _MEGABYTE
                raise TooLargeError(
                    f"{file.filename} is too large: a file may have {one:g} MB, all files of one upload together {all_:g} MB.",
                    reason="file_too_large",
                    name=file.filename,
                    megabytes=one,
                    total=all_,
                )
            block += chunk
            if len(block) >= _BLOCK:
                await self._write(staging, file.filename, block)
                block = bytearray()
        if block:
            await self._write(staging, file.filename, block)
        return size

    async def _write(self, staging: Staging, name: str, block: bytearray) -> None:
        with file_requests(name):
            await asyncio.to_thread(staging.write, bytes(block))


class LocalUploads:
    """Uploads of one person's threads, from files of this machine."""

    def __init__(self, paths: Paths, threads: ThreadRepository, principal: Principal) -> None:
        self._paths = paths
        self._threads = threads
        self._user = principal.user_id

    async def upload(self, thread_id: str, files: Sequence[str | Path]) -> list[Upload]:
        """Copy files into the thread's uploads: all, or none.

        Raises:
            FileNotFoundError: a file does not exist.
            ValueError: a directory, an unusable name or an invalid thread id.
        """
        sources = [Path(file).expanduser() for file in files]
        check_id(thread_id, "thread id")
        await asyncio.to_thread(_check_files, sources)
        await self._threads.add_sources(thread_id, [Source("upload", source.name) for source in sources])
        return await asyncio.to_thread(self._copy, thread_id, sources)

    def _copy(self, thread_id: str, sources: Sequence[Path]) -> list[Upload]:
        self._paths.ensure_thread_dirs(thread_id, self._user)
        return save_uploads(_opened(sources), self._uploads(thread_id))

    async def list(self, thread_id: str) -> list[Upload]:
        return await asyncio.to_thread(list_uploads, self._uploads(thread_id))

    async def delete(self, thread_id: str, filename: str) -> DeletedUpload:
        """Raises FileNotFoundError, or PathTraversalError for a name that leads elsewhere."""
        await asyncio.to_thread(delete_upload, self._uploads(thread_id), filename)
        return _deleted(filename)

    def _uploads(self, thread_id: str) -> Path:
        return self._paths.uploads(check_id(thread_id, "thread id"), self._user)


def _deleted(filename: str) -> DeletedUpload:
    return {"success": True, "message": f"Deleted {filename}"}


def _opened(sources: Sequence[Path]) -> Iterator[tuple[str, BinaryIO]]:
    for source in sources:
        with source.open("rb") as stream:
            yield source.name, stream


def _check_files(sources: Sequence[Path]) -> None:
    """Raises FileNotFoundError or ValueError for what is no file."""
    for source in sources:
        if not source.exists():
            raise FileNotFoundError(f"No such file: {source}")
        if not source.is_file():
            raise ValueError(f"Not a regular file: {source}")


def upload_entry(thread_id: str, upload: Upload, original: str | None = None) -> UploadEntry:
    """Return an upload as HTTP and client show it."""
    url = f"/api/threads/{thread_id}/artifacts/mnt/user-data/uploads/{quote(upload.filename)}"
    entry: UploadEntry = {
        "filename": upload.filename,
        "size": upload.size,
        "path": upload.path,
        "virtual_path": upload.path,
        "artifact_url": url,
    }
    if original and original != upload.filename:
        entry["original_filename"] = original
    return entry
