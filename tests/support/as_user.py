"""As root: run a command as an ordinary user, even if the code lies where only root may look.

``python as_user.py UID PATH... -- COMMAND``. Every PATH is made reachable in a private mount namespace: a parent that
others may not pass is covered by an empty directory in which only the way to PATH exists.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) < 0:
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def barrier(path: Path) -> Path | None:
    """The outermost directory on the way to ``path`` that others may not pass."""
    return next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001), None)


def open_ways(paths: list[Path]) -> None:
    closed: dict[Path, list[tuple[Path, int]]] = {}
    for path in paths:
        if (directory := barrier(path)) is not None:
            closed.setdefault(directory, []).append((path, os.open(path, os.O_PATH)))
    for directory, hidden in closed.items():
        mount("tmpfs", str(directory), "tmpfs", 0, "mode=755")
        for path, descriptor in hidden:
            path.mkdir(parents=True, exist_ok=True)
            mount(f"/proc/self/fd/{descriptor}", str(path), None, MS_BIND | MS_REC)


def main(uid: int, paths: list[Path], command: list[str]) -> None:
    if libc.unshare(CLONE_NEWNS) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    open_ways(paths)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.execvp(command[0], command)


if __name__ == "__main__":
    separator = sys.argv.index("--")
    main(int(sys.argv[1]), [Path(path).resolve() for path in sys.argv[2:separator]], sys.argv[separator + 1 :])
