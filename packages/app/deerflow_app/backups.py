"""Backups on a schedule: archives in a directory, made by a process of their own while the server works.

Nothing is kept about them: the newest archive says when the next one is due, to each process that shares the directory.
"""

from __future__ import annotations

import calendar
import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from deerflow.storage.backup import WORK_PREFIX
from deerflow_app.gateway import held

if TYPE_CHECKING:
    from deerflow.config import AppConfig

logger = logging.getLogger(__name__)

LOOK_SECONDS = 60
_STAMP = "%Y%m%dT%H%M%SZ"
_COMMAND = (sys.executable, "-m", "deerflow_app.cli.main", "backup")


def keep_making(config_now: Callable[[], AppConfig]) -> None:
    """Make what is due until the process ends, on a thread of its own."""

    def work() -> None:
        while True:
            try:
                make_due(config_now())
            except Exception:
                logger.exception("The backup that was due could not be made; the next try is in a minute.")
            time.sleep(LOOK_SECONDS)

    threading.Thread(target=work, name="backups", daemon=True).start()


def make_due(config: AppConfig) -> Path | None:
    """Return the archive that was due, or None if there is one that is new enough. Deletes what is more than kept. Blocks.

    Raises:
        OSError: the directory cannot be used.
        RuntimeError: the backup failed; the message says why.
    """
    if config.backups.directory is None:
        return None
    directory = config.origin.project_root / Path(config.backups.directory).expanduser()
    directory.mkdir(0o700, parents=True, exist_ok=True)
    with held(directory) as is_ours:
        if not is_ours or not _is_due(directory, config.backups.every_hours):
            return None
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
            old.unlink()
        logger.info("A backup was made: %s", target)
        return target


def _archives(directory: Path) -> list[Path]:
    """Return what was made here, the oldest first. Archives of other names are left alone."""
    return sorted(directory.glob("deerflow-????????T??????Z.tar.zst"))


def _is_due(directory: Path, every_hours: float) -> bool:
    archives = _archives(directory)
    if not archives:
        return True
    newest = archives[-1].name.removeprefix("deerflow-").removesuffix(".tar.zst")
    made = calendar.timegm(time.strptime(newest, _STAMP))
    return not 0 <= time.time() - made < every_hours * 3600  # one of the future was made by a wrong clock
