"""A ZIP that is taken piece by piece while it is made."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Generator

_CHUNK = 1 << 18
_PACKED = (".zip", ".gz", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp4", ".webm", ".mp3", ".xlsx", ".docx", ".pptx")


class ZipStream:
    """Every method blocks and returns what was written since the last one."""

    def __init__(self) -> None:
        self._out = _Pipe()
        self._taken: set[str] = set()
        self._archive = zipfile.ZipFile(self._out, "w", zipfile.ZIP_DEFLATED, compresslevel=6)

    def add(self, name: str, content: bytes) -> bytes:
        self._archive.writestr(self._member_name(name), content)
        return self._out.take()

    def add_file(self, name: str, fd: int) -> Generator[bytes, None, None]:
        """Add what ``fd``, which stays open, holds now: no more than that is read, even if the file grows."""
        status = os.fstat(fd)
        # ZIP knows no time before 1980 or after 2107.
        moment = time.gmtime(min(max(status.st_mtime, 315_532_800), 4_354_819_198))
        info = zipfile.ZipInfo(self._member_name(name), moment[:6])
        info.compress_type = zipfile.ZIP_STORED if name.lower().endswith(_PACKED) else zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        info.file_size = left = status.st_size  # decides on the 64-bit format
        with self._archive.open(info, "w") as member:
            while left > 0 and (chunk := os.read(fd, min(left, _CHUNK))):
                left -= len(chunk)
                member.write(chunk)
                yield self._out.take()
        yield self._out.take()

    def end(self) -> bytes:
        """Add the table of contents."""
        self._archive.close()
        return self._out.take()

    def _member_name(self, path: str) -> str:
        """Return ``path`` in a form that every unpacker takes, and none of them for a way out of its directory."""
        clean = os.fsencode(path).decode("utf-8", "replace").replace("\\", "_").replace("\n", "_").replace(":", "_")
        name, number = clean, 1
        while name in self._taken:
            number += 1
            name = f"{clean} ({number})"
        self._taken.add(name)
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
