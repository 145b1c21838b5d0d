"""Finding and killing everything that a command started, on a host without namespaces.

Members are found by descent, by session and by a mark in their environment, so ``nohup``, ``setsid`` and daemons are
found too. A process that changes all three on purpose escapes: this is tidiness, not isolation.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MARK = "DEERFLOW_COMMAND"
_ROUNDS = 100
_CALM_LOOKS = 3


def kill_tree(leaders: Iterable[int], mark: str, *, ended_leaders: Iterable[int] = (), grace: float) -> None:
    """End the sessions of ``leaders`` and every process whose mark begins with ``mark``. Blocks.

    ``ended_leaders`` led sessions in which something may still run; a number that is in use again is left alone.

    SIGTERM first; after ``grace`` seconds SIGKILL, repeated until nothing is left.
    """
    known, ended = set(leaders), set(ended_leaders)

    def look() -> set[int]:
        return _members(known, ended, mark)

    members = look()
    if grace > 0 and members:
        _signal(members, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and (members := look()):
            time.sleep(0.05)
    calm = 0
    for _ in range(_ROUNDS):
        # In the middle of an exec a process shows no environment: one empty look proves nothing.
        calm = 0 if members else calm + 1
        if calm == _CALM_LOOKS:
            return
        # Stopped first, so that nothing forks away between the look and the kill.
        _signal(members, signal.SIGSTOP)
        _signal(members, signal.SIGKILL)
        time.sleep(0.01)
        members = look()


def _members(leaders: set[int], ended: set[int], mark: str) -> set[int]:
    table = list(_processes(mark))
    leaders = leaders | (ended - {pid for pid, *_ in table})
    found = {pid for pid, _, session, marked in table if pid in leaders or session in leaders or marked}
    while more := {pid for pid, parent, _, _ in table if parent in found} - found:
        found |= more
    found.discard(os.getpid())
    return found


def _processes(mark: str) -> Iterator[tuple[int, int, int, bool]]:
    """(pid, parent, session, marked) of every process that is not a zombie."""
    proc = Path("/proc")
    if not (proc / "self/stat").exists():
        yield from _from_ps()
        return
    needle = f"{MARK}={mark}".encode()
    for entry in os.scandir(proc):
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):
            # The name in parentheses may itself hold spaces and parentheses.
            fields = Path(entry.path, "stat").read_bytes().rpartition(b") ")[2].split()
            if fields[0] == b"Z":
                continue
            yield int(entry.name), int(fields[1]), int(fields[3]), _is_marked(entry.path, needle)


def _is_marked(process: str, needle: bytes) -> bool:
    try:
        return any(entry.startswith(needle) for entry in Path(process, "environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def _from_ps() -> Iterator[tuple[int, int, int, bool]]:
    listing = subprocess.run(["ps", "-axo", "pid=,ppid=,pgid="], capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        with suppress(ValueError):
            pid, parent, group = map(int, line.split())
            yield pid, parent, group, False


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)
