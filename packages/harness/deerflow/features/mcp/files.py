"""The files of a thread, for servers that work on them: one program for each thread that calls such a server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, Mount, sandbox_id

if TYPE_CHECKING:
    from deerflow.context import RunContext


@dataclass(frozen=True, slots=True)
class ThreadFiles:
    """Args:
    owner: the id of the thread's sandbox, to whose user on the host the files belong.
    directory: on the host, of the thread; no sandbox of the thread sees it.
    mounts: workspace, outputs, and uploads read-only.
    """

    owner: str
    directory: Path
    mounts: tuple[Mount, ...]


def files_of(context: RunContext | None) -> ThreadFiles | None:
    """Return the files of a run's thread; None: it has none on this machine."""
    if context is None or (policy := context.machine.policy).home is None:
        return None
    mounts = [mount for mount in policy.mounts if mount.path in (WORKSPACE, UPLOADS, OUTPUTS)]
    if not mounts:
        return None
    return ThreadFiles(
        sandbox_id(context.thread_id, context.principal.user_id),
        policy.home.parent / "mcp",
        tuple(replace(mount, read_only=mount.path == UPLOADS) for mount in mounts),
    )
