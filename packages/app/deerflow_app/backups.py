"""Backups on a schedule: archives in a directory and in a bucket, made by a process of their own while the server works.

Nothing else is kept about them: the newest archive says when the next one is due, to each process that shares the directory.
"""

from __future__ import annotations

import calendar
import logging
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deerflow.config import Paths
from deerflow.config.document import write_text
from deerflow.storage.backup import WORK_PREFIX
from deerflow_app.bucket import Bucket, BucketError
from deerflow_app.gateway import held

if TYPE_CHECKING:
    from deerflow.config import AppConfig

logger = logging.getLogger(__name__)

LOOK_SECONDS, LONGEST_PAUSE = 60.0, 3600.0
ARCHIVE = re.compile(r"deerflow-(\d{8}T\d{6}Z)\.tar\.zst")
"""Names of archives that are made here. Others are left alone."""
UPLOADED = ".uploaded"
"""A file beside the archives that names the bucket and the last archive there, so that it need not be asked each minute."""
_STAMP = "%Y%m%dT%H%M%SZ"
_COMMAND = (sys.executable, "-m", "deerflow_app.cli.main", "backup")


def keep_making(config_now: Callable[[], AppConfig]) -> None:
    """Make what is due until the process ends, on a thread of its own."""

    def work() -> None:
        pause = LOOK_SECONDS
        while True:
            try:
                make_due(config_now())
                pause = LOOK_SECONDS
            except Exception as error:
                # The sentence of a BucketError says all that a trace would.
                trace = None if isinstance(error, BucketError) else error
                pause = min(2 * pause, LONGEST_PAUSE)
                text = "The backup that was due could not be made; the next try is in %d minutes: %s"
                logger.error(text, pause / 60, error, exc_info=trace)
            time.sleep(pause)

    threading.Thread(target=work, name="backups", daemon=True).start()


def newest(config: AppConfig) -> dict[str, float]:
    """Return when the newest archive of each place was made, in seconds since the epoch; 0 if none can be seen. Blocks."""
    places = {"directory": config.backups.directory, "bucket": config.backups.bucket}
    found = {name: 0.0 for name, place in places.items() if place is not None}
    if not found:
        return {}
    directory = _directory(config)
    with suppress(OSError):
        if "bucket" in found:
            found["bucket"] = _made([_uploaded(directory)[1]])
        if "directory" in found:
            found["directory"] = _made(_archives(directory))
    return found


def make_due(config: AppConfig) -> Path | str | None:
    """Return the archive that was due, or None if there is one that is new enough. Deletes what is more than kept. Blocks.

    Returns:
        Its address, if it lies in the bucket alone.

    Raises:
        OSError: the directory cannot be used.
        RuntimeError: the backup failed; the message says why.
        BucketError: the archive lies in the directory, and could not be put into the bucket.
    """
    backups, directory = config.backups, _directory(config)
    if backups.directory is None and backups.bucket is None:
        return None
    directory.mkdir(0o700, parents=True, exist_ok=True)
    with held(directory) as is_ours:
        if not is_ours:
            return None
        made: Path | str | None = None
        if backups.directory is not None and _is_due(_archives(directory), backups.every_hours):
            made = _make(config, directory)
        if backups.bucket is not None:
            with closing(Bucket.of(config)) as bucket:
                made = _upload(config, directory, bucket) or made
        return made


def _directory(config: AppConfig) -> Path:
    """Return where archives are made; that for a bucket alone is in no backup."""
    if config.backups.directory is None:
        return Paths().base_dir / f"{WORK_PREFIX}backups"
    return config.origin.project_root / Path(config.backups.directory).expanduser()


def _make(config: AppConfig, directory: Path) -> Path:
    for leftover in directory.glob(f"{WORK_PREFIX}*"):  # of one that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    target = directory / f"deerflow-{time.strftime(_STAMP, time.gmtime())}.tar.zst"
    # Here it would close the SQLite file, and drop the server's locks on it.
    file = config.origin.config_file
    command = [*_COMMAND, str(target), *(["--config", str(file)] if file else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    for old in _archives(directory)[: -config.backups.keep]:
        (directory / old).unlink()
    logger.info("A backup was made: %s", target)
    return target


def _upload(config: AppConfig, directory: Path, bucket: Bucket) -> Path | str | None:
    """Put the newest archive into the bucket if that is due; make one if there is none that is new enough."""
    hours = config.backups.every_hours
    where, name = _uploaded(directory)
    if where == str(bucket) and not _is_due([name], hours):
        return None
    there = matching(bucket.names())
    if not _is_due(there, hours):
        write_text(directory / UPLOADED, f"{bucket}\n{there[-1]}", 0o600)
        return None
    here = _archives(directory)
    file = _make(config, directory) if _is_due(here, hours) else directory / here[-1]
    with suppress(BucketError):  # a storage may not offer it, or not to this key
        bucket.clear()
    bucket.put(file, file.name)
    write_text(directory / UPLOADED, f"{bucket}\n{file.name}", 0o600)
    logger.info("A backup was uploaded: %s%s", bucket, file.name)
    for old in matching(bucket.names())[: -config.backups.keep]:
        bucket.delete(old)
    if config.backups.directory is not None:
        return file
    for own in _archives(directory):
        (directory / own).unlink()
    return f"{bucket}{file.name}"


def _uploaded(directory: Path) -> tuple[str, str]:
    """Return the bucket and the archive of the last upload."""
    note = directory / UPLOADED
    where, _, name = (note.read_text() if note.exists() else "").partition("\n")
    return where, name


def _archives(directory: Path) -> list[str]:
    return matching(file.name for file in directory.iterdir())


def matching(names: Iterable[str]) -> list[str]:
    """Return the names of archives that are made here, the oldest first."""
    return sorted(name for name in names if ARCHIVE.fullmatch(name))


def _made(archives: Sequence[str]) -> float:
    """Return when the last of these archives was made; 0 if there is none."""
    last = ARCHIVE.fullmatch(archives[-1]) if archives else None
    return calendar.timegm(time.strptime(last[1], _STAMP)) if last else 0


def _is_due(archives: Sequence[str], every_hours: float) -> bool:
    """Return whether the last of these archives is too old. One of the future was made by a wrong clock."""
    return not 0 <= time.time() - _made(archives) < every_hours * 3600
