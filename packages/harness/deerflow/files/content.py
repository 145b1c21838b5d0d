"""Files that are open for being sent: what is sent is what was checked, whatever takes its name meanwhile."""

from __future__ import annotations

import hashlib
import os
from threading import Lock
from typing import Protocol

from deerflow.files.media_types import SNIFF_BYTES


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
