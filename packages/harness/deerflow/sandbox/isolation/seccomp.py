"""The system-call filter of every isolating sandbox: a classic BPF program built without libseccomp.

The program is an array of ``struct sock_filter`` as ``bwrap --seccomp`` and ``prctl(PR_SET_SECCOMP)`` want it
(Linux ``Documentation/userspace-api/seccomp_filter.rst``). It refuses what a sandboxed command never needs and an
attacker would: mounts, namespaces, tracing, keyrings, kernel modules, raw devices, odd socket families.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Collection

LOAD = 0x20
JUMP_EQUAL = 0x15
JUMP_AT_LEAST = 0x35
JUMP_BITS = 0x45
RETURN = 0x06

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
KILL_PROCESS = 0x80000000

NUMBER_OFFSET = 0
ARCHITECTURE_OFFSET = 4
ARGUMENTS_OFFSET = 16

X32_BIT = 0x40000000
NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
SET_ID_BITS = 0o6000
CREATING = 0o100 | 0o20000000
"""O_CREAT and O_TMPFILE; without them open() ignores its mode."""

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
NAMESPACED_FAMILIES = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
"""Families that a network namespace isolates. AF_VSOCK among others reaches the hypervisor even from an empty one."""

AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_NUMBERS = """
call                x86_64  aarch64
open                     2        -
ioctl                   16       29
shmget                  29      194
socket                  41      198
socketpair              53      199
clone                   56      220
semget                  64      190
msgget                  68      186
creat                   85        -
chmod                   90        -
fchmod                  91       52
ptrace                 101      117
syslog                 103      116
mknod                  133        -
uselib                 134        -
setpriority            141      140
sched_setparam         142      118
sched_setscheduler     144      119
vhangup                153       58
modify_ldt             154        -
pivot_root             155       41
chroot                 161       51
acct                   163       89
settimeofday           164      170
mount                  165       40
umount2                166       39
swapon                 167      224
swapoff                168      225
reboot                 169      142
iopl                   172        -
ioperm                 173        -
init_module            175      105
delete_module          176      106
quotactl               179       60
nfsservctl             180       42
sched_setaffinity      203      122
lookup_dcookie         212       18
clock_settime          227      112
mq_open                240      180
kexec_load             246      104
add_key                248      217
request_key            249      218
keyctl                 250      219
ioprio_set             251       30
openat                 257       56
mknodat                259       33
fchmodat               268       53
unshare                272       97
perf_event_open        298      241
prlimit64              302      261
open_by_handle_at      304      265
setns                  308      268
process_vm_readv       310      270
process_vm_writev      311      271
finit_module           313      273
sched_setattr          314      274
kexec_file_load        320      294
bpf                    321      280
userfaultfd            323      282
io_uring_setup         425      425
io_uring_enter         426      426
io_uring_register      427      427
open_tree              428      428
move_mount             429      429
fsopen                 430      430
fsconfig               431      431
fsmount                432      432
fspick                 433      433
clone3                 435      435
openat2                437      437
pidfd_getfd            438      438
mount_setattr          442      442
quotactl_fd            443      443
fchmodat2              452      452
open_tree_attr         467      467
"""


def _table() -> dict[str, dict[str, int]]:
    (_, *machines), *rows = (line.split() for line in _NUMBERS.split("\n") if line)
    return {
        machine: {row[0]: int(row[column]) for row in rows if row[column] != "-"}
        for column, machine in enumerate(machines, 1)
    }


SYSCALLS = _table()
"""Numbers of the calls that the filter knows, by machine (``asm/unistd.h``)."""

MODE_ARGUMENTS = {
    "chmod": 1, "creat": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mknod": 1, "mknodat": 2
}  # fmt: skip
"""Where each call takes a file's mode. A set-uid file would lend the rights of the sandbox's user to whoever runs it."""
OPENING = {"open": 1, "openat": 2}
"""Where each call takes its flags; the mode follows them."""
IPC = ("shmget", "semget", "msgget", "mq_open", "ioprio_set")
"""Without namespaces these reach what the user's other processes own."""
OF_PROCESSES = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")
"""Without namespaces these work on the user's other processes: a limit on CPU time would kill the server."""

CHECKED = frozenset(
    {"clone", "clone3", "openat2", "ioctl", "socket", "socketpair", "setpriority"}
    | MODE_ARGUMENTS.keys() | OPENING.keys() | {*IPC, *OF_PROCESSES}
)  # fmt: skip
"""Calls that are judged by their arguments or not at all; every other call in SYSCALLS is refused outright with EPERM."""


class UnsupportedArchitectureError(RuntimeError):
    """No system-call table for this machine."""


def build_filter(
    architecture: str | None = None,
    *,
    socket_families: Collection[int] = NAMESPACED_FAMILIES,
    pair_families: Collection[int] = NAMESPACED_FAMILIES,
    namespaces: bool = True,
) -> bytes:
    """The filter program for ``architecture`` (default: this machine's).

    Args:
        socket_families: address families that ``socket()`` may open; others get EAFNOSUPPORT.
        pair_families: the same for ``socketpair()``.
        namespaces: whether the sandbox has process and IPC namespaces of its own.

    Raises:
        UnsupportedArchitectureError: neither x86_64 nor aarch64.
    """
    machine = architecture or platform.machine()
    if machine not in SYSCALLS:
        raise UnsupportedArchitectureError(f"The sandbox's system-call filter knows x86_64 and aarch64, not {machine}.")
    calls = SYSCALLS[machine]
    program = [
        _load(ARCHITECTURE_OFFSET),
        _instruction(JUMP_EQUAL, 1, 0, AUDIT_ARCHITECTURE[machine]),
        _instruction(RETURN, 0, 0, KILL_PROCESS),
        _load(NUMBER_OFFSET),
    ]
    if machine == "x86_64":
        program += _refuse_if(X32_BIT, errno.ENOSYS, JUMP_AT_LEAST)
    for name, number in calls.items():
        if name not in CHECKED:
            program += _refuse_if(number)
    # Their flags lie behind a pointer that BPF cannot read; ENOSYS makes callers fall back to clone and openat.
    for name in ("clone3", "openat2"):
        program += _refuse_if(calls[name], errno.ENOSYS)
    if not namespaces:
        program += _without_namespaces(calls)
    program += _set_id_files(calls)
    program += _when(calls["clone"], [_load_argument(0), *_refuse_if(NAMESPACE_FLAGS, code=JUMP_BITS)])
    program += _when(calls["ioctl"], [_load_argument(1), *_refuse_if(TIOCSTI), *_refuse_if(TIOCLINUX)])
    program += _when(calls["socket"], [_load_argument(0), *_allow_only(socket_families)])
    program += _when(calls["socketpair"], [_load_argument(0), *_allow_only(pair_families)])
    program.append(_instruction(RETURN, 0, 0, ALLOW))
    return b"".join(program)


def _without_namespaces(calls: dict[str, int]) -> list[bytes]:
    """Nothing that is shared by all processes of a user, and other processes are left alone."""
    program: list[bytes] = []
    for name in IPC:
        program += _refuse_if(calls[name])
    for name in OF_PROCESSES:
        program += _when(calls[name], [_load_argument(0), *_only_zero()])
    # which = PRIO_PROCESS and who = the caller.
    return program + _when(calls["setpriority"], [_load_argument(0), *_only_zero(), _load_argument(1), *_only_zero()])


def _only_zero() -> list[bytes]:
    return [_instruction(JUMP_EQUAL, 1, 0, 0), _refuse(errno.EPERM)]


def _set_id_files(calls: dict[str, int]) -> list[bytes]:
    """No file gets the set-uid or set-gid bit."""
    refused = _refuse_if(SET_ID_BITS, code=JUMP_BITS)
    program: list[bytes] = []
    for name, index in MODE_ARGUMENTS.items():
        if name in calls:
            program += _when(calls[name], [_load_argument(index), *refused])
    for name, index in OPENING.items():
        if name in calls:
            creates = [_load_argument(index), _instruction(JUMP_BITS, 0, 1 + len(refused), CREATING)]
            program += _when(calls[name], [*creates, _load_argument(index + 1), *refused])
    return program


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def _load(offset: int) -> bytes:
    return _instruction(LOAD, 0, 0, offset)


def _load_argument(index: int) -> bytes:
    # The low word (both machines are little-endian): the kernel takes these arguments as 32-bit values.
    return _load(ARGUMENTS_OFFSET + 8 * index)


def _refuse(number: int) -> bytes:
    return _instruction(RETURN, 0, 0, ERRNO | number)


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """``body`` runs for one call only and falls through when it has no objection."""
    return [_instruction(JUMP_EQUAL, 0, len(body) + 1, number), *body, _load(NUMBER_OFFSET)]


def _refuse_if(value: int, number: int = errno.EPERM, code: int = JUMP_EQUAL) -> list[bytes]:
    return [_instruction(code, 0, 1, value), _refuse(number)]


def _allow_only(values: Collection[int]) -> list[bytes]:
    count = len(values)
    jumps = [_instruction(JUMP_EQUAL, count - index, 0, value) for index, value in enumerate(values)]
    return [*jumps, _refuse(errno.EAFNOSUPPORT)]
