"""Readings of the own process. Linux only: CPU and memory from the kernel, bytes from ``/proc/self/io``."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU seconds of this process, and of its children living and dead."""

    own: float
    children: float

    def since(self, earlier: Cpu) -> Cpu:
        return Cpu(self.own - earlier.own, self.children - earlier.children)


def cpu() -> Cpu:
    dead = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = dead.ru_utime + dead.ru_stime
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        children += times.user + times.system + times.children_user + times.children_system
    return Cpu(time.process_time(), children)


def own_cpu() -> float:
    """CPU seconds of all threads of this process."""
    return time.process_time()


def written() -> int:
    """Bytes that this process handed to ``write()`` so far, also those that a later write replaced.

    Counts a database's journal and its way back into the main file; does not count what is sent to sockets.
    """
    for line in Path("/proc/self/io").read_text().splitlines():
        name, _, value = line.partition(": ")
        if name == "wchar":
            return int(value)
    raise RuntimeError("/proc/self/io has no wchar: this kernel was built without task I/O accounting.")


def resident() -> int:
    """Resident memory of this process in bytes."""
    return psutil.Process().memory_info().rss


def stored(directory: Path) -> int:
    """Bytes of all database files (with journals) below ``directory``."""
    files = (path for path in directory.rglob("*") if ".db" in path.name or ".sqlite" in path.name)
    return sum(path.stat().st_size for path in files if path.is_file())
