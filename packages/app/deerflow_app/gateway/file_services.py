"""The services for files, as routes ask for them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from deerflow.files.archive import ThreadArchive
from deerflow.files.artifacts import ArtifactService
from deerflow.files.previews import PreviewService
from deerflow.files.uploads import UploadService
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.deps import CurrentRuntime, CurrentSettings


async def artifact_service(runtime: CurrentRuntime) -> ArtifactService:
    return ArtifactService(runtime.paths, ThreadRepository(runtime.database))


async def thread_archive(runtime: CurrentRuntime) -> ThreadArchive:
    return ThreadArchive(runtime.paths, runtime.threads.transcript)


async def upload_service(runtime: CurrentRuntime) -> UploadService:
    return UploadService(runtime.paths, ThreadRepository(runtime.database))


async def preview_service(runtime: CurrentRuntime, settings: CurrentSettings) -> PreviewService:
    return PreviewService(runtime.paths, ThreadRepository(runtime.database), settings.auth_secret)


CurrentArtifacts = Annotated[ArtifactService, Depends(artifact_service)]
CurrentThreadArchive = Annotated[ThreadArchive, Depends(thread_archive)]
CurrentUploads = Annotated[UploadService, Depends(upload_service)]
CurrentPreviews = Annotated[PreviewService, Depends(preview_service)]
