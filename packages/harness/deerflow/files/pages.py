"""Pages of the web as a thread's agents read them, and pictures of it that the thread's person asks for."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from deerflow.community.web import WebError, fetch, kept_path, network_of
from deerflow.config import AppConfig
from deerflow.config.paths import Paths
from deerflow.errors import ForbiddenError, RequestError
from deerflow.files.directories import file_requests, thread_files
from deerflow.identity import Principal
from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import PAGES, Entry, SandboxFileError
from deerflow.security.outbound import Outbound
from deerflow.storage.threads import ThreadRepository
from deerflow.tools.images import mime_type_of

MAX_PAGES = 500
MAX_PICTURE_BYTES = 10 << 20
_HEAD = re.compile(r"# (?P<title>[^\n]*)\n\nSource: (?P<url>https?://[^\s<>]+)\n")
_HEAD_BYTES = 16 << 10
_ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif"}


class WebUnreachableError(RequestError):
    """What the person wants of the web cannot be had."""

    status = 422  # pages take 502 for a gateway that is down
    code = "web_unreachable"


@dataclass(frozen=True, slots=True)
class KeptPage:
    """``path`` is where the thread keeps it; the agents saw what stands there. A file that is no page does not know its address."""

    url: str | None
    title: str
    path: str
    read_at: datetime


class PageService:
    """What threads keep of the web."""

    def __init__(self, paths: Paths, threads: ThreadRepository) -> None:
        self._paths = paths
        self._threads = threads

    async def list(self, principal: Principal, thread_id: str) -> list[KeptPage]:
        """Those that were read, the newest first. Raises NotFoundError."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(self._list, thread_id, principal.user_id)

    async def picture(self, principal: Principal, thread_id: str, url: str, config: AppConfig) -> str:
        """Load a picture and keep it in the thread; its path. The person's browser calls no foreign server for it.

        Raises:
            NotFoundError: there is no such thread.
            ForbiddenError: the configuration turns the web off.
            WebUnreachableError: the address may not be called, or gives no picture; the message says why.
        """
        await self._threads.get(principal, thread_id)
        if config.security.native_web_tools == "deny":
            raise ForbiddenError("security.native_web_tools: deny forbids to load pictures from the web.")
        try:
            loaded = await fetch(Outbound(network_of(config)), url, max_bytes=MAX_PICTURE_BYTES)
        except WebError as error:
            raise WebUnreachableError(str(error)) from error
        kind = "image/gif" if loaded.data[:4] == b"GIF8" else mime_type_of(loaded.data)
        if kind is None:
            raise WebUnreachableError("There is no picture at this address, or its format cannot be shown here.")
        path = kept_path(loaded.data, loaded.url, _ENDINGS[kind])
        await asyncio.to_thread(self._keep, thread_id, principal.user_id, path, loaded.data)
        return path

    # blocking -------------------------------------------------------------------------------------------------------

    def _list(self, thread_id: str, user_id: str) -> list[KeptPage]:
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(PAGES):
            if files.stat(PAGES) is None:
                return []
            entries, _ = files.list(PAGES, 1, 10 * MAX_PAGES)
            kept = [entry for entry in entries if entry.kind == "file"]
            newest = sorted(kept, key=lambda entry: entry.modified, reverse=True)[:MAX_PAGES]
            return [page for entry in newest if (page := _kept(files, entry)) is not None]

    def _keep(self, thread_id: str, user_id: str, path: str, data: bytes) -> None:
        self._paths.ensure_thread_dirs(thread_id, user_id)
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(path):
            files.write(path, data)


def _kept(files: SandboxFiles, entry: Entry) -> KeptPage | None:
    name, modified = entry.path.rpartition("/")[2], datetime.fromtimestamp(entry.modified, UTC)
    if not name.endswith(".md"):
        return KeptPage(None, name, entry.path, modified)
    try:
        head = files.read(entry.path, 0, _HEAD_BYTES)[0].decode("utf-8", "replace")
    except SandboxFileError:  # removed or replaced by the agent meanwhile
        return None
    match = _HEAD.match(head)
    return KeptPage(match["url"], match["title"], entry.path, modified) if match else None
