"""What a thread's person sees, takes and corrects of the files that the agent made, now and as they were."""

from __future__ import annotations

import asyncio
import builtins
import fcntl
import logging
import mimetypes
import os
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import closing, contextmanager

from deerflow.config.paths import Paths
from deerflow.context import RunContext
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError, TooLargeError
from deerflow.files.archive import pieces_off_loop, read_member, zip_files
from deerflow.files.content import FileContent, OpenFile
from deerflow.files.directories import Listing, file_requests, regular_files, thread_files, virtual_path
from deerflow.files.versions import RunChanges, Version, versions_of
from deerflow.identity import Principal
from deerflow.sandbox.files import SandboxFiles, shown_path
from deerflow.sandbox.interface import OUTPUTS
from deerflow.storage.threads import ThreadRepository

logger = logging.getLogger(__name__)

MAX_EDIT_BYTES = 5 << 20

_SKILL = ".skill/"

PIECE = 8 << 20
"""Bytes read at a time: artifacts may be larger than memory."""


class ChangedError(RequestError):
    """The file is not what the caller believes it to be."""

    status = 412
    code = "precondition_failed"


class ArtifactService:
    """Reads and edits by virtual path. No link made in the sandbox leads anywhere but where the sandbox itself can go."""

    def __init__(self, paths: Paths, threads: ThreadRepository) -> None:
        self._paths = paths
        self._threads = threads

    async def list(self, principal: Principal, thread_id: str) -> Listing:
        """What lies in the outputs; directories such as ``node_modules`` are not entered. Raises NotFoundError."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(self._list, thread_id, principal.user_id)

    async def open(self, principal: Principal, thread_id: str, path: str) -> FileContent:
        """A file, or a member of an archive: ``.../name.skill/SKILL.md``. The caller closes it.

        Raises:
            RequestError: the path does not start with ``/mnt/user-data``, or leads to no regular file.
            ForbiddenError, NotFoundError, TooLargeError: as they say.
        """
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(self._open, thread_id, principal.user_id, virtual_path(path))

    async def write(self, principal: Principal, thread_id: str, path: str, data: bytes, *, etag: str) -> FileContent:
        """Replace an existing text in one step, if it still is what ``etag`` stands for; ``*`` for whatever it is.

        Returns the file as it is now; the caller closes it.

        Raises:
            ChangedError: it was changed meanwhile.
            InvalidRequestError: ``data`` is not UTF-8.
            TooLargeError, DiskFullError, and as ``open``.
        """
        await self._threads.get(principal, thread_id)
        if len(data) > MAX_EDIT_BYTES:
            raise TooLargeError(f"A text may have {MAX_EDIT_BYTES >> 20} MB.")
        try:
            data.decode()
        except UnicodeDecodeError:
            raise InvalidRequestError("Only text (UTF-8) can be edited.") from None
        return await asyncio.to_thread(self._write, thread_id, principal.user_id, virtual_path(path), data, etag)

    async def archive(self, principal: Principal, thread_id: str) -> AsyncGenerator[bytes, None]:
        """All outputs as a ZIP, in pieces; links are left out. Raises NotFoundError before the first piece."""
        await self._threads.get(principal, thread_id)
        return pieces_off_loop(self._zip(thread_id, principal.user_id))

    async def changes(self, principal: Principal, thread_id: str) -> builtins.list[RunChanges]:
        """What each run created, modified and deleted, the newest run first. Raises NotFoundError."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(versions_of(self._paths, thread_id, principal.user_id).changes)

    async def versions(self, principal: Principal, thread_id: str, path: str) -> builtins.list[Version]:
        """What is kept of a file, the newest first. Raises NotFoundError, or RequestError for a path of no thread."""
        await self._threads.get(principal, thread_id)
        kept = versions_of(self._paths, thread_id, principal.user_id)
        return await asyncio.to_thread(kept.versions, virtual_path(path))

    async def open_version(self, principal: Principal, thread_id: str, path: str, version: int) -> FileContent:
        """A version of a file; the caller closes it. Raises as ``versions``, and if it is not kept any more."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(self._open_version, thread_id, principal.user_id, virtual_path(path), version)

    # blocking -------------------------------------------------------------------------------------------------------

    def _list(self, thread_id: str, user_id: str) -> Listing:
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(OUTPUTS):
            return regular_files(files, OUTPUTS)

    def _zip(self, thread_id: str, user_id: str) -> Generator[bytes, None, None]:
        with thread_files(self._paths, thread_id, user_id) as files:
            with file_requests(OUTPUTS):
                paths = [entry.path for entry in regular_files(files, OUTPUTS).files]
            yield from zip_files(files, OUTPUTS, paths)

    def _open(self, thread_id: str, user_id: str, path: str) -> FileContent:
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(path):
            archive, _, member = path.partition(_SKILL)
            if member and (entry := files.stat(archive + _SKILL[:-1])) is not None and entry.kind == "file":
                return read_member(files.open_fd(archive + _SKILL[:-1]), member)
            return OpenFile(files.open_fd(path), path.rsplit("/", 1)[-1])

    def _open_version(self, thread_id: str, user_id: str, path: str, version: int) -> FileContent:
        try:
            fd = versions_of(self._paths, thread_id, user_id).open(path, version)
        except FileNotFoundError:
            raise NotFoundError(f"Version {version} of {shown_path(path)} is not kept (any more).") from None
        return OpenFile(fd, path.rsplit("/", 1)[-1])

    def _write(self, thread_id: str, user_id: str, path: str, data: bytes, etag: str) -> FileContent:
        name = path.rsplit("/", 1)[-1]
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(path):
            with _held(files.open_fd(path)), closing(OpenFile(files.open_fd(path), name)) as now:
                # Opened anew while held: whoever held it before us has put another file in its place.
                if etag not in ("*", now.etag):
                    raise ChangedError("The file was changed meanwhile. Load it again, then apply your changes.")
                self._keep_version(thread_id, user_id, files, path)
                files.write(path, data)
            self._keep_version(thread_id, user_id, files, path)
            return OpenFile(files.open_fd(path), name)

    def _keep_version(self, thread_id: str, user_id: str, files: SandboxFiles, path: str) -> None:
        try:
            versions_of(self._paths, thread_id, user_id).record_edit(files, files.real_path(path))
        except Exception:
            logger.warning("No version is kept of an edit in thread %s.", thread_id, exc_info=True)


@contextmanager
def _held(fd: int) -> Iterator[None]:
    """Keep other editors out, those in other processes too. The descriptor is closed at the end."""
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError("The file is being changed just now. Try again.") from None
        yield
    finally:
        os.close(fd)


async def read_artifact(context: RunContext, path: str) -> AsyncGenerator[bytes, None]:
    """A file of the thread piece by piece, by its virtual path; a leading slash may be missing.

    Raises:
        SandboxFileNotFoundError, SandboxPermissionError, SandboxFileError: no such file, outside, not a file.
    """
    sandbox, virtual = await context.sandbox(), "/" + path.lstrip("/")
    offset, size = 0, 1
    while offset < size:
        data, size = await sandbox.read(virtual, offset=offset, limit=PIECE)
        yield data
        offset += len(data) or PIECE


async def media_type(path: str) -> str:
    """The MIME type that the name tells."""
    mime, _ = await asyncio.to_thread(mimetypes.guess_type, path)  # its first call reads the system's tables
    return mime or "application/octet-stream"


async def list_artifacts(context: RunContext, presented: Sequence[str]) -> list[str]:
    """Virtual paths of what was presented, then of everything else in the outputs directory."""
    entries, _ = await (await context.sandbox()).list(OUTPUTS, depth=8)
    return list(dict.fromkeys([*presented, *(entry.path for entry in entries if entry.kind == "file")]))
