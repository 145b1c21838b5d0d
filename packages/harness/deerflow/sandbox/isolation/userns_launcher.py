# Descriptors and system calls, not path objects: it runs where the file system cannot be trusted yet.
# ruff: noqa: PTH102, PTH103, PTH108, PTH115, PTH116, PTH120, PTH123, PTH211
"""Does what ``bwrap`` does with the options that our recipe uses, for machines that allow user namespaces but have no bwrap.

Run as a script (``python -I -S -B userns_launcher.py OPTIONS -- COMMAND``) or by ``main(arguments)``. Standard library
only. The order of steps is bubblewrap's: user namespace, other namespaces, new root below a tmpfs, pivot_root, a second
user namespace for the final uid, no capabilities, filter, exec.
"""

from __future__ import annotations

import ctypes
import encodings.idna
import encodings.latin_1
import encodings.unicode_escape  # noqa: F401
import fcntl
import os
import platform
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

Operation = tuple[str, str, str, str | None, str | None]
"""Option, source or nothing, target, permissions, size."""

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC, MS_SILENT = 1024, 2048, 4096, 16384, 32768
MS_SLAVE, MS_RELATIME = 1 << 19, 1 << 21
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUSER = 0x00020000, 0x02000000, 0x10000000
NAMESPACES = {
    "--unshare-user": 0,
    "--unshare-ipc": 0x08000000,
    "--unshare-pid": 0x20000000,
    "--unshare-uts": 0x04000000,
    "--unshare-net": 0x40000000,
    "--unshare-cgroup-try": CLONE_NEWCGROUP,
}
"""The user namespace is made by itself, before the others."""
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 22, 24, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
CAPABILITY_VERSION_3 = 0x20080522
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
CAPSET = {"x86_64": 126, "aarch64": 91}

FLAGS = ("--clearenv", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1")
"""All but the second are what we do in any case."""
VALUES = ("--uid", "--gid", "--seccomp", "--hostname", "--chdir", "--cap-drop", "--perms", "--size")
ONE_OPERAND = ("--proc", "--dev", "--tmpfs", "--remount-ro")
TWO_OPERANDS = ("--bind", "--ro-bind", "--bind-fd", "--ro-bind-fd", "--symlink", "--ro-bind-data")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
BASE, NEW_ROOT, OLD_ROOT = "/tmp", "/newroot", "/oldroot"

libc = ctypes.CDLL(None, use_errno=True)


class LaunchError(Exception):
    """A step that the kernel refused."""


def check(result: int, what: str) -> None:
    if result < 0:
        raise LaunchError(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(
    source: str | None, target: str | bytes, kind: str | None = None, flags: int = 0, data: str | None = None
) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    check(
        libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags | MS_SILENT), texts[3]),
        f"mount {source} on {target}",
    )


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


class LauncherOptions:
    """The parsed command line."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.operations: list[Operation] = []
        self.values: dict[str, str] = {}
        """All options but operations; the value of a flag is its name."""
        queue = list(arguments)
        while (option := queue.pop(0)) != "--":
            if option in FLAGS or option in NAMESPACES:
                self.values[option] = option
            elif option in VALUES:
                self.values[option] = queue.pop(0)
            elif option in ONE_OPERAND or option in TWO_OPERANDS:
                source = queue.pop(0) if option in TWO_OPERANDS else ""
                modifiers = (self.values.pop("--perms", None), self.values.pop("--size", None))
                self.operations.append((option, source, queue.pop(0), *modifiers))
            else:
                raise LaunchError(f"unknown option {option}")
        self.command = queue


def map_ids(uid: int, gid: int, outer_uid: int, outer_gid: int) -> None:
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} {outer_uid} 1\n")
    write("/proc/self/gid_map", f"{gid} {outer_gid} 1\n")


def enter_namespaces(options: LauncherOptions) -> None:
    """A first user namespace with all capabilities over the others. The child is pid 1 of the new pid namespace."""
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWUSER), "new user namespace")
    map_ids(0, 0, uid, gid)
    wanted = CLONE_NEWNS
    for option in NAMESPACES.keys() & options.values.keys():
        wanted |= NAMESPACES[option]
    if libc.unshare(wanted) < 0:
        check(libc.unshare(wanted & ~CLONE_NEWCGROUP), "new namespaces")
    child = os.fork()
    if child:
        wait_for(child)
    socket.sethostname(options.values["--hostname"])
    if "--unshare-net" in options.values:
        with socket.socket() as sock:
            fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP | IFF_RUNNING))


def wait_for(child: int) -> NoReturn:
    """The outer process only waits; our death is the child's."""
    die_with_parent()
    os.closerange(3, 4096)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(child, signal.SIGKILL))
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 255)


def die_with_parent() -> None:
    # Not earlier: the kernel forgets the wish whenever a process gains capabilities, as in a new user namespace.
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), "die with parent")


def build_root(operations: list[Operation]) -> None:
    """Build the new root below a private tmpfs and enter it; the old one is at /oldroot meanwhile."""
    os.umask(0)
    mount(None, "/", None, MS_SLAVE | MS_REC)
    mount("tmpfs", BASE, "tmpfs", MS_NODEV | MS_NOSUID, "mode=755")
    os.chdir(BASE)
    os.mkdir("newroot", 0o755)
    mount("newroot", "newroot", None, MS_BIND | MS_REC)
    os.mkdir("oldroot", 0o755)
    pivot_root(BASE, "oldroot")
    os.chdir("/")
    for operation in operations:
        apply(*operation)
    check(libc.umount2(OLD_ROOT.encode(), MNT_DETACH), "leave the old root")
    os.chdir(NEW_ROOT)
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    pivot_root(".", ".")
    os.fchdir(root)
    check(libc.umount2(b".", MNT_DETACH), "leave the staging root")
    os.chdir("/")
    os.close(root)


def apply(option: str, source: str, target: str, permissions: str | None, size: str | None) -> None:
    read_only = option.startswith("--ro-")
    if option in ("--bind", "--ro-bind"):
        bind(OLD_ROOT + source, target, read_only)
    elif option in ("--bind-fd", "--ro-bind-fd"):
        bind_descriptor(int(source), target, read_only)
    elif option == "--ro-bind-data":
        bind_data(int(source), target, int(permissions or "600", 8))
    elif option == "--symlink":
        os.makedirs(os.path.dirname(NEW_ROOT + target), 0o755, exist_ok=True)
        os.symlink(source, NEW_ROOT + target)
    elif option == "--tmpfs":
        data = f"mode={permissions or '755'}" + (f",size={size}" if size else "")
        mount("tmpfs", make_target(target), "tmpfs", MS_NODEV | MS_NOSUID, data)
    elif option == "--proc":
        mount("proc", make_target(target), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    elif option == "--remount-ro":
        place = (NEW_ROOT + target).rstrip("/")
        mount("none", place, None, MS_BIND | MS_REMOUNT | MS_RDONLY | locked_flags(place))
    else:
        make_devices(target)


def bind(source: str, target: str, read_only: bool, devices: bool = False) -> str:
    place = make_target(target, directory=stat.S_ISDIR(os.stat(source).st_mode))
    mount(source, place, None, MS_BIND | MS_REC)
    restrict(place, read_only, devices)
    return place


def bind_descriptor(source: int, target: str, read_only: bool) -> None:
    opened = os.fstat(source)
    path = os.readlink(f"{OLD_ROOT}/proc/self/fd/{source}")
    path = path if path.startswith(OLD_ROOT + "/") else OLD_ROOT + path
    found = os.stat(bind(path, target, read_only))
    if (found.st_dev, found.st_ino) != (opened.st_dev, opened.st_ino):
        raise LaunchError(f"the source of {target} was replaced")
    os.close(source)


def bind_data(source: int, target: str, permissions: int) -> None:
    file = f"/data{source}"
    with open(source, "rb") as data, open(os.open(file, os.O_CREAT | os.O_WRONLY, permissions), "wb") as copy:
        copy.write(data.read())
    place = make_target(target, directory=False)
    mount(file, place, None, MS_BIND)
    restrict(place, read_only=True)
    os.unlink(file)


def make_devices(target: str) -> None:
    place = make_target(target)
    mount("tmpfs", place, "tmpfs", MS_NODEV | MS_NOSUID, "mode=755")
    for name in DEVICES:
        bind(f"{OLD_ROOT}/dev/{name}", f"{target}/{name}", read_only=False, devices=True)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{place}/{name}")
    os.symlink("/proc/self/fd", f"{place}/fd")
    os.mkdir(f"{place}/shm", 0o755)
    os.mkdir(f"{place}/pts", 0o755)
    mount("devpts", f"{place}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.symlink("pts/ptmx", f"{place}/ptmx")


def make_target(target: str, directory: bool = True) -> str:
    place = NEW_ROOT + target
    os.makedirs(os.path.dirname(place), 0o755, exist_ok=True)
    if not os.path.lexists(place):
        if directory:
            os.mkdir(place, 0o755)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
    return place


def locked_flags(path: str | bytes) -> int:
    """Flags of a mount that a user namespace may not clear (mount_namespaces(7))."""
    found = os.statvfs(path).f_flag
    flags = found & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
    # statvfs has a bit of its own for relatime.
    return flags | (MS_RELATIME if found & 4096 else 0)


def restrict(place: str, read_only: bool, devices: bool = False) -> None:
    """Remount a bind and everything mounted below it nosuid, nodev unless it is a device, and read-only if asked."""
    real = os.path.realpath(place)
    wanted = MS_NOSUID | (0 if devices else MS_NODEV) | (MS_RDONLY if read_only else 0)
    for point in mounts_below(real):
        mount("none", point, None, MS_BIND | MS_REMOUNT | wanted | locked_flags(point))


def mounts_below(real: str) -> list[bytes]:
    with open(f"{OLD_ROOT}/proc/self/mountinfo", "rb") as file:
        points = [line.split()[4].decode("unicode_escape").encode("latin-1") for line in file]
    encoded = os.fsencode(real)
    return [encoded] + [point for point in points if point.startswith(encoded + b"/")]


def pivot_root(new: str, old: str) -> None:
    check(libc.syscall(PIVOT_ROOT[platform.machine()], os.fsencode(new), os.fsencode(old)), "pivot_root")


def drop_privileges(options: LauncherOptions) -> None:
    check(libc.unshare(CLONE_NEWUSER), "second user namespace")
    map_ids(int(options.values["--uid"]), int(options.values["--gid"]), 0, 0)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    check(libc.syscall(CAPSET[platform.machine()], header, bytes(24)), "drop capabilities")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def install_filter(descriptor: int) -> None:
    program = os.read(descriptor, 1 << 16)
    os.close(descriptor)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    filter_ = Program(len(program) // 8, ctypes.addressof(buffer))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0), "seccomp filter")


def main(arguments: Sequence[str]) -> NoReturn:
    """Never returns: becomes the command, or the process that waits for it."""
    try:
        options = LauncherOptions(arguments)
        machine = platform.machine()
        if machine not in PIVOT_ROOT:
            raise LaunchError(f"unsupported machine {machine}")
        enter_namespaces(options)
        build_root(options.operations)
        if "--disable-userns" in options.values:
            # One more is left: our own second one. Nobody inside can raise the limit of a namespace above.
            write("/proc/sys/user/max_user_namespaces", "1")
        drop_privileges(options)
        die_with_parent()
        os.setsid()
        os.umask(0o022)
        os.chdir(options.values["--chdir"])
        if "--seccomp" in options.values:
            install_filter(int(options.values["--seccomp"]))
        os.execve(options.command[0], options.command, {})
    except (OSError, LaunchError, LookupError, ValueError) as error:
        os.write(2, f"userns launcher: {error}\n".encode())
    os._exit(1)


def prepare(arguments: Sequence[str]) -> Callable[[], NoReturn]:
    """For the root launcher: what is left to do once the uid is dropped."""
    return lambda: main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
