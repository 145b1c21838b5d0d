"""Compound files (OLE), which old Office formats and encrypted documents are, made by hand."""

from __future__ import annotations

import itertools
import struct

FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
SECTOR, SMALL, CUTOFF = 512, 64, 4096
Tree = dict[str, "bytes | Tree"]


def compound(tree: Tree) -> bytes:
    """Streams by name, in storages that are trees again."""
    entries: list[tuple[str, int, int, int, int, int]] = []  # name, kind, child, right, start, size
    small, large, small_chain, chain = b"", b"", list[int](), list[int]()

    def add(name: str, content: bytes | Tree, kind: int) -> int:
        nonlocal small, large
        at = len(entries)
        entries.append((name, kind, FREE, FREE, END, 0))
        if isinstance(content, dict):
            children = [
                add(inner, value, 1 if isinstance(value, dict) else 2) for inner, value in sorted(content.items())
            ]
            for left, right in itertools.pairwise(children):
                entries[left] = (*entries[left][:3], right, *entries[left][4:])
            entries[at] = (name, kind, children[0] if children else FREE, FREE, END, 0)
        elif content:
            unit, chained = (SMALL, small_chain) if len(content) < CUTOFF else (SECTOR, chain)
            start, count = len(chained), -(-len(content) // unit)
            chained += [*range(start + 1, start + count), END]
            padded = content.ljust(count * unit, b"\0")
            small, large = (small + padded, large) if unit == SMALL else (small, large + padded)
            entries[at] = (name, kind, FREE, FREE, start, len(content))
        return at

    add("Root Entry", tree, 5)

    def place(data: bytes) -> int:
        nonlocal large
        if not data:
            return END
        start, count = len(chain), -(-len(data) // SECTOR)
        chain.extend([*range(start + 1, start + count), END])
        large += data.ljust(count * SECTOR, b"\0")
        return start

    root = (*entries[0][:4], place(small), len(small))
    entries[0] = root
    small_fat = place(
        struct.pack(f"<{len(small_chain)}I", *small_chain).ljust(-(-len(small_chain) * 4 // SECTOR) * SECTOR, b"\xff")
    )
    directory = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HBBIII", 2 * len(name) + 2, kind, 1, FREE, right, child)
        + b"\0" * 36
        + struct.pack("<IQ", start, size)
        for name, kind, child, right, start, size in entries
    )
    while len(directory) % SECTOR:
        directory += b"\0" * 68 + struct.pack("<III", FREE, FREE, FREE) + b"\0" * 48
    first = place(directory)
    sectors = len(chain) + 1
    assert sectors <= SECTOR // 4, "one sector of the table is enough for tests"
    table = struct.pack(f"<{sectors}I", *chain, FAT).ljust(SECTOR, b"\xff")
    header = (
        bytes.fromhex("d0cf11e0a1b11ae1")
        + b"\0" * 16
        + struct.pack(
            "<HHHHH6xIIIIIIIII",
            0x3E,
            3,
            0xFFFE,
            9,
            6,
            0,
            1,
            first,
            0,
            CUTOFF,
            small_fat,
            1 if small_chain else 0,
            END,
            0,
        )
        + struct.pack("<109I", sectors - 1, *[FREE] * 108)
    )
    return header + large + table


def old_workbook(rows: list[list[str | float]]) -> bytes:
    """An ``.xls`` (BIFF8) with one sheet."""

    def record(kind: int, data: bytes = b"") -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def begin(kind: int) -> bytes:
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0x0DBB, 0x07CC, 0, 6))

    def cell(row: int, column: int, value: str | float) -> bytes:
        place = struct.pack("<HHH", row, column, 0)
        if isinstance(value, str):
            return record(0x204, place + struct.pack("<HB", len(value), 1) + value.encode("utf-16-le"))
        return record(0x203, place + struct.pack("<d", value))

    name = b"\x05\x00Sales"
    head = begin(5) + record(0x42, struct.pack("<H", 1200))
    offset = len(head) + 4 + 6 + len(name) + 4
    globals_ = head + record(0x85, struct.pack("<IH", offset, 0) + name) + record(0x0A)
    cells = b"".join(cell(at, column, value) for at, row in enumerate(rows) for column, value in enumerate(row))
    size = record(0x200, struct.pack("<IIHHH", 0, len(rows), 0, max(map(len, rows)), 0))
    return compound({"Workbook": (globals_ + begin(16) + size + cells + record(0x0A)).ljust(CUTOFF, b"\0")})


def outlook(subject: str, text: str, sender: str, attachments: dict[str, bytes]) -> bytes:
    """An ``.msg``."""

    def strings(values: dict[int, str]) -> Tree:
        return {f"__substg1.0_{tag:04X}001F": value.encode("utf-16-le") for tag, value in values.items()}

    def properties(head: bytes, values: dict[int, str], times: dict[int, int] | None = None) -> bytes:
        rows = [struct.pack("<HHIII", 0x1F, tag, 6, 2 * len(value) + 2, 0) for tag, value in values.items()]
        rows += [struct.pack("<HHIQ", 0x40, tag, 6, value) for tag, value in (times or {}).items()]
        return head + b"".join(rows)

    main = {
        0x37: subject,
        0x1000: text,
        0x0C1A: sender,
        0x0C1F: "bert@example.org",
        0x1A: "IPM.Note",
        0x5D01: "bert@example.org",
    }
    tree: Tree = {**strings(main), "__nameid_version1.0": {}}
    sent = {0x39: 133_500_000_000_000_000}  # in January 2024
    tree["__properties_version1.0"] = properties(
        struct.pack("<8xIIII8x", 1, len(attachments), 1, len(attachments)), main, sent
    )
    person = {0x3001: "Anna", 0x39FE: "anna@example.org", 0x3003: "anna@example.org"}
    tree["__recip_version1.0_#00000000"] = {**strings(person), "__properties_version1.0": properties(b"\0" * 8, person)}
    for at, (name, data) in enumerate(attachments.items()):
        about = {0x3707: name}
        tree[f"__attach_version1.0_#{at:08X}"] = {
            **strings(about),
            "__substg1.0_37010102": data,
            "__properties_version1.0": properties(b"\0" * 8, about)
            + struct.pack("<HHIII", 0x102, 0x3701, 6, len(data), 0)
            + struct.pack("<HHIII", 3, 0x3705, 6, 1, 0)
            + struct.pack("<HHIII", 3, 0x0E20, 6, len(data), 0),
        }
    return compound(tree)
