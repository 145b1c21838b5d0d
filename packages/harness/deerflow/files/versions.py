"""What runs did to a thread's files, and what delivered files held before: kept beside the sandbox's directories.

::

    users/{user}/threads/{thread}/versions/{manifest.json, lock, blobs/{sha256}}

The directory is none of the sandbox's. Everything in it is bounded; it goes with the thread and is part of its backup.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field, ValidationError

from deerflow.config import Paths
from deerflow.files.content import thread_files
from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import OUTPUTS, WORKSPACE, Entry, SandboxFileError
from deerflow.storage.tables import utc_now

if TYPE_CHECKING:
    from deerflow.storage.runs import Run

logger = logging.getLogger(__name__)

MAX_FILES = 5000
"""Looked at in each directory."""
MAX_RUNS = 200
MAX_CHANGES = 500
"""Told of one run."""
MAX_VERSIONS = 30
"""Of one file."""
MAX_VERSION_BYTES = 8 << 20
MAX_STORED_BYTES = 64 << 20
"""Of one thread."""
MAX_DIFF_BYTES = 256 << 10
"""Of one text, and of all diffs of a run."""

_DEPTH = 32
_CHUNK = 1 << 20
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC

Change = Literal["created", "modified", "deleted"]


class FileChange(BaseModel):
    path: str
    change: Change
    size: int = Field(description="Bytes; of a deleted file those that it had.")
    diff: str | None = Field(
        default=None,
        exclude_if=lambda diff: diff is None,
        description="Unified; of a delivered text, if it was asked for.",
    )


class RunChanges(BaseModel):
    run_id: str
    ended_at: datetime
    files: list[FileChange]
    truncated: bool = Field(default=False, description="It changed more files than are listed.")


class Version(BaseModel):
    version: int
    run_id: str | None = Field(description="The run that left the file like this; null: a person, or from before.")
    created_at: datetime
    size: int
    blob: str


class _Seen(BaseModel):
    size: int
    modified: float
    blob: str | None = None

    def is_of(self, entry: Entry) -> bool:
        return (self.size, self.modified) == (entry.size, entry.modified)


class _Manifest(BaseModel):
    scanned: bool = False
    """A run has ended since this is kept: what is not in ``seen`` was not there."""
    seen: dict[str, _Seen] = {}
    versions: dict[str, list[Version]] = {}
    runs: list[RunChanges] = []


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


class FileVersions:
    """Those of one thread. Every method blocks; several processes may work on one thread's at a time.

    Args:
        directory: made when needed, if the thread's own exists.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._blobs = directory / "blobs"

    def record_run(self, files: SandboxFiles, run_id: str, *, since: datetime | None) -> RunChanges | None:
        """Compare the files with what they were, and keep delivered ones that changed. None if nothing did.

        Args:
            since: when the run began. If nothing is known of the thread yet, older files are taken as they are.

        Raises:
            OSError: it could not be written, as when the thread was deleted.
        """
        found, complete = _listed(files)
        if not found and not self._directory.is_dir():
            return None
        with self._changing() as manifest:
            began = None if manifest.scanned or since is None else since.timestamp() - 1
            manifest.scanned = True
            changes: list[FileChange] = []
            for path, entry in found.items():
                before = manifest.seen.get(path)
                if before is not None and before.is_of(entry):
                    continue
                older = before is None and began is not None and _inode_changed(files, entry) < began
                if self._take(manifest, files, entry, None if older else run_id) and not older:
                    kind: Change = "created" if before is None else "modified"
                    changes.append(FileChange(path=path, change=kind, size=entry.size))
            if complete:
                for path in manifest.seen.keys() - found.keys():
                    gone = manifest.seen.pop(path)
                    changes.append(FileChange(path=path, change="deleted", size=gone.size))
            if not changes:
                return None
            return _noted(manifest, run_id, changes)

    def record_edit(self, files: SandboxFiles, path: str) -> None:
        """A person is about to replace the file, or has done so: keep it as it is. Raises as ``record_run``."""
        entry = files.stat(path)
        if entry is None or entry.kind != "file" or not _is_text(path):
            return
        with self._changing() as manifest:
            seen = manifest.seen.get(path)
            if seen is None or not seen.is_of(entry):
                self._take(manifest, files, entry, None)

    def changes(self) -> list[RunChanges]:
        """What runs did, the newest first; runs that changed nothing are left out."""
        return self._read().runs[::-1]

    def with_diffs(self, done: RunChanges) -> RunChanges:
        """Return the changes of a run with diffs of those texts whose versions are kept."""
        kept, left, files = self._read().versions, MAX_DIFF_BYTES, list[FileChange]()
        for file in done.files:
            diff = self._diff(kept.get(file.path, []), done.run_id, is_new=file.change == "created")
            left -= len(diff or "")
            files.append(file.model_copy(update={"diff": diff if left >= 0 else None}))
        return done.model_copy(update={"files": files})

    def _diff(self, kept: list[Version], run_id: str, *, is_new: bool) -> str | None:
        at = next((index for index, version in enumerate(kept) if version.run_id == run_id), None)
        if at is None or (at == 0 and not is_new):
            return None
        before, after = kept[at - 1] if at else None, kept[at]
        if any(version.size > MAX_DIFF_BYTES for version in (before, after) if version is not None):
            return None
        try:
            texts = [(self._blobs / version.blob).read_text("utf-8") if version else "" for version in (before, after)]
        except (OSError, UnicodeDecodeError):
            return None
        old, new = (text.splitlines() for text in texts)
        return "".join(f"{line}\n" for line in unified_diff(old, new, "before", "after", lineterm=""))

    def versions(self, path: str) -> list[Version]:
        """What is kept of a file, the newest first."""
        return self._read().versions.get(path, [])[::-1]

    def open(self, path: str, version: int) -> int:
        """A descriptor of what the file held. Raises FileNotFoundError if that is not kept (any more)."""
        for kept in self._read().versions.get(path, []):
            if kept.version == version:
                return os.open(self._blobs / kept.blob, os.O_RDONLY | _SAFE)
        raise FileNotFoundError(path)

    # the store --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self) -> Iterator[_Manifest]:
        """The manifest, alone; written at the end if something in it has changed."""
        for directory in (self._directory, self._blobs):
            with suppress(FileExistsError):
                directory.mkdir(0o700)
        lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | _SAFE, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = self._read()
            before = manifest.model_dump_json()
            yield manifest
            self._drop(manifest)
            after = manifest.model_dump_json()
            if after != before:
                temporary = self._directory / f".{secrets.token_hex(8)}"
                temporary.write_text(after, "utf-8")
                temporary.replace(self._directory / "manifest.json")
                self._sweep(manifest)
        finally:
            os.close(lock)

    def _read(self) -> _Manifest:
        try:
            fd = os.open(self._directory / "manifest.json", os.O_RDONLY | _SAFE)
        except FileNotFoundError:
            return _Manifest()
        with os.fdopen(fd, "rb") as file:
            try:
                return _Manifest.model_validate_json(file.read())
            except ValidationError:
                logger.warning("What was kept of the files below %s cannot be read; begun anew.", self._directory)
                return _Manifest()

    def _take(self, manifest: _Manifest, files: SandboxFiles, entry: Entry, run_id: str | None) -> bool:
        """Note the file as it is now, with its content if it is a delivered one. False: it is what it was."""
        before = manifest.seen.get(entry.path)
        blob = self._keep(files, entry) if entry.path.startswith(OUTPUTS + "/") else None
        manifest.seen[entry.path] = _Seen(size=entry.size, modified=entry.modified, blob=blob)
        if blob is None:
            return True
        kept = manifest.versions.setdefault(entry.path, [])
        # Deleted and made anew just as it was: no other version, but a change all the same.
        if not kept or kept[-1].blob != blob:
            number = kept[-1].version + 1 if kept else 1
            size = (self._blobs / blob).stat().st_size
            kept.append(Version(version=number, run_id=run_id, created_at=utc_now(), size=size, blob=blob))
        return before is None or before.blob != blob

    def _keep(self, files: SandboxFiles, entry: Entry) -> str | None:
        """Copy a delivered file into the store. None: too large, gone meanwhile, or no room."""
        if entry.size > MAX_VERSION_BYTES:
            return None
        temporary = self._blobs / f".{secrets.token_hex(8)}"
        try:
            source = files.open_fd(entry.path, below=OUTPUTS)
            try:
                name = _copied(source, temporary)
            finally:
                os.close(source)
            if name is not None:
                temporary.replace(self._blobs / name)
            return name
        except (SandboxFileError, OSError) as error:
            logger.info("No version is kept of %s: %s", entry.path, error)
            return None
        finally:
            temporary.unlink(missing_ok=True)

    def _drop(self, manifest: _Manifest) -> None:
        """Forget what is beyond the limits: what was replaced or deleted first, then the oldest."""
        del manifest.runs[:-MAX_RUNS]
        for kept in manifest.versions.values():
            del kept[:-MAX_VERSIONS]

        def worth(item: tuple[str, Version]) -> tuple[bool, datetime]:
            path, version = item
            seen = manifest.seen.get(path)
            return seen is not None and seen.blob == version.blob, version.created_at

        every = sorted(((path, kept) for path, all_kept in manifest.versions.items() for kept in all_kept), key=worth)
        users: dict[str, int] = {}
        for _, kept in every:
            users[kept.blob] = users.get(kept.blob, 0) + 1
        total = sum({kept.blob: kept.size for _, kept in every}.values())
        for path, oldest in every:
            if total <= MAX_STORED_BYTES:
                break
            manifest.versions[path].remove(oldest)
            users[oldest.blob] -= 1
            total -= 0 if users[oldest.blob] else oldest.size
        manifest.versions = {path: kept for path, kept in manifest.versions.items() if kept}

    def _sweep(self, manifest: _Manifest) -> None:
        used = {kept.blob for all_kept in manifest.versions.values() for kept in all_kept}
        for blob in self._blobs.iterdir():
            if blob.name not in used:
                blob.unlink(missing_ok=True)


def _listed(files: SandboxFiles) -> tuple[dict[str, Entry], bool]:
    """Regular files by path, and whether these are all. Names that are no text are left out."""
    found: dict[str, Entry] = {}
    complete = True
    for directory in (OUTPUTS, WORKSPACE):
        try:
            entries, cut = files.list(directory, _DEPTH, MAX_FILES)
        except SandboxFileError:
            complete = complete and files.stat(directory) is None
            continue
        complete = complete and not cut
        found |= {entry.path: entry for entry in entries if entry.kind == "file" and _is_text(entry.path)}
    return found, complete


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _inode_changed(files: SandboxFiles, entry: Entry) -> float:
    """When the file came to be here; its own time may be that of the archive it was unpacked from."""
    try:
        fd = files.open_fd(entry.path)
    except (SandboxFileError, OSError):
        return entry.modified
    try:
        return os.fstat(fd).st_ctime
    finally:
        os.close(fd)


def _copied(source: int, target: Path) -> str | None:
    """Copy and return the SHA-256 of what was copied; None if it is larger than is kept."""
    digest, size = hashlib.sha256(), 0
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600)
    with os.fdopen(fd, "wb") as out:
        while chunk := os.read(source, _CHUNK):
            size += len(chunk)
            if size > MAX_VERSION_BYTES:
                return None
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest()


def _noted(manifest: _Manifest, run_id: str, changes: list[FileChange]) -> RunChanges:
    changes.sort(key=lambda change: change.path)
    noted = RunChanges(
        run_id=run_id, ended_at=utc_now(), files=changes[:MAX_CHANGES], truncated=len(changes) > MAX_CHANGES
    )
    manifest.runs.append(noted)
    return noted
