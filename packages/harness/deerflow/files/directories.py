"""The files of a thread seen from outside of a run: the name space of its sandbox, without the sandbox."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deerflow.config.paths import VIRTUAL_ROOT, Paths
from deerflow.errors import ForbiddenError, NotFoundError, RequestError
from deerflow.sandbox.files import SandboxFiles, SandboxNoSpaceError, SandboxNotADirectoryError, shown_path
from deerflow.sandbox.interface import (
    OUTPUTS,
    UPLOADS,
    WORKSPACE,
    Entry,
    Mount,
    SandboxFileError,
    SandboxFileNotFoundError,
    SandboxPermissionError,
)

MAX_LISTED = 5000
_DEPTH = 32


class DiskFullError(RequestError):
    status = 507
    code = "disk_full"


@contextmanager
def thread_files(paths: Paths, thread_id: str, user_id: str) -> Iterator[SandboxFiles]:
    """The thread's directories under their virtual paths, with the rights of their sandbox's user. Blocks."""
    mounts = [
        Mount(paths.workspace(thread_id, user_id), WORKSPACE),
        Mount(paths.uploads(thread_id, user_id), UPLOADS),
        Mount(paths.outputs(thread_id, user_id), OUTPUTS),
    ]
    files = SandboxFiles(mounts, owner=_owner(mounts[-1].host))
    try:
        yield files
    finally:
        files.close()


def _owner(directory: Path) -> int | None:
    """As root: the user that the thread's sandbox runs as. Root's own rights would open more than the sandbox may."""
    if os.geteuid() != 0:
        return None
    try:
        return directory.stat().st_uid
    except FileNotFoundError:
        return None


def virtual_path(path: str) -> str:
    """``path`` of a request with its leading slash. Raises RequestError (400) if it is not below ``/mnt/user-data``."""
    virtual = "/" + path.lstrip("/")
    if virtual != VIRTUAL_ROOT and not virtual.startswith(VIRTUAL_ROOT + "/"):
        raise RequestError(f"Path must start with {VIRTUAL_ROOT}", code="invalid_path")
    return virtual


@contextmanager
def file_requests(path: str) -> Iterator[None]:
    """Turn what a file operation raises into the answer to a request for ``path``; no host path is told.

    Raises:
        NotFoundError, ForbiddenError, DiskFullError, RequestError (400): in place of SandboxFileError and OSError.
    """
    try:
        yield
    except (SandboxFileNotFoundError, SandboxNotADirectoryError):
        raise NotFoundError(f"Artifact not found: {shown_path(path)}") from None
    except SandboxPermissionError:
        raise ForbiddenError(f"Access denied: {shown_path(path)} is outside of the thread's files.") from None
    except SandboxNoSpaceError as error:
        raise DiskFullError(str(error)) from None
    except SandboxFileError as error:
        raise RequestError(str(error), code="invalid_path") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError("The server's disk is full. Delete files or ask who runs it for room.") from None
        raise


@dataclass(frozen=True, slots=True)
class Listing:
    """Regular files of a directory, by path. ``truncated``: there are more."""

    files: list[Entry]
    truncated: bool


def regular_files(files: SandboxFiles, root: str) -> Listing:
    """What lies below the directory ``root``, if there is one. Blocks."""
    if files.stat(root) is None:
        return Listing([], False)
    entries, cut = files.list(root, _DEPTH, MAX_LISTED)
    return Listing([entry for entry in entries if entry.kind == "file"], cut)
