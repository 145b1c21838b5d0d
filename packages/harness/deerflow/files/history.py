"""What a thread's person can know of its files over time: what each run changed, and earlier versions of what was delivered."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from deerflow.config.paths import Paths
from deerflow.errors import NotFoundError
from deerflow.files.content import FileContent, OpenFile
from deerflow.files.directories import thread_files, virtual_path
from deerflow.files.versions import FileVersions, RunChanges, Version
from deerflow.identity import Principal
from deerflow.sandbox.files.errors import shown_path
from deerflow.storage.threads import ThreadRepository

if TYPE_CHECKING:
    from deerflow.storage.runs import Run

logger = logging.getLogger(__name__)


def versions_of(paths: Paths, thread_id: str, user_id: str) -> FileVersions:
    return FileVersions(paths.thread_dir(thread_id, user_id) / "versions")


async def record_run(paths: Paths, run: Run) -> bool:
    """Keep what ``run``, which has ended and whose thread is still held, did to files. Whether it did something.

    Never raises for what goes wrong: a version that is not kept is no reason for anything to fail.
    """
    try:
        return await asyncio.to_thread(_record, paths, run)
    except FileNotFoundError:
        return False  # the thread has no directory, or was deleted
    except Exception:
        logger.warning("What run %s did to files could not be kept.", run.run_id, exc_info=True)
        return False


def _record(paths: Paths, run: Run) -> bool:
    with thread_files(paths, run.thread_id, run.user_id) as files:
        kept = versions_of(paths, run.thread_id, run.user_id)
        return kept.record_run(files, run.run_id, since=run.started_at) is not None


class ArtifactHistory:
    def __init__(self, paths: Paths, threads: ThreadRepository) -> None:
        self._paths = paths
        self._threads = threads

    async def changes(self, principal: Principal, thread_id: str) -> list[RunChanges]:
        """What each run created, modified and deleted, the newest run first. Raises NotFoundError."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(versions_of(self._paths, thread_id, principal.user_id).changes)

    async def versions(self, principal: Principal, thread_id: str, path: str) -> list[Version]:
        """What is kept of a file, the newest first. Raises NotFoundError, or RequestError for a path of no thread."""
        await self._threads.get(principal, thread_id)
        kept = versions_of(self._paths, thread_id, principal.user_id)
        return await asyncio.to_thread(kept.versions, virtual_path(path))

    async def open(self, principal: Principal, thread_id: str, path: str, version: int) -> FileContent:
        """A version of a file; the caller closes it. Raises as ``versions``, and if it is not kept any more."""
        await self._threads.get(principal, thread_id)
        return await asyncio.to_thread(self._open, thread_id, principal.user_id, virtual_path(path), version)

    def _open(self, thread_id: str, user_id: str, path: str, version: int) -> FileContent:
        try:
            fd = versions_of(self._paths, thread_id, user_id).open(path, version)
        except FileNotFoundError:
            raise NotFoundError(f"Version {version} of {shown_path(path)} is not kept (any more).") from None
        return OpenFile(fd, path.rsplit("/", 1)[-1])
