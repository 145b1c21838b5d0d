# Descriptors and system calls, not path objects: it runs where the file system cannot be trusted yet.
# ruff: noqa: PTH102
"""As root: build a private view of the bind sources, become the sandbox's uid for good, then start the sandbox.

Run as a script: ``python -I -S -B root_launcher.py UID STAGE MODULE [SOURCE ...] -- ARGUMENTS``.

    UID     the host uid and gid to become; never 0
    STAGE   directory to mount the private view on, or empty
    MODULE  path of a launcher to go on with in this process, by prepare(ARGUMENTS)(); empty: ARGUMENTS is executed
    SOURCE  host directories, bound as 0, 1, ... below STAGE

Every shell waits for this start, so it imports as little as possible.

bwrap as uid 0 is escapable: procfs judges by the kernel's uid, so root inside could write core_pattern whatever its
capabilities. A mount namespace of our own lets the sandbox use directories below others that only root may enter.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_SLAVE = 2, 4, 4096, 16384, 1 << 19
PR_SET_DUMPABLE = 4

libc = ctypes.CDLL(None, use_errno=True)


def fail(what: str) -> NoReturn:
    raise SystemExit(f"root launcher: {what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) < 0:
        fail(f"mount {source or kind} on {target}")


def stage(directory: str, sources: list[str]) -> None:
    """Bind every source below ``directory``, visible to this process and its children only."""
    if libc.unshare(CLONE_NEWNS) < 0:
        fail("private mount namespace")
    mount(None, "/", None, MS_SLAVE | MS_REC)
    # Sources first: one of them may lie below the directory that is about to be covered.
    opened = [os.open(source, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC) for source in sources]
    mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    for name, source in enumerate(opened):
        target = f"{directory}/{name}"
        os.mkdir(target, 0o755)
        mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)
        os.close(source)


def become(uid: int) -> None:
    if uid <= 0:
        raise SystemExit("root launcher: refusing to start a sandbox as uid 0")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if os.getuid() == 0 or os.geteuid() == 0:
        raise SystemExit("root launcher: the uid could not be dropped")
    # Changing the uid made /proc/self root's; a launcher in this process has to write its uid_map there.
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def load(path: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("launcher", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"root launcher: {path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(uid: int, directory: str, module: str, sources: list[str], arguments: list[str]) -> NoReturn:
    # Modules and the interpreter may be readable for root only: load before the uid is gone.
    enter = load(module).prepare(arguments) if module else None
    if directory:
        stage(directory, sources)
    become(uid)
    if enter is not None:
        enter()
    os.execve(arguments[0], arguments, {})


if __name__ == "__main__":
    end = sys.argv.index("--")
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:end], sys.argv[end + 1 :])
