"""What a thread's person sees, takes and corrects of the files that the agent made, now and as they were, one by one or in a ZIP."""

from __future__ import annotations

import asyncio
import builtins
import fcntl
import hashlib
import logging
import mimetypes
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import MappingProxyType

from deerflow.config.paths import VIRTUAL_ROOT, Paths
from deerflow.context import RunContext
from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError, TooLargeError
from deerflow.files.content import (
    Closing,
    FileContent,
    Listing,
    MemoryFile,
    OpenFile,
    charset,
    file_requests,
    regular_files,
    thread_files,
    virtual_path,
)
from deerflow.files.versions import RunChanges, Version, versions_of
from deerflow.files.zip_stream import ZipStream
from deerflow.identity import Principal
from deerflow.sandbox.converters import Converters, UnreadableError
from deerflow.sandbox.files import SandboxFiles, shown_path
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, SandboxError, SandboxFileError
from deerflow.security.archives import READABLE, TAIL_BYTES, check_directory
from deerflow.security.encodings import binary
from deerflow.storage.threads import ThreadRepository
from deerflow.threads.transcript import TranscriptView

logger = logging.getLogger(__name__)

MAX_EDIT_BYTES = 5 << 20
MAX_MEMBER_BYTES = 16 << 20
ENCODED = 1 << 18
"""Bytes by which an encoding is guessed."""

_SKILL = ".skill/"
_CHANGED = "The file was changed meanwhile. Load it again, then apply your changes."

PIECE = 8 << 20
"""Bytes read at a time: artifacts may be larger than memory."""


class ChangedError(RequestError):
    """The file is not what the caller believes it to be."""

    status = 412
    code = "precondition_failed"


class ArtifactService:
    """Reads and edits by virtual path. No link made in the sandbox leads anywhere but where the sandbox itself can go."""

    def __init__(self, paths: Paths, threads: ThreadRepository, converters: Converters | None = None) -> None:
        """``converters``: guess the encodings of texts."""
        self._paths = paths
        self._threads = threads
        self._converters = converters

    async def charset(self, principal: Principal, content: FileContent) -> str | None:
        """Return the encoding of a text as browsers name it; None: it is none."""
        if (found := charset(content.head)) is not None or binary(content.head) or self._converters is None:
            return found
        data = await asyncio.to_thread(content.read, 0, ENCODED)
        try:
            return (await self._converters.encoding(data, principal.user_id)).label
        except (SandboxError, UnreadableError):
            return None

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

    async def write(
        self,
        principal: Principal,
        thread_id: str,
        path: str,
        data: bytes,
        *,
        etag: str = "*",
        sha256: str | None = None,
    ) -> FileContent:
        """Replace an existing text in one step, if it still is what ``etag`` stands for (``*``: whatever it is) and ``sha256`` is the
        digest of, in hexadecimal digits.

        Returns the file as it is now; the caller closes it.

        Raises:
            ChangedError, ConflictError: it was changed meanwhile, by the ``etag`` or the ``sha256``.
            InvalidRequestError: ``data`` is not UTF-8.
            TooLargeError, DiskFullError, and as ``open``.
        """
        await self._threads.get(principal, thread_id, to_change=True)
        if len(data) > MAX_EDIT_BYTES:
            most = MAX_EDIT_BYTES >> 20
            raise TooLargeError(f"A text may have {most} MB.", reason="text_too_large", megabytes=most)
        try:
            data.decode()
        except UnicodeDecodeError:
            raise InvalidRequestError("Only text (UTF-8) can be edited.", reason="text_not_utf8") from None
        return await asyncio.to_thread(
            self._write, thread_id, principal.user_id, virtual_path(path), data, etag, sha256
        )

    async def archive(self, principal: Principal, thread_id: str) -> AsyncGenerator[bytes, None]:
        """All outputs as a ZIP, in pieces; links are left out. Raises NotFoundError before the first piece."""
        await self._threads.get(principal, thread_id)
        return pieces_off_loop(zip_files(self._paths, thread_id, principal.user_id, OUTPUTS, (OUTPUTS,)))

    async def changes(self, principal: Principal, thread_id: str) -> builtins.list[RunChanges]:
        """What each run created, modified and deleted, the newest run first. Raises NotFoundError."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(versions_of(self._paths, thread_id, principal.user_id).changes)

    async def run_changes(
        self, principal: Principal, thread_id: str, run_id: str, *, with_diffs: bool = False
    ) -> RunChanges | None:
        """Return what a run did; None if that is nothing, or not kept any more. Raises NotFoundError.

        Args:
            with_diffs: of delivered texts.
        """
        found = next((each for each in await self.changes(principal, thread_id) if each.run_id == run_id), None)
        if found is None or not with_diffs:
            return found
        kept = versions_of(self._paths, thread_id, principal.user_id)
        return await asyncio.to_thread(kept.with_diffs, found)

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
            text = f"Version {version} of {shown_path(path)} is not kept (any more)."
            raise NotFoundError(text, reason="file_version_gone", version=version) from None
        return OpenFile(fd, path.rsplit("/", 1)[-1])

    def _write(
        self, thread_id: str, user_id: str, path: str, data: bytes, etag: str, sha256: str | None
    ) -> FileContent:
        name = path.rsplit("/", 1)[-1]
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(path):
            with _held(files.open_fd(path)), closing(OpenFile(files.open_fd(path), name)) as now:
                # Opened anew while held: whoever held it before us has put another file in its place.
                if etag not in ("*", now.etag):
                    raise ChangedError(_CHANGED)
                if sha256 is not None and sha256.lower() != _digest(now):
                    raise ConflictError(_CHANGED, code="file_changed")
                self._keep_version(thread_id, user_id, files, path)
                files.write(path, data)
            self._keep_version(thread_id, user_id, files, path)
            return OpenFile(files.open_fd(path), name)

    def _keep_version(self, thread_id: str, user_id: str, files: SandboxFiles, path: str) -> None:
        try:
            versions_of(self._paths, thread_id, user_id).record_edit(files, files.real_path(path))
        except Exception:
            logger.warning("No version is kept of an edit in thread %s.", thread_id, exc_info=True)


def _digest(content: FileContent) -> str:
    digest = hashlib.sha256()
    for offset in range(0, content.size, PIECE):
        digest.update(content.read(offset, PIECE))
    return digest.hexdigest()


@contextmanager
def _held(fd: int) -> Iterator[None]:
    """Keep other editors out, those in other processes too. The descriptor is closed at the end."""
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError("The file is being changed just now. Try again.", reason="file_writing") from None
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


# archives: neither is ever held as a whole ---------------------------------------------------------------------------


def zip_files(
    paths: Paths,
    thread_id: str,
    user_id: str,
    root: str,
    places: Sequence[str],
    documents: Mapping[str, bytes] = MappingProxyType({}),
) -> Generator[bytes, None, None]:
    """A ZIP of a thread's regular files, piece by piece. Blocks; what has vanished meanwhile is left out.

    Args:
        root: where the names in the ZIP begin.
        places: the directories below it that are taken.
        documents: come first, each under the name that is its key.
    """
    archive = ZipStream()
    for name, content in documents.items():
        yield archive.add(name, content)
    yield from thread_members(archive, paths, thread_id, user_id, root, places)
    yield archive.end()


def thread_members(
    archive: ZipStream,
    paths: Paths,
    thread_id: str,
    user_id: str,
    root: str,
    places: Sequence[str],
    below: str = "",
    counts: Counter[str] | None = None,
) -> Generator[bytes, None, None]:
    """Add a thread's regular files to ``archive``, under names that begin with ``below``; ``counts`` counts ``files``.

    The other arguments are those of :func:`zip_files`.
    """
    with thread_files(paths, thread_id, user_id) as files:
        with file_requests(root):
            found = [entry.path for place in places for entry in regular_files(files, place).files]
        for path in found:
            try:
                fd = files.open_fd(path, below=root)
            except SandboxFileError:
                continue
            try:
                with closing(archive.add_file(below + path[len(root) + 1 :], fd)) as steps:
                    yield from steps
                if counts is not None:
                    counts["files"] += 1
            finally:
                os.close(fd)


def read_member(fd: int, member: str) -> MemoryFile:
    """One file out of the ZIP behind ``fd``, which is closed; or the first whose path ends with ``/member``. Blocks.

    Raises:
        NotFoundError: there is no such member.
        TooLargeError: it, or the table of contents, is larger than we unpack.
        RequestError: no ZIP, damaged, encrypted or of a rare kind.
    """
    with os.fdopen(fd, "rb") as file:
        modified = os.fstat(fd).st_mtime
        check_directory(os.pread(fd, TAIL_BYTES, max(0, os.fstat(fd).st_size - TAIL_BYTES)))
        try:
            with zipfile.ZipFile(file) as archive:
                info = _find(archive, member)
                if info.flag_bits & 1 or info.compress_type not in READABLE:
                    text = f"{member} is encrypted or packed in a way that cannot be read here."
                    raise RequestError(text, reason="archive_locked", name=member)
                with archive.open(info) as stream:
                    data = stream.read(MAX_MEMBER_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error, ValueError):
            raise RequestError("The archive is damaged.", reason="archive_damaged") from None
    if len(data) > MAX_MEMBER_BYTES:
        most = MAX_MEMBER_BYTES >> 20
        text = f"{member} is larger than {most} MB. Download the archive instead."
        raise TooLargeError(text, reason="archive_too_large", name=member, megabytes=most)
    return MemoryFile(data, info.filename.rsplit("/", 1)[-1], modified)


def _find(archive: zipfile.ZipFile, member: str) -> zipfile.ZipInfo:
    found = archive.NameToInfo.get(member)
    if found is None:
        found = next((info for info in archive.infolist() if info.filename.endswith("/" + member)), None)
    if found is None or found.is_dir():
        raise NotFoundError(f"Artifact not found: {member}")
    return found


class ThreadArchive:
    """A conversation together with its files, to keep or to pass on."""

    def __init__(self, paths: Paths, transcript: TranscriptView) -> None:
        self._paths = paths
        self._transcript = transcript

    async def pieces(self, principal: Principal, thread_id: str) -> tuple[str, AsyncGenerator[bytes, None]]:
        """A ZIP's name, and its content as it is made: ``conversation.md`` and ``.json``, ``outputs/``, ``uploads/``.

        Links are left out. Raises NotFoundError.
        """
        name, markdown = await self._transcript.export(principal, thread_id, "md")
        _, json = await self._transcript.export(principal, thread_id, "json")
        documents = {"conversation.md": markdown, "conversation.json": json}
        user_id, places = principal.user_id, (OUTPUTS, UPLOADS)
        pieces = pieces_off_loop(zip_files(self._paths, thread_id, user_id, VIRTUAL_ROOT, places, documents))
        return name.removesuffix(".md") + ".zip", pieces


async def pieces_off_loop(generator: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
    """What ``generator`` yields, but for empty pieces; each step runs on a thread. It is closed at the end, however that comes."""
    steps = Closing(generator.close)
    try:
        while (piece := await asyncio.to_thread(steps.use, lambda: next(generator, None))) is not None:
            if piece:
                yield piece
    finally:
        steps.close()
