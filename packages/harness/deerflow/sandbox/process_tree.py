"""Processes by descent, as the host's /proc shows them, or where there is none, ``ps``."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from deerflow.sandbox.supervisor import ProcessTable

KILL_ROUNDS = 100


def process_tree(pid: int, most: int | None = None) -> list[int]:
    """``pid`` and everything below it, parents first; no further than ``most`` of them and one."""
    found, waiting = [], [pid]
    while waiting and (most is None or len(found) <= most):
        current = waiting.pop()
        found.append(current)
        waiting += _children(current)
    return found


def kill_tree(pid: int, uid: int | None = None, spared: int = 1) -> None:
    """Kill everything below ``pid``, and with a ``uid`` of the sandbox's own whatever else runs under it. Blocks.

    The first ``spared`` processes of the tree, parents first, live on.
    """
    for _ in range(KILL_ROUNDS):
        victims = set(process_tree(pid)[spared:])
        if uid is not None:
            victims |= _processes_of(uid) - {pid}
        if not victims:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for victim in victims:
                with contextlib.suppress(OSError):
                    os.kill(victim, number)
        time.sleep(0.005)


def _processes_of(uid: int) -> set[int]:
    found: set[int] = set()
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"\nUid:\t{uid}\t" in (status := (directory / "status").read_text()) and "\nState:\tZ" not in status:
                found.add(int(directory.name))
    return found


def _children(pid: int) -> list[int]:
    if not Path("/proc/self").exists():
        return ProcessTable().children.get(pid, [])
    children: list[int] = []
    try:
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            children += map(int, file.read_text().split())
    except OSError:
        pass
    return children
