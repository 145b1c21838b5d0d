"""Changes that runs made to the files of a thread."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from deerflow.files.versions import FileChange, RunChanges
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, ThreadId
from deerflow_app.gateway.routes.files import CurrentArtifacts

router = Router(tags=["artifacts"])


class ChangeSummary(BaseModel):
    created: int
    modified: int
    deleted: int
    total: int


class WorkspaceChanges(BaseModel):
    thread_id: str
    run_id: str
    summary: ChangeSummary
    files: list[FileChange] = Field(description="Empty unless `include_files`.")
    truncated: bool = Field(description="The run changed more files than are counted.")


@router.get("/api/threads/{thread_id}/changes", summary="What each run did to files")
async def list_changes(thread_id: str, principal: CurrentPrincipal, artifacts: CurrentArtifacts) -> list[RunChanges]:
    """Outputs and workspace, the newest run first; runs that changed nothing are left out."""
    return await artifacts.changes(principal, thread_id)


@router.get("/api/threads/{thread_id}/runs/{run_id}/workspace-changes", summary="What a run did to files")
async def run_changes(
    thread_id: ThreadId,
    run_id: str,
    principal: CurrentPrincipal,
    artifacts: CurrentArtifacts,
    runtime: CurrentRuntime,
    include_files: bool = True,
    include_diff: Annotated[bool, Query(description="With unified diffs of delivered texts.")] = False,
) -> WorkspaceChanges:
    """Outputs and workspace. Nothing is known of a run before its end."""
    run = await runtime.runs.get(principal, run_id, thread_id=thread_id)
    found = await artifacts.run_changes(principal, thread_id, run.run_id, with_diffs=include_files and include_diff)
    files = found.files if found is not None else []
    counted = Counter(file.change for file in files)
    return WorkspaceChanges(
        thread_id=thread_id,
        run_id=run_id,
        summary=ChangeSummary(
            created=counted["created"], modified=counted["modified"], deleted=counted["deleted"], total=len(files)
        ),
        files=files if include_files else [],
        truncated=found.truncated if found is not None else False,
    )
