"""The files of a thread seen from outside of a run: the name space of its sandbox, without the sandbox.

Open files on their way out, and what kind of file a name and its first bytes stand for.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Protocol, TypeVar

from deerflow.config.paths import VIRTUAL_ROOT, Paths
from deerflow.errors import DiskFullError, ForbiddenError, NotFoundError, RequestError
from deerflow.sandbox.files import SandboxFiles, SandboxNotADirectoryError
from deerflow.sandbox.files.walk import SandboxNoSpaceError, shown_path
from deerflow.sandbox.interface import (
    OUTPUTS,
    UPLOADS,
    WORKSPACE,
    Entry,
    Mount,
    SandboxFileError,
    SandboxFileNotFoundError,
    SandboxPermissionError,
)
from deerflow.security.encodings import surely

# open files ----------------------------------------------------------------------------------------------------------


SNIFF_BYTES = 8192

Result = TypeVar("Result")


class FileContent(Protocol):
    """Bytes of a known number under a name."""

    name: str
    """The last component of its path; bytes that are not UTF-8 are lone surrogates, as in ``os.fsdecode``."""
    size: int
    modified: float
    """Seconds since the epoch."""
    etag: str
    """A strong validator in quotes: another one as soon as anything was written."""
    head: bytes
    """The first bytes, at most ``SNIFF_BYTES``."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes; fewer or none where the file ends. Blocks. Raises OSError."""
        ...

    def close(self) -> None:
        """Let go of it. Never blocks; may be called again, and while another thread reads."""
        ...


class Closing:
    """What one thread uses and another closes: a use that nobody waits for any more closes when it is done.

    Args:
        close: called once; never while it is used.
    """

    def __init__(self, close: Callable[[], object]) -> None:
        self._close: Callable[[], object] | None = close
        self._closed = False
        self._lock = Lock()

    def use(self, job: Callable[[], Result]) -> Result | None:
        """What ``job`` gives; None: it is closed."""
        with self._lock:
            result = None if self._closed else job()
        if self._closed:
            self.close()
        return result

    def close(self) -> None:
        """Never blocks; may be called again."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                close, self._close = self._close, None
                if close is not None:
                    close()
            finally:
                self._lock.release()


class OpenFile:
    """A regular file behind a descriptor, which it owns from now on."""

    def __init__(self, fd: int, name: str) -> None:
        """Blocks for one read. Raises OSError, with ``fd`` closed."""
        self._fd = fd
        self._closing = Closing(partial(os.close, fd))
        info = os.fstat(fd)
        self.name = name
        self.size = info.st_size
        self.modified = info.st_mtime
        self.etag = f'"{info.st_ino:x}-{info.st_size:x}-{info.st_mtime_ns:x}"'
        self.head = self.read(0, SNIFF_BYTES)

    def __del__(self) -> None:
        # A request that is cancelled while its thread opens the file has nobody else who would close it.
        self.close()

    def read(self, offset: int, size: int) -> bytes:
        return self._closing.use(lambda: os.pread(self._fd, size, offset)) or b""

    def close(self) -> None:
        self._closing.close()


class MemoryFile:
    """Bytes in memory as a file, such as a member of an archive."""

    def __init__(self, data: bytes, name: str, modified: float) -> None:
        self._data = data
        self.name = name
        self.size = len(data)
        self.modified = modified
        self.etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        self.head = data[:SNIFF_BYTES]

    def read(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]

    def close(self) -> None:
        """Nothing to let go of."""


# media types -------------------------------------------------------------------------------------------------------

BINARY = "application/octet-stream"

_TYPES = {
    "text/html": "html htm",
    "application/xhtml+xml": "xhtml xht",
    "image/svg+xml": "svg",
    "text/xml": "xml xsl xslt",
    "text/css": "css",
    "text/javascript": "js mjs cjs",
    "text/markdown": "md markdown",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/calendar": "ics",
    "text/plain": "txt log ini cfg conf toml yaml yml py pyi ipynb rs go java c h cpp hpp cc rb php pl sh bash zsh sql ts tsx "
    "jsx vue svelte r lua swift kt scala tex bib rst diff patch env srt vtt jsonl ndjson map",
    "application/json": "json geojson webmanifest",
    "application/pdf": "pdf",
    "application/wasm": "wasm",
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/x-icon": "ico",
    "image/tiff": "tif tiff",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg oga opus",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "video/mp4": "mp4 m4v",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "font/ttf": "ttf",
    "font/otf": "otf",
    "application/zip": "zip skill",
    "application/gzip": "gz tgz",
    "application/x-tar": "tar",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/epub+zip": "epub",
}
_BY_SUFFIX = {suffix: kind for kind, suffixes in _TYPES.items() for suffix in suffixes.split()}


def media_type(name: str, head: bytes = b"") -> str:
    """The media type, without parameters, of a file called ``name`` that begins with ``head``.

    A name that tells nothing is judged by ``head``: text if it is UTF-8 without NUL, else bytes. An empty one is bytes.
    """
    known = _BY_SUFFIX.get(PurePosixPath(name).suffix[1:].lower())
    if known is not None:
        return known
    return "text/plain" if head and b"\0" not in head and charset(head) == "utf-8" else BINARY


def charset(head: bytes) -> str | None:
    """The encoding of text that begins with ``head``; None if the bytes do not prove any."""
    found = surely(head, cut=True)
    return found.label if found is not None else None


# a thread's files ----------------------------------------------------------------------------------------------------


MAX_LISTED = 5000
_DEPTH = 32


@contextmanager
def thread_files(paths: Paths, thread_id: str, user_id: str) -> Iterator[SandboxFiles]:
    """The thread's directories under their virtual paths, with the rights of their sandbox's user. Blocks."""
    mounts = [
        Mount(paths.workspace(thread_id, user_id), WORKSPACE),
        Mount(paths.uploads(thread_id, user_id), UPLOADS),
        Mount(paths.outputs(thread_id, user_id), OUTPUTS),
    ]
    files = SandboxFiles(mounts, owner=_owner(mounts[-1].host))
    try:
        yield files
    finally:
        files.close()


def _owner(directory: Path) -> int | None:
    """As root: the user that the thread's sandbox runs as. Root's own rights would open more than the sandbox may."""
    if os.geteuid() != 0:
        return None
    try:
        return directory.stat().st_uid
    except FileNotFoundError:
        return None


def virtual_path(path: str) -> str:
    """``path`` of a request with its leading slash. Raises RequestError (400) if it is not below ``/mnt/user-data``."""
    virtual = "/" + path.lstrip("/")
    if virtual != VIRTUAL_ROOT and not virtual.startswith(VIRTUAL_ROOT + "/"):
        raise RequestError(f"Path must start with {VIRTUAL_ROOT}", code="invalid_path")
    return virtual


@contextmanager
def file_requests(path: str) -> Iterator[None]:
    """Turn what a file operation raises into the answer to a request for ``path``; no host path is told.

    Raises:
        NotFoundError, ForbiddenError, DiskFullError, RequestError (400): in place of SandboxFileError and OSError.
    """
    try:
        yield
    except (SandboxFileNotFoundError, SandboxNotADirectoryError):
        raise NotFoundError(f"Artifact not found: {shown_path(path)}") from None
    except SandboxPermissionError:
        raise ForbiddenError(f"Access denied: {shown_path(path)} is outside of the thread's files.") from None
    except SandboxNoSpaceError as error:
        raise DiskFullError(str(error)) from None
    except SandboxFileError as error:
        raise RequestError(str(error), code="invalid_path") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError("The server's disk is full. Delete files or ask who runs it for room.") from None
        raise


@dataclass(frozen=True, slots=True)
class Listing:
    """Regular files of a directory, by path. ``truncated``: there are more."""

    files: list[Entry]
    truncated: bool


def regular_files(files: SandboxFiles, root: str) -> Listing:
    """What lies below the directory ``root``, if there is one. Blocks."""
    if files.stat(root) is None:
        return Listing([], False)
    entries, cut = files.list(root, _DEPTH, MAX_LISTED)
    return Listing([entry for entry in entries if entry.kind == "file"], cut)
