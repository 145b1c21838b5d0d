"""Does request k+1 contain request k byte for byte? Measured on raw bodies, as a provider's prompt cache sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import scanstring  # pyright: ignore[reportAttributeAccessIssue]

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class RawRequest:
    """The parts of a request body as they stand in it. Sizes are bytes of UTF-8."""

    messages: tuple[str, ...]
    tools: str

    @property
    def system(self) -> str:
        head = self.messages[0] if self.messages else ""
        return head if head and json.loads(head).get("role") in ("system", "developer") else ""

    def sizes(self) -> dict[str, int]:
        total = sum(len(message.encode()) for message in self.messages)
        system = len(self.system.encode())
        return {"system": system, "tools": len(self.tools.encode()), "messages": total - system}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much of the earlier request the later one repeats from its start."""

    previous_bytes: int
    common_bytes: int
    tools_same: bool
    diverges_at: int | None
    """Index of the first message that differs."""

    @property
    def stable(self) -> bool:
        return self.diverges_at is None and self.tools_same


def parse(body: bytes) -> RawRequest:
    """Cut a request body into raw messages and raw tools, without re-encoding anything."""
    text = body.decode()
    messages: tuple[str, ...] = ()
    tools = ""
    for key, start, end in _members(text):
        if key == "messages":
            messages = tuple(_items(text, start))
        elif key == "tools":
            tools = text[start:end]
    return RawRequest(messages, tools)


def compare(earlier: RawRequest, later: RawRequest) -> Comparison:
    """Compare two requests of one conversation."""
    previous = sum(len(message.encode()) for message in earlier.messages)
    common = 0
    for index, message in enumerate(earlier.messages):
        other = later.messages[index] if index < len(later.messages) else ""
        if message != other:
            common += _common_prefix(message.encode(), other.encode())
            return Comparison(previous, common, earlier.tools == later.tools, index)
        common += len(message.encode())
    return Comparison(previous, common, earlier.tools == later.tools, None)


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    at = _skip(text, text.index("{") + 1)
    while text[at] == '"':
        key, at = scanstring(text, at + 1, True)
        start = _skip(text, at, ":")
        _, end = _DECODER.raw_decode(text, start)
        yield key, start, end
        at = _skip(text, end, ",")


def _items(text: str, start: int) -> Iterator[str]:
    at = _skip(text, start + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield text[at:end]
        at = _skip(text, end, ",")


def _skip(text: str, at: int, separator: str = "") -> int:
    while text[at] in " \t\r\n" or text[at] == separator:
        at += 1
    return at


def _common_prefix(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
