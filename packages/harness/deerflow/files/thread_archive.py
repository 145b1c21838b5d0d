"""A conversation together with its files, to keep or to pass on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping

from deerflow.config.paths import VIRTUAL_ROOT, Paths
from deerflow.files.archive import zip_files
from deerflow.files.artifacts import regular_files
from deerflow.files.directories import file_requests, thread_files
from deerflow.files.pump import pieces_off_loop
from deerflow.identity import Principal
from deerflow.sandbox.interface import OUTPUTS, UPLOADS
from deerflow.threads.transcript import TranscriptView


class ThreadArchive:
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
