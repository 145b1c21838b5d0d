"""The text of documents, made in the background as they are uploaded, if ``uploads.auto_convert_documents`` says so."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from sqlalchemy import Connection

from deerflow.capability import Capability
from deerflow.config import AppConfig
from deerflow.context import RunContext
from deerflow.features.documents.view import DocumentState
from deerflow.identity import Principal
from deerflow.sandbox.documents import CONVERTED, markdown_of
from deerflow.sandbox.interface import UPLOADS, SandboxFileError, SandboxFileNotFoundError
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.tasks.jobs import NEVER, Job, KeptError, enqueue
from deerflow.uploads import Upload

DOCUMENT = "document"
"""The kind of job."""


class DocumentService(Capability):
    """Also the handler of ``document`` jobs.

    Args:
        config: the snapshot now in force.
        context: that of a run in a thread of a person.
        wake: called when there is a job.
    """

    name = "documents"

    def __init__(
        self,
        database: Database,
        config: Callable[[], Awaitable[AppConfig]],
        context: Callable[[str, Principal], Awaitable[RunContext]],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._config = config
        self._context = context
        self._wake = wake
        self.jobs = {DOCUMENT: self}

    async def begin(self, principal: Principal, thread_id: str, uploads: Sequence[Upload]) -> None:
        """Ask for the text of what was uploaded."""
        names = [upload.filename for upload in uploads if is_document(upload.filename)]
        config = await self._config()
        if not names or not config.uploads.auto_convert_documents:
            return

        def ask(connection: Connection) -> None:
            for name in names:
                payload = {"user_id": principal.user_id, "thread_id": thread_id, "filename": name}
                enqueue(connection, DOCUMENT, _key(thread_id, name), payload)

        await self._database.write(ask)
        self._wake()

    async def __call__(self, job: Job) -> None:
        thread_id, name = job.payload["thread_id"], job.payload["filename"]
        context = await self._context(thread_id, Principal(job.payload["user_id"], source="internal"))
        try:
            user = context.principal.user_id
            await markdown_of(await context.sandbox(), f"{UPLOADS}/{name}", context.reader(), user)
        except SandboxFileNotFoundError:
            return
        except SandboxFileError as error:
            raise KeptError(str(error)) from error

    async def states(self, thread_id: str, uploads: Sequence[Upload]) -> dict[str, DocumentState]:
        """Return what became of the documents among the uploads, by name."""
        names = {upload.filename for upload in uploads}
        documents = [name for name in names if is_document(name)]
        if not documents:
            return {}
        query = f"SELECT key, due_at, error FROM jobs WHERE kind = ? AND key IN ({', '.join('?' * len(documents))})"
        keys = [_key(thread_id, name) for name in documents]
        rows = await self._database.read(lambda connection: sql.execute(connection, query, DOCUMENT, *keys).fetchall())
        errors = {key: error if sql.moment(due_at) == NEVER else None for key, due_at, error in rows}
        found: dict[str, DocumentState] = {}
        for name, key in zip(documents, keys, strict=True):
            if error := errors.get(key):
                found[name] = {"conversion": "failed", "conversion_error": error}
            elif key in errors:
                found[name] = {"conversion": "running"}
            elif f"{name}.md" in names:
                path, url = f"{UPLOADS}/{name}.md", f"/api/threads/{thread_id}/artifacts{UPLOADS}/{quote(name)}.md"
                found[name] = {
                    "conversion": "done",
                    "markdown_file": f"{name}.md",
                    "markdown_path": path,
                    "markdown_virtual_path": path,
                    "markdown_artifact_url": url,
                }
        return found


def is_document(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in CONVERTED


def _key(thread_id: str, name: str) -> str:
    return f"{thread_id}/{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"
