"""Where the files of a thread lie on this machine, by the paths that the agent sees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE

if TYPE_CHECKING:
    from deerflow.config import Paths


def thread_folders(paths: Paths, thread_id: str) -> dict[str, Path]:
    """The directories of one of the local user's threads, by their virtual path."""
    user = LOCAL_PRINCIPAL.user_id
    return {
        OUTPUTS: paths.outputs(thread_id, user),
        WORKSPACE: paths.workspace(thread_id, user),
        UPLOADS: paths.uploads(thread_id, user),
    }


def file_sizes(folders: Mapping[str, Path]) -> dict[str, int]:
    """Bytes of all regular files, by virtual path. Links are not followed: what they point to may lie outside."""
    sizes = {}
    for virtual, folder in folders.items():
        for parent, _directories, names in os.walk(folder):
            for path in (Path(parent, name) for name in names):
                if path.is_file() and not path.is_symlink():
                    sizes[f"{virtual}/{path.relative_to(folder)}"] = path.stat().st_size
    return sizes
