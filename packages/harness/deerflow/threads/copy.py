"""Copying what a thread's sandbox wrote, while it may still be writing."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def copy_tree(source: Path, target: Path) -> None:
    """Copy regular files, directories and links (as links) below ``source`` to ``target``, which is made. Blocks.

    The source belongs to a sandbox: nothing is followed, whatever it swaps meanwhile, and what is no file is left out.
    """
    if not source.is_dir():
        return
    for parent, directories, files, parent_fd in os.fwalk(source, follow_symlinks=False):
        made = target / Path(parent).relative_to(source)
        made.mkdir(parents=True, exist_ok=True)
        for name in directories + files:
            _copy_entry(name, parent_fd, made / name)


def _copy_entry(name: str, parent_fd: int, target: Path) -> None:
    try:
        if stat.S_ISLNK(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode):
            target.symlink_to(os.readlink(name, dir_fd=parent_fd))
            return
        # NONBLOCK, since a pipe without a writer would keep us waiting.
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent_fd)
    except OSError:
        return  # vanished or swapped
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return
        with os.fdopen(opened, "rb", closefd=False) as read, target.open("xb") as write:
            shutil.copyfileobj(read, write)
        target.chmod(stat.S_IMODE(status.st_mode) & 0o777)
    finally:
        os.close(opened)
