"""Previews of HTML files at addresses of their own."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from urllib.parse import quote_from_bytes

import jwt

from deerflow.config.paths import VIRTUAL_ROOT, Paths
from deerflow.errors import ForbiddenError, NotFoundError, RequestError
from deerflow.files.content import FileContent, OpenFile, file_requests, thread_files, virtual_path
from deerflow.identity import Principal
from deerflow.storage.threads import ThreadRepository

LIFETIME = 3600
"""Seconds that an address works."""
INDEX = "index.html"
_ALGORITHM = "HS256"


@dataclass(frozen=True, slots=True)
class Preview:
    """``path``: where the site is on this server, beginning with ``/``; ``expires_at``: seconds since the epoch."""

    path: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class SiteFile:
    """A file at an address. Without ``content`` it is a directory, whose address ends with a slash."""

    content: FileContent | None
    network: bool
    """The page may load from other servers."""


@dataclass(frozen=True, slots=True)
class _Grant:
    user: str
    thread: str
    directory: str
    network: bool
    expires: int


class PreviewService:
    """Makes and opens previews."""

    def __init__(
        self, paths: Paths, threads: ThreadRepository, secret: str, *, now: Callable[[], float] = time.time
    ) -> None:
        """``secret``: the server's, the same in all its processes; the key is derived from it."""
        self._paths = paths
        self._threads = threads
        self._key = hmac.digest(secret.encode(), b"deerflow preview 2", "sha256")
        self._now = now

    async def create(self, principal: Principal, thread_id: str, path: str, *, network: bool = False) -> Preview:
        """An address for a page and the files in its directory, or for a directory with an ``index.html``.

        Raises:
            NotFoundError: no such thread or file. ForbiddenError: it leads out of the thread's files.
            RequestError: the path does not start with ``/mnt/user-data``.
        """
        await self._threads.get(principal, thread_id)
        directory, page = await asyncio.to_thread(self._place, thread_id, principal.user_id, virtual_path(path))
        expires = int(self._now()) + LIFETIME
        grant = _Grant(principal.user_id, thread_id, directory, network, expires)
        token = jwt.encode(asdict(grant), self._key, _ALGORITHM)
        return Preview(f"/preview/{token}/{quote_from_bytes(page.encode('utf-8', 'surrogateescape'))}", expires)

    async def open(self, token: str, path: str) -> SiteFile:
        """A file of a preview; the caller closes it. Raises NotFoundError, also if ``token`` is forged or expired."""
        try:
            grant = _Grant(**jwt.decode(token, self._key, [_ALGORITHM]))
        except jwt.InvalidTokenError:
            grant = None
        if grant is None or grant.expires <= self._now():
            text = "This preview does not exist or has expired. Open it again from its thread."
            raise NotFoundError(text, reason="preview_gone")
        return await asyncio.to_thread(self._open, grant, path)

    # blocking -------------------------------------------------------------------------------------------------------

    def _place(self, thread_id: str, user_id: str, path: str) -> tuple[str, str]:
        """The real directory, and the page in it."""
        with thread_files(self._paths, thread_id, user_id) as files, file_requests(path):
            real = files.real_path(path)
            entry = files.stat(real)
            if real == VIRTUAL_ROOT:
                raise ForbiddenError("Choose a page, or the directory of one site.")
            if entry is not None and entry.kind == "directory":
                return real, ""
            directory, _, page = real.rpartition("/")
            return directory, page

    def _open(self, grant: _Grant, path: str) -> SiteFile:
        parts = path.split("/")
        if ".." in parts or "\0" in path:
            raise NotFoundError("There is no such file in this preview.")
        wanted = f"{grant.directory}/{path}"
        try:
            with thread_files(self._paths, grant.thread, grant.user) as files, file_requests(path):
                entry = files.stat(wanted)
                if entry is not None and entry.kind == "directory":
                    if parts[-1]:
                        return SiteFile(None, grant.network)
                    wanted = f"{wanted.rstrip('/')}/{INDEX}"
                fd = files.open_fd(wanted, below=grant.directory)
                return SiteFile(OpenFile(fd, wanted.rsplit("/", 1)[-1]), grant.network)
        except RequestError:
            raise NotFoundError("There is no such file in this preview.") from None
