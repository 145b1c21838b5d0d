"""The files of a thread: what goes in, where it lies on this machine, what is copied out."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, SandboxFileError
from deerflow_app.cli.failures import usage_failure

if TYPE_CHECKING:
    from deerflow.config import Paths

DEFAULT_OUT = Path("deerflow-out")


@dataclass(frozen=True, slots=True)
class Delivered:
    """An artifact and the file it was copied to; ``problem`` says why there is none."""

    path: str
    file: Path | None
    problem: str = ""


def host_path(paths: Paths, thread_id: str, virtual: str) -> Path | None:
    """Where a virtual path lies on this machine, for display; None when it is none of the thread's files."""
    for root, folder in thread_folders(paths, thread_id).items():
        if virtual.startswith(root + "/"):
            return folder / virtual[len(root) + 1 :]
    return None


Read = Callable[[str, str], AsyncGenerator[bytes, None]]
"""The content of a thread's file: a client's ``aread_artifact``."""


async def copy_out(read: Read, thread_id: str, artifacts: list[str], folder: Path) -> list[Delivered]:
    """Copy artifacts into ``folder``, which is made if need be. Nothing that exists is overwritten: ``report-1.md``.

    Raises:
        OSError: the folder cannot be made or written.
    """
    return [await _copy(read(thread_id, artifact), artifact, folder) for artifact in artifacts]


async def _copy(pieces: AsyncGenerator[bytes, None], artifact: str, folder: Path) -> Delivered:
    file, target = await asyncio.to_thread(_open_new, folder, PurePosixPath(artifact).name)
    try:
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)
        await asyncio.to_thread(file.close)
    except BaseException as error:
        await asyncio.to_thread(_discard, file, target)
        if isinstance(error, SandboxFileError):
            return Delivered(artifact, None, str(error))
        raise
    return Delivered(artifact, target)


def _discard(file: BinaryIO, target: Path) -> None:
    with contextlib.suppress(OSError):  # a full disk: what was buffered cannot be written either
        file.close()
    target.unlink(missing_ok=True)


def _open_new(folder: Path, name: str) -> tuple[BinaryIO, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    stem, suffix = PurePosixPath(name).stem, PurePosixPath(name).suffix
    for number in itertools.count():
        target = folder / (f"{stem}-{number}{suffix}" if number else name)
        with contextlib.suppress(FileExistsError):
            return target.open("xb"), target.resolve()
    raise AssertionError("counting never ends")


def near(file: Path) -> str:
    """A path as one would type it here: relative below the current folder, with ``~`` below the home."""
    for base, prefix in ((Path.cwd(), ""), (Path.home(), "~/")):
        if file.is_relative_to(base):
            return f"{prefix}{file.relative_to(base)}"
    return str(file)


def human_size(size: float) -> str:
    """``812 B``, ``4.2 KB``, ``1.3 MB``."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KB", "MB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} GB"


def check_files(paths: Iterable[Path]) -> None:
    """Raises CommandFailure for the first path that cannot be given to an agent."""
    for path in paths:
        if path.is_dir():
            raise usage_failure(f"{path} is a directory.", "Name its files one by one, or pack it into an archive.")
        if path.exists() and not path.is_file():
            raise usage_failure(f"{path} is not a regular file.", "Copy what it gives into a file and name that.")
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise usage_failure(f"Cannot read {path}: {error.strerror}.") from error


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


def local_file_sizes(paths: Paths) -> Callable[[str], Awaitable[dict[str, int]]]:
    """For threads whose files are on this machine."""
    return lambda thread_id: asyncio.to_thread(file_sizes, thread_folders(paths, thread_id))
