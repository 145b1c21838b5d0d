"""What the kernel does not limit by itself is watched from the host: memory of all processes together, disk, and where
it must be the number of processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from deerflow.sandbox.interface import Limits
from deerflow.sandbox.session import Session
from deerflow.sandbox.spawner import process_tree

MEMORY_INTERVAL = 1.0
PROCESS_INTERVAL = 0.2
"""Between two counts, where the kernel does not limit the number of processes."""
DISK_INTERVAL = 5.0
GROWTH_SLACK = 1 << 20
"""A command over the limit may go on while it frees space."""
FLOOR_GROWTH = 64 << 20
"""How much a sandbox must have written to be blamed for a disk that is full for everybody."""
DU_TIMEOUT = 60
MANY_FILES = 100_000
"""How many files a sandbox must hold to be blamed for a file system that has no room for further ones."""
LEAST_FREE_FILES = 0.02
"""Share of a file system's inodes that is left to others."""


class Watch:
    """Watches one session until it ends."""

    def __init__(
        self, session: Session, limits: Limits, directories: Sequence[Path], *, count_processes: bool = False
    ) -> None:
        self._session = session
        self._limits = limits
        self._directories = directories
        self._used: int | None = None
        self._free: int | None = None
        self._files: int | None = None
        self._checked = self._memory_checked = 0.0
        self._most = limits.processes + session.idle_processes if count_processes and limits.processes else None

    async def run(self) -> None:
        """Loop until the session ends."""
        while self._session.alive:
            active = self._session.busy or await self._session.has_background()
            if active and self._most is not None:
                processes = await asyncio.to_thread(process_tree, self._session.pid, self._most)
                if len(processes) > self._most:
                    await self._session.kill_all("processes")
            if active and self._limits.memory_mb and time.monotonic() - self._memory_checked >= MEMORY_INTERVAL:
                self._memory_checked = time.monotonic()
                limit, spared = self._limits.memory_mb << 20, self._session.idle_processes
                if await asyncio.to_thread(kill_largest_over, self._session.pid, limit, spared):
                    self._session.blame("memory")
            if time.monotonic() - self._checked >= DISK_INTERVAL and (
                active or self._session.last_used > self._checked
            ):
                await self._check_disk(active)
            await asyncio.sleep(PROCESS_INTERVAL if active and self._most is not None else MEMORY_INTERVAL)

    async def _check_disk(self, active: bool) -> None:
        self._checked = time.monotonic()
        if await asyncio.to_thread(self._full) and active:
            self._session.kill_commands("disk")
            await self._session.reset(forget=False)

    def _full(self) -> bool:
        before, used = self._used, disk_usage(self._directories)
        free_before, self._free = self._free, min(map(free_space, self._directories), default=0)
        floor = self._limits.min_free_disk_mb << 20
        if used is None:
            # More files than can be counted: they must not hide what is written besides.
            return free_before is not None and self._free < floor and free_before - self._free > GROWTH_SLACK
        self._used = used
        if before is None:
            return False
        limit = self._limits.disk_mb << 20
        if limit and used > limit and used - before > GROWTH_SLACK:
            return True
        if floor and any(map(files_run_out, self._directories)):
            files_before, self._files = self._files, disk_usage(self._directories, count_files=True)
            return self._files is None or (files_before is not None and self._files > max(files_before, MANY_FILES))
        return used - before > FLOOR_GROWTH and self._free < floor


def kill_largest_over(pid: int, limit: int, spared: int = 1) -> bool:
    """Kill the largest process below ``pid`` if all together hold more than ``limit`` bytes; whether one was killed.

    The first ``spared`` processes of the tree are the sandbox itself.
    """
    pids = process_tree(pid)
    # Resident sizes count shared pages once per process: an upper bound that is cheap to read.
    if sum(map(_resident, pids)) <= limit:
        return False
    sizes = {candidate: _proportional(candidate) for candidate in pids}
    if sum(sizes.values()) <= limit:
        return False
    victim = max(pids[spared:], key=lambda one: sizes[one], default=None)
    return victim is not None and _kill_below(pid, victim)


def disk_usage(directories: Sequence[Path], *, count_files: bool = False) -> int | None:
    """Bytes on disk below ``directories``, or the number of files; None if counting takes longer than ``DU_TIMEOUT``.

    ``du`` copes with trees of any depth and follows no link.
    """
    present = [str(directory) for directory in directories if directory.is_dir()]
    if not present:
        return 0
    try:
        run = subprocess.run(
            ["du", "-sx", "--inodes" if count_files else "-k", "--", *present],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DU_TIMEOUT,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    sizes = [line.split("\t")[0] for line in run.stdout.splitlines()]
    return sum(int(size) for size in sizes if size.isdigit()) << (0 if count_files else 10)


def free_space(directory: Path) -> int:
    """Bytes that are free for an ordinary user."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def files_run_out(directory: Path) -> bool:
    """Whether the file system has hardly any inode left for an ordinary user; some have no fixed number of them."""
    status = os.statvfs(directory)
    return status.f_files > 0 and status.f_favail < status.f_files * LEAST_FREE_FILES


def _resident(pid: int) -> int:
    return _sum_fields(f"/proc/{pid}/status", ("RssAnon", "RssShmem"))


def _proportional(pid: int) -> int:
    return _sum_fields(f"/proc/{pid}/smaps_rollup", ("Pss_Anon", "Pss_Shmem")) or _resident(pid)


def _sum_fields(file: str, names: Sequence[str]) -> int:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return 0
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    return sum(int(values[name].split()[0]) << 10 for name in names if name in values)


def _kill_below(root: int, pid: int) -> bool:
    """Kill ``pid`` unless its number has come to belong to somebody outside of the tree."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if pid not in process_tree(root):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
