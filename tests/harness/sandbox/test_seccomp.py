"""The filter program, run through an interpreter for every call on every architecture."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from tests.harness.sandbox.bpf import run

from deerflow.sandbox.isolation.seccomp import (
    ALLOW,
    AUDIT_ARCHITECTURE,
    CHECKED,
    ERRNO,
    IPC,
    KILL_PROCESS,
    MODE_ARGUMENTS,
    NAMESPACED_FAMILIES,
    OF_PROCESSES,
    OPENING,
    SYSCALLS,
    UnsupportedArchitectureError,
    build_filter,
)

MACHINES = sorted(SYSCALLS)
REFUSED = [(machine, name) for machine in MACHINES for name in SYSCALLS[machine] if name not in CHECKED]
EPERM, ENOSYS, EAFNOSUPPORT = (ERRNO | number for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT))


def verdict(machine: str, name: str, *arguments: int, **options: Any) -> int:
    return run(build_filter(machine, **options), AUDIT_ARCHITECTURE[machine], SYSCALLS[machine][name], arguments)


@pytest.mark.parametrize(("machine", "name"), REFUSED)
def test_a_listed_call_is_refused_whatever_its_arguments(machine: str, name: str) -> None:
    assert verdict(machine, name) == EPERM
    assert verdict(machine, name, *[2**64 - 1] * 6) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_every_other_call_is_allowed(machine: str) -> None:
    program, listed = build_filter(machine), set(SYSCALLS[machine].values())
    for number in set(range(600)) - listed:
        assert run(program, AUDIT_ARCHITECTURE[machine], number) == ALLOW, number


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_is_killed(machine: str) -> None:
    for foreign in (0x40000003, 0x40000028, 0, *(set(AUDIT_ARCHITECTURE.values()) - {AUDIT_ARCHITECTURE[machine]})):
        assert run(build_filter(machine), foreign, 20) == KILL_PROCESS


def test_the_x32_table_does_not_exist() -> None:
    for number in (0, 41, 272, 0x3FFFFFFF):
        assert run(build_filter("x86_64"), AUDIT_ARCHITECTURE["x86_64"], 0x40000000 | number) == ENOSYS
    assert run(build_filter("x86_64"), AUDIT_ARCHITECTURE["x86_64"], -1) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
def test_clone_may_make_threads_and_no_namespace(machine: str, flag: int) -> None:
    assert verdict(machine, "clone", flag | 17) == EPERM
    assert verdict(machine, "clone", 17) == ALLOW
    assert verdict(machine, "clone", 0x003D0F00) == ALLOW  # what pthread_create asks for


@pytest.mark.parametrize("machine", MACHINES)
def test_clone3_is_unknown_so_that_libc_falls_back_to_clone(machine: str) -> None:
    assert verdict(machine, "clone3", 0x1234, 88) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_input_cannot_be_pushed_into_a_terminal(machine: str) -> None:
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 0xFFFF << 32):
        assert verdict(machine, "ioctl", 0, request) == EPERM
    assert verdict(machine, "ioctl", 0, 0x5413) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_only_namespaced_socket_families_open(machine: str, call: str) -> None:
    for family in range(64):
        expected = ALLOW if family in NAMESPACED_FAMILIES else EAFNOSUPPORT
        assert verdict(machine, call, family, 1) == expected, family
    # The kernel looks at 32 bits.
    assert verdict(machine, call, 40 | 1 << 40) == EAFNOSUPPORT
    assert verdict(machine, call, 1 | 1 << 40) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_socket_families_can_be_taken_away_altogether(machine: str) -> None:
    for family in range(64):
        assert verdict(machine, "socket", family, socket_families=(), pair_families=(1,)) == EAFNOSUPPORT
    assert verdict(machine, "socketpair", 1, socket_families=(), pair_families=(1,)) == ALLOW
    assert verdict(machine, "socketpair", 2, socket_families=(), pair_families=(1,)) == EAFNOSUPPORT


@pytest.mark.parametrize("machine", MACHINES)
def test_a_refused_argument_check_does_not_spoil_the_next_one(machine: str) -> None:
    """After a look at arguments the call's number must be back in the accumulator."""
    for name in ("clone", "ioctl"):
        assert verdict(machine, name, 0, 0) == ALLOW
    assert verdict(machine, "socket", 2) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_no_file_becomes_set_uid_or_set_gid(machine: str) -> None:
    for name, index in MODE_ARGUMENTS.items():
        if name in SYSCALLS[machine]:
            for mode in (0o4755, 0o2755, 0o106755, 0o4000 | 1 << 32):
                assert verdict(machine, name, *[0] * index, mode) == EPERM, (name, oct(mode))
            assert verdict(machine, name, *[0o7777] * index, 0o101777) == ALLOW, name
    for name, index in OPENING.items():
        if name in SYSCALLS[machine]:
            for flags in (0o101, 0o20200001):
                assert verdict(machine, name, *[0] * index, flags, 0o4755) == EPERM, name
                assert verdict(machine, name, *[0] * index, flags, 0o755) == ALLOW, name
            # Without O_CREAT the mode may be anything that lay in the register.
            assert verdict(machine, name, *[0] * index, 0, 0o7777) == ALLOW, name
    assert verdict(machine, "openat2") == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_without_namespaces_other_processes_and_their_memory_are_out_of_reach(machine: str) -> None:
    for name in IPC:
        assert verdict(machine, name, 1, namespaces=False) == EPERM
        assert verdict(machine, name, 1) == ALLOW
    for name in OF_PROCESSES:
        assert verdict(machine, name, 4711, namespaces=False) == EPERM
        assert verdict(machine, name, 0, 7, namespaces=False) == ALLOW
        assert verdict(machine, name, 4711) == ALLOW
    for which, who in ((0, 4711), (1, 0), (2, 0)):
        assert verdict(machine, "setpriority", which, who, 19, namespaces=False) == EPERM
    assert verdict(machine, "setpriority", 0, 0, 10, namespaces=False) == ALLOW


def test_an_unknown_machine_is_named() -> None:
    with pytest.raises(UnsupportedArchitectureError, match="riscv64"):
        build_filter("riscv64")
