"""The objects of a JSON list, one after the other, however long the list is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

CHUNK = 1 << 20
MAX_OBJECT = 64 << 20
"""Bytes of one object."""
_BRACKET = re.compile(rb'["{}\[\]]')
_TO_QUOTE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def objects(file: IO[bytes], limit: int = MAX_OBJECT) -> Iterator[bytes | None]:
    """Yield the text of each object of a list, or of the one object that a file holds; None for one of more than ``limit`` bytes.

    Only brackets and quotes are looked at, so an object that is no valid JSON does not keep the next one from being found.

    Raises:
        ValueError: the file holds neither a list nor an object, or ends in the middle.
    """
    outside: int | None = None  # how many brackets are open around an object
    level, in_text, skip = 0, False, False
    held, inside = bytearray(), False
    while chunk := file.read(CHUNK):
        at, start = int(skip), 0
        skip = False
        while True:
            if in_text:
                if (quote := _TO_QUOTE.match(chunk, at)) is None:
                    end = chunk[at:]
                    skip = (len(end) - len(end.rstrip(b"\\"))) % 2 == 1
                    break
                at, in_text = quote.end(), False
            if (found := _BRACKET.search(chunk, at)) is None:
                break
            at, sign = found.end(), found[0]
            if sign == b'"':
                in_text = True
            elif sign in b"{[":
                outside = (1 if sign == b"[" else 0) if outside is None else outside
                if level == outside and sign == b"{":
                    inside, start = True, found.start()
                level += 1
            else:
                level -= 1
                if inside and level == outside:
                    held += chunk[start:at]
                    yield bytes(held) if len(held) <= limit else None
                    held, inside = bytearray(), False
        if inside and len(held) <= limit:
            held += chunk[start:]
    if outside is None or level != 0:
        raise ValueError("It holds no list and no object." if outside is None else "It ends in the middle.")
