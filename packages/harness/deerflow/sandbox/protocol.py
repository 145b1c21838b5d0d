"""The host's half of the supervisor protocol: every frame from inside is checked before anything believes it.

A frame is ``u32 length`` (big-endian) and a JSON object. A lying supervisor can mislead only its own agent; a
malformed frame ends its session.
"""

from __future__ import annotations

import base64
import json
import struct
from asyncio import IncompleteReadError, StreamReader
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

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
class State:
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


Event = Ready | Output | End | ProcessReport | State | ResetDone | Failed


async def read_event(reader: StreamReader) -> Event | None:
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
        try:
            values[name] = _CHECKS[name](message.get(name))
        except ValueError:
            raise ProtocolError(f"a frame holds no proper {name!r}") from None
    return kind(**values)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _number(value: Any) -> int:
    _require(type(value) is int and 0 <= value < 1 << 53)
    return value


def _duration(value: Any) -> float:
    _require(type(value) in (int, float) and 0 <= value < 1e12)
    return float(value)


def _exit_code(value: Any) -> int | None:
    _require(value is None or (type(value) is int and -64 <= value <= 255))
    return value


def _stopped(value: Any) -> str | None:
    _require(value in (None, "timeout", "flood", "cancelled"))
    return value


def _text(value: Any) -> str:
    _require(isinstance(value, str) and len(value) <= MAX_FRAME)
    return value


def _path(value: Any) -> str:
    _require(len(_text(value)) <= MAX_PATH)
    return value


def _why(value: Any) -> str:
    """It is shown: a lone surrogate cannot be encoded."""
    return _text(value)[:MAX_WHY].encode("utf-8", "replace").decode()


def _data(value: Any) -> bytes:
    return base64.b64decode(_text(value), validate=True)


def _flag(value: Any) -> bool:
    return value is True


_EVENTS: dict[str, tuple[type[Event], list[str]]] = {
    name: (kind, [field.name for field in fields(kind)])
    for name, kind in {
        "ready": Ready,
        "output": Output,
        "end": End,
        "process": ProcessReport,
        "state": State,
        "reset": ResetDone,
        "failed": Failed,
    }.items()
}
_CHECKS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("id", "dropped", "total"), _number),
    **dict.fromkeys(("known", "running", "kept", "background"), _flag),
    **dict.fromkeys(("data", "tail"), _data),
    "exit_code": _exit_code,
    "stopped": _stopped,
    "cwd": _path,
    "state": _text,
    "why": _why,
    "ms": _duration,
}
"""What each field of an event must hold: the value, or ValueError."""
