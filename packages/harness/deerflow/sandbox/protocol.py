"""The host's half of the supervisor protocol: every frame from inside is checked before anything believes it.

A frame is ``u32 length`` (big-endian) and a JSON object. A lying supervisor can mislead only its own agent; a
malformed frame ends its session.
"""

from __future__ import annotations

import base64
import json
import struct
from asyncio import IncompleteReadError
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

from deerflow.sandbox.supervisor import frame as frame

MAX_FRAME = 4 << 20
MAX_PATH = 4096
MAX_WHY = 1000


class ProtocolError(Exception):
    """The sandbox sent something that its supervisor never sends."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The supervisor takes requests."""


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of a command's head."""

    id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """A command's end. ``tail`` follows the pieces sent before, ``dropped`` bytes later."""

    id: int
    exit_code: int | None
    stopped: str | None
    tail: bytes
    dropped: int
    total: int
    kept: bool
    """Whether the whole output is in the file that the request named."""
    cwd: str
    ms: float


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What a background process wrote since the last report."""

    id: int
    known: bool
    running: bool = False
    exit_code: int | None = None
    data: bytes = b""
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class ShellState:
    """The shell state that a later session begins with."""

    id: int
    cwd: str
    state: str
    background: bool
    """Whether anything runs that a command left behind."""


@dataclass(frozen=True, slots=True)
class ResetDone:
    """Everything but the supervisor is dead."""

    id: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that could not be carried out."""

    id: int
    why: str


Event = Ready | Output | End | ProcessReport | ShellState | ResetDone | Failed


class Reader(Protocol):
    """A source of frames; ``asyncio.StreamReader`` is one."""

    async def readexactly(self, n: int, /) -> bytes:
        """The next ``n`` bytes. Raises IncompleteReadError at the end of the stream."""
        ...


async def read_event(reader: Reader) -> Event | None:
    """The next event, or None at the end of the stream.

    Raises:
        ProtocolError: the frame is too long, cut off, not JSON or not one of ours.
    """
    header = b""
    try:
        header = await reader.readexactly(4)
        (length,) = struct.unpack(">I", header)
        if length > MAX_FRAME:
            raise ProtocolError(f"a frame of {length} bytes exceeds {MAX_FRAME}")
        return decode(await reader.readexactly(length))
    except IncompleteReadError as error:
        if header or error.partial:
            raise ProtocolError("a frame was cut off") from None
        return None


def decode(payload: bytes) -> Event:
    """The event in one frame. Raises ProtocolError."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame is not JSON: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise ProtocolError("a frame is not an object")
    name = message.get("event")
    if not isinstance(name, str) or name not in _EVENTS:
        raise ProtocolError("a frame holds an unknown event")
    kind, names = _EVENTS[name]
    if kind is ProcessReport and message.get("known") is not True:
        names = ["id", "known"]
    values: dict[str, Any] = {}
    for name in names:
        value = message.get(name)
        try:
            if not _PROPER[name](value):
                raise ValueError
            values[name] = _MEANING[name](value) if name in _MEANING else value
        except ValueError:
            raise ProtocolError(f"a frame holds no proper {name!r}") from None
    return kind(**values)


_EVENTS: dict[str, tuple[type[Event], list[str]]] = {
    name: (kind, [field.name for field in fields(kind)])
    for name, kind in {
        "ready": Ready,
        "output": Output,
        "end": End,
        "process": ProcessReport,
        "state": ShellState,
        "reset": ResetDone,
        "failed": Failed,
    }.items()
}
_PROPER: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("id", "dropped", "total"), lambda value: type(value) is int and 0 <= value < 1 << 53),
    **dict.fromkeys(("known", "running", "kept", "background"), lambda _: True),
    **dict.fromkeys(("data", "tail", "state", "why"), lambda value: isinstance(value, str)),
    "exit_code": lambda value: value is None or (type(value) is int and -64 <= value <= 255),
    "stopped": lambda value: value in (None, "timeout", "flood", "cancelled"),
    "cwd": lambda value: isinstance(value, str) and len(value) <= MAX_PATH,
    "ms": lambda value: type(value) in (int, float) and 0 <= value < 1e12,
}
"""What each field of an event must hold."""
_MEANING: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("known", "running", "kept", "background"), lambda value: value is True),
    **dict.fromkeys(("data", "tail"), lambda value: base64.b64decode(value, validate=True)),
    # It is shown: a lone surrogate cannot be encoded.
    "why": lambda value: value[:MAX_WHY].encode("utf-8", "replace").decode(),
}
"""What is made of fields that are not taken as they are. Raises ValueError."""
