"""The files of a thread as its person sees them: uploads in, artifacts out."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deerflow.config import Paths
from deerflow.context import RunContext
from deerflow.identity import Principal, check_id
from deerflow.sandbox.interface import OUTPUTS
from deerflow.uploads.store import Upload, delete_upload, list_uploads, save_upload


class ThreadFiles:
    """Uploads and artifacts of one person's threads."""

    def __init__(self, paths: Paths, principal: Principal) -> None:
        self._paths = paths
        self._user = principal.user_id

    async def upload(self, thread_id: str, files: Sequence[str | Path]) -> list[Upload]:
        """Copy files into the thread's uploads. All are checked before any is copied.

        Raises:
            FileNotFoundError: a file does not exist.
            ValueError: a directory, an unusable name or an invalid thread id.
        """
        sources = [Path(file).expanduser() for file in files]
        return await asyncio.to_thread(self._copy, check_id(thread_id, "thread id"), sources)

    def _copy(self, thread_id: str, sources: Sequence[Path]) -> list[Upload]:
        for source in sources:
            if not source.exists():
                raise FileNotFoundError(f"No such file: {source}")
            if not source.is_file():
                raise ValueError(f"Not a regular file: {source}")
        self._paths.ensure_thread_dirs(thread_id, self._user)
        saved = []
        for source in sources:
            with source.open("rb") as stream:
                saved.append(save_upload(stream, source.name, self._uploads(thread_id)))
        return saved

    async def list(self, thread_id: str) -> list[Upload]:
        return await asyncio.to_thread(list_uploads, self._uploads(thread_id))

    async def delete(self, thread_id: str, filename: str) -> None:
        """Raises FileNotFoundError, or PathTraversalError for a name that leads elsewhere."""
        await asyncio.to_thread(delete_upload, self._uploads(thread_id), filename)

    def _uploads(self, thread_id: str) -> Path:
        return self._paths.uploads(check_id(thread_id, "thread id"), self._user)


async def read_artifact(context: RunContext, path: str) -> tuple[bytes, str]:
    """Content and MIME type of a file of the thread, by its virtual path; a leading slash may be missing.

    Raises:
        SandboxFileNotFoundError, SandboxPermissionError, SandboxFileError: no such file, outside, not a file.
    """
    sandbox, virtual = await context.sandbox(), "/" + path.lstrip("/")
    data, size = await sandbox.read(virtual)
    parts = [data]
    while data and sum(map(len, parts)) < size:
        data, size = await sandbox.read(virtual, offset=sum(map(len, parts)))
        parts.append(data)
    mime, _ = await asyncio.to_thread(mimetypes.guess_type, path)  # its first call reads the system's tables
    return b"".join(parts), mime or "application/octet-stream"


async def list_artifacts(context: RunContext, presented: Sequence[str]) -> list[str]:
    """Virtual paths of what was presented, then of everything else in the outputs directory."""
    entries, _ = await (await context.sandbox()).list(OUTPUTS, depth=8)
    return list(dict.fromkeys([*presented, *(entry.path for entry in entries if entry.kind == "file")]))


def upload_entry(thread_id: str, upload: Upload, original: str | None = None) -> dict[str, Any]:
    """An upload as HTTP and client show it; ``original_filename`` when a free name had to be found."""
    url = f"/api/threads/{thread_id}/artifacts/mnt/user-data/uploads/{quote(upload.filename)}"
    entry = {
        "filename": upload.filename,
        "size": str(upload.size),
        "path": upload.path,
        "virtual_path": upload.path,
        "artifact_url": url,
    }
    return entry | ({"original_filename": original} if original and original != upload.filename else {})
