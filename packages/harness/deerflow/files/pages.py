"""Pages of the web that agents read in a thread, for its person."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from deerflow.config import AppConfig
from deerflow.config.paths import Paths
from deerflow.errors import ForbiddenError, RequestError
from deerflow.files.content import file_requests, thread_files
from deerflow.identity import Principal
from deerflow.sandbox.converters.pictures import mime_type_of
from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import PAGES, Entry, SandboxFileError
from deerflow.security.outbound import Outbound
from deerflow.storage.database import Database
from deerflow.storage.pages import PageRow, ThreadPages
from deerflow.storage.threads import ThreadRepository
from deerflow.tools.download import WebError, fetch, kept_path, network_of

MAX_PAGES = 500
MAX_PICTURE_BYTES = 10 << 20
_ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif"}


class WebUnreachableError(RequestError):
    """What the person wants of the web cannot be had."""

    status = 422  # pages take 502 for a gateway that is down
    code = "web_unreachable"


@dataclass(frozen=True, slots=True)
class KeptPage:
    """``path`` is where the thread keeps it; the agents saw what stands there. The address is recorded when it is
    read; a file that was not read from the web has none."""

    url: str | None
    title: str
    path: str
    read_at: datetime


class PageService:
    """What threads keep of the web."""

    def __init__(self, paths: Paths, threads: ThreadRepository, database: Database) -> None:
        self._paths = paths
        self._threads = threads
        self._database = database

    async def list(self, principal: Principal, thread_id: str) -> list[KeptPage]:
        """Those that were read, the newest first. Raises NotFoundError."""
        await self._threads.get(principal, thread_id)
        rows = await ThreadPages(self._database, thread_id).newest(MAX_PAGES)
        return await asyncio.to_thread(self._list, thread_id, principal.user_id, rows)

    async def picture(self, principal: Principal, thread_id: str, url: str, config: AppConfig) -> str:
        """Load a picture and keep it in the thread; its path. The person's browser calls no foreign server for it.

        Raises:
            NotFoundError: there is no such thread.
            ForbiddenError: the configuration turns the web off.
            WebUnreachableError: the address may not be called, or gives no picture; the message says why.
        """
        await self._threads.get(principal, thread_id, to_change=True)
        if config.security.native_web_tools == "deny":
            text = "security.native_web_tools: deny forbids to load pictures from the web."
            raise ForbiddenError(text, reason="pictures_off")
        try:
            loaded = await fetch(Outbound(network_of(config)), url, max_bytes=MAX_PICTURE_BYTES)
        except WebError as error:
            raise WebUnreachableError(str(error)) from error
        kind = mime_type_of(loaded.data)
        if kind not in _ENDINGS:
            text = "There is no picture at this address, or its format cannot be shown here."
            raise WebUnreachableError(text, reason="picture_none")
        path = kept_path(loaded.data, loaded.url, _ENDINGS[kind])
        await asyncio.to_thread(self._keep, thread_id, principal.user_id, path, loaded.data)
        return path

    # blocking -------------------------------------------------------------------------------------------------------

    def _list(self, thread_id: str, user_id: str, rows: Sequence[PageRow]) -> list[KeptPage]:
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(PAGES):
            if files.stat(PAGES) is None:
                return []
            recorded = {row.path for row in rows}
            texts = [row for row in rows if f"{row.path.removesuffix('.html')}.md" not in recorded]
            pages = [KeptPage(row.url, row.title, row.path, row.read_at) for row in texts if _is_as_read(files, row)]
            entries, _ = files.list(PAGES, 1, 10 * MAX_PAGES)
            pages += [_file(entry) for entry in entries if entry.kind == "file" and _is_other(entry, recorded)]
            return sorted(pages, key=lambda page: page.read_at, reverse=True)[:MAX_PAGES]

    def _keep(self, thread_id: str, user_id: str, path: str, data: bytes) -> None:
        self._paths.ensure_thread_dirs(thread_id, user_id)
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(path):
            files.write(path, data)


def _is_as_read(files: SandboxFiles, row: PageRow) -> bool:
    """Return whether the file is what was read, not what a command has made of it."""
    try:
        data, _ = files.read(row.path)
    except SandboxFileError:
        return False
    return hashlib.sha256(data).hexdigest() == row.digest


def _is_other(entry: Entry, recorded: Collection[str]) -> bool:
    return entry.path not in recorded and not entry.path.endswith(".md")


def _file(entry: Entry) -> KeptPage:
    """Return a file that is not known to come from anywhere."""
    return KeptPage(None, entry.path.rpartition("/")[2], entry.path, datetime.fromtimestamp(entry.modified, UTC))
