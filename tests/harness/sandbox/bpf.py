"""A classic-BPF machine, as the kernel runs a seccomp program (net/core/filter.c, kernel/seccomp.c)."""

from __future__ import annotations

import struct


def run(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """The verdict of ``program`` on one system call."""
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *(word & 0xFFFFFFFFFFFFFFFF for word in words))
    instructions = [struct.unpack_from("HBBI", program, offset) for offset in range(0, len(program), 8)]
    accumulator = counter = 0
    while True:
        code, if_true, if_false, value = instructions[counter]
        counter += 1
        match code:
            case 0x20:  # BPF_LD | BPF_W | BPF_ABS
                assert value % 4 == 0
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
                counter += if_true if accumulator == value else if_false
            case 0x35:  # BPF_JMP | BPF_JGE | BPF_K
                counter += if_true if accumulator >= value else if_false
            case 0x45:  # BPF_JMP | BPF_JSET | BPF_K
                counter += if_true if accumulator & value else if_false
            case 0x06:  # BPF_RET | BPF_K
                return value
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")
