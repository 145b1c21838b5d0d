"""Archives: a thread's files as one ZIP, and one file out of a ZIP, both without ever holding much."""

from __future__ import annotations

import asyncio
import os
import struct
import time
import zipfile
import zlib
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import closing
from threading import Lock

from deerflow.config import Paths
from deerflow.config.paths import VIRTUAL_ROOT
from deerflow.errors import NotFoundError, RequestError, TooLargeError
from deerflow.files.content import MemoryFile
from deerflow.files.directories import file_requests, regular_files, thread_files
from deerflow.identity import Principal
from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, SandboxFileError
from deerflow.security.archives import READABLE, TAIL_BYTES, check_directory
from deerflow.threads.transcript import TranscriptView

MAX_MEMBER_BYTES = 16 << 20

_CHUNK = 1 << 18
_PACKED = (".zip", ".gz", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp4", ".webm", ".mp3", ".xlsx", ".docx", ".pptx")


def zip_files(
    files: SandboxFiles, root: str, paths: Iterable[str], documents: Mapping[str, bytes] | None = None
) -> Generator[bytes, None, None]:
    """A ZIP of regular files below ``root``, piece by piece. Blocks; what has vanished meanwhile is left out.

    ``documents`` come first, each under the name that is its key.
    """
    out = _Pipe()
    taken: set[str] = set()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in (documents or {}).items():
            archive.writestr(_member_name(name, taken), content)
            yield out.take()
        for path in paths:
            try:
                fd = files.open_fd(path, below=root)
            except SandboxFileError:
                continue
            try:
                with closing(_add(archive, fd, _member_name(path[len(root) + 1 :], taken))) as steps:
                    for _ in steps:
                        yield out.take()
            finally:
                os.close(fd)
    yield out.take()


def _add(archive: zipfile.ZipFile, fd: int, name: str) -> Generator[None, None, None]:
    status = os.fstat(fd)
    # ZIP knows no time before 1980 or after 2107.
    moment = time.gmtime(min(max(status.st_mtime, 315_532_800), 4_354_819_198))
    info = zipfile.ZipInfo(name, moment[:6])
    info.compress_type = zipfile.ZIP_STORED if name.lower().endswith(_PACKED) else zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    # Decides on the 64-bit format. No more than that is read, even if the file grows.
    info.file_size = left = status.st_size
    with archive.open(info, "w") as member:
        while left > 0 and (chunk := os.read(fd, min(left, _CHUNK))):
            left -= len(chunk)
            member.write(chunk)
            yield
    yield


def _member_name(path: str, taken: set[str]) -> str:
    """``path`` in a form that every unpacker takes, and none of them for a way out of its directory."""
    clean = os.fsencode(path).decode("utf-8", "replace").replace("\\", "_").replace("\n", "_").replace(":", "_")
    name, number = clean, 1
    while name in taken:
        number += 1
        name = f"{clean} ({number})"
    taken.add(name)
    return name


class _Pipe:
    """What ``zipfile`` writes, until it is taken. Without ``seek`` it writes sizes behind the data."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Everything is there already."""

    def close(self) -> None:
        """Nothing to close."""

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


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
                    raise RequestError(f"{member} is encrypted or packed in a way that cannot be read here.")
                with archive.open(info) as stream:
                    data = stream.read(MAX_MEMBER_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error, ValueError):
            raise RequestError("The archive is damaged.") from None
    if len(data) > MAX_MEMBER_BYTES:
        raise TooLargeError(f"{member} is larger than {MAX_MEMBER_BYTES >> 20} MB. Download the archive instead.")
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
        pieces = pieces_off_loop(self._zip(thread_id, principal.user_id, documents))
        return name.removesuffix(".md") + ".zip", pieces

    def _zip(self, thread_id: str, user_id: str, documents: Mapping[str, bytes]) -> Generator[bytes, None, None]:
        with thread_files(self._paths, thread_id, user_id) as files:
            with file_requests(VIRTUAL_ROOT):
                found = [entry.path for root in (OUTPUTS, UPLOADS) for entry in regular_files(files, root).files]
            yield from zip_files(files, VIRTUAL_ROOT, found, documents)


async def pieces_off_loop(generator: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
    """What ``generator`` yields, but for empty pieces; each step runs on a thread. It is closed at the end, however that comes."""
    steps = _Steps(generator)
    try:
        while (piece := await asyncio.to_thread(steps.next)) is not None:
            if piece:
                yield piece
    finally:
        steps.close()


class _Steps:
    """Lets one thread step and another close: a step that nobody waits for any more closes when it is done."""

    def __init__(self, generator: Generator[bytes, None, None]) -> None:
        self._generator = generator
        self._closed = False
        self._lock = Lock()

    def next(self) -> bytes | None:
        with self._lock:
            piece = None if self._closed else next(self._generator, None)
        if self._closed:
            self.close()
        return piece

    def close(self) -> None:
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._generator.close()
            finally:
                self._lock.release()
