"""Open files on their way out, and what kind of file a name and its first bytes stand for."""

from __future__ import annotations

import codecs
import hashlib
import os
from pathlib import PurePosixPath
from threading import Lock
from typing import Protocol

SNIFF_BYTES = 8192


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


class OpenFile:
    """A regular file behind a descriptor, which it owns from now on."""

    def __init__(self, fd: int, name: str) -> None:
        """Blocks for one read. Raises OSError, with ``fd`` closed."""
        self._fd = fd
        self._closed = False
        self._lock = Lock()
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
        with self._lock:
            data = b"" if self._closed else os.pread(self._fd, size, offset)
        if self._closed:
            self.close()
        return data

    def close(self) -> None:
        self._closed = True
        # Held: a thread reads, on behalf of nobody any more. It closes when it has done so.
        if self._lock.acquire(blocking=False):
            try:
                if self._fd >= 0:
                    os.close(self._fd)
                    self._fd = -1
            finally:
                self._lock.release()


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
    """The encoding of text that begins with ``head``; None if it is neither UTF-8 nor marked as UTF-16."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return None
    return "utf-8"
