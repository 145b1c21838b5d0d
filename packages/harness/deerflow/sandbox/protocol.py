"""The host's half of the supervisor protocol: every frame from inside is checked before anything believes it.

A frame is ``u32 length`` (big-endian) and a JSON object. A lying supervisor can mislead only its own agent; a
malformed frame ends its session.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from asyncio import IncompleteReadError, StreamReader
from dataclasses import dataclass
from typing import Any

MAX_FRAME = 4 << 20
MAX_PATH = 4096
MAX_WHY = 1000

STOP_REASONS = ("timeout", "flood", "cancelled")


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
    running: bool
    exit_code: int | None
    data: bytes
    dropped: int


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


def encode(message: dict[str, Any]) -> bytes:
    """One frame to the supervisor."""
    payload = json.dumps(message).encode()
    return struct.pack(">I", len(payload)) + payload


async def read_event(reader: StreamReader) -> Event | None:
    """The next event, or None at the end of the stream.

    Raises:
        ProtocolError: the frame is too long, cut off, not JSON or not one of ours.
    """
    try:
        header = await reader.readexactly(4)
    except IncompleteReadError as error:
        if error.partial:
            raise ProtocolError("a frame was cut off") from None
        return None
    (length,) = struct.unpack(">I", header)
    if length > MAX_FRAME:
        raise ProtocolError(f"a frame of {length} bytes exceeds {MAX_FRAME}")
    try:
        return decode(await reader.readexactly(length))
    except IncompleteReadError:
        raise ProtocolError("a frame was cut off") from None


def decode(payload: bytes) -> Event:
    """The event in one frame. Raises ProtocolError."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame is not JSON: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise ProtocolError("a frame is not an object")
    match message.get("event"):
        case "ready":
            return Ready()
        case "output":
            return Output(_number(message, "id"), _bytes(message, "data"))
        case "end":
            return _end(message)
        case "process":
            return _process(message)
        case "state":
            return _state(message)
        case "reset":
            return ResetDone(_number(message, "id"))
        case "failed":
            return Failed(_number(message, "id"), _why(message))
    raise ProtocolError("a frame holds an unknown event")


def _end(message: dict[str, Any]) -> End:
    stopped = message.get("stopped")
    if stopped is not None and stopped not in STOP_REASONS:
        raise ProtocolError("a frame holds an unknown reason")
    ms = message.get("ms")
    if isinstance(ms, bool) or not isinstance(ms, int | float) or not 0 <= ms < 1e12:
        raise ProtocolError("a frame holds no duration")
    return End(
        id=_number(message, "id"),
        exit_code=_exit_code(message),
        stopped=stopped,
        tail=_bytes(message, "tail"),
        dropped=_number(message, "dropped"),
        total=_number(message, "total"),
        kept=message.get("kept") is True,
        cwd=_text(message, "cwd", MAX_PATH),
        ms=float(ms),
    )


def _process(message: dict[str, Any]) -> ProcessReport:
    if message.get("known") is not True:
        return ProcessReport(_number(message, "id"), False, False, None, b"", 0)
    return ProcessReport(
        id=_number(message, "id"),
        known=True,
        running=message.get("running") is True,
        exit_code=_exit_code(message),
        data=_bytes(message, "data"),
        dropped=_number(message, "dropped"),
    )


def _state(message: dict[str, Any]) -> State:
    return State(
        id=_number(message, "id"),
        cwd=_text(message, "cwd", MAX_PATH),
        state=_text(message, "state", MAX_FRAME),
        background=message.get("background") is True,
    )


def _number(message: dict[str, Any], key: str) -> int:
    value = message.get(key)
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ProtocolError(f"a frame holds no number {key!r}")
    return value


def _exit_code(message: dict[str, Any]) -> int | None:
    value = message.get("exit_code")
    if value is None or (type(value) is int and -64 <= value <= 255):
        return value
    raise ProtocolError("a frame holds no exit code")


def _text(message: dict[str, Any], key: str, longest: int) -> str:
    value = message.get(key)
    if not isinstance(value, str) or len(value) > longest:
        raise ProtocolError(f"a frame holds no text {key!r}")
    return value


def _why(message: dict[str, Any]) -> str:
    """It is shown: a lone surrogate would break whoever encodes it."""
    return _text(message, "why", MAX_FRAME)[:MAX_WHY].encode("utf-8", "replace").decode()


def _bytes(message: dict[str, Any], key: str) -> bytes:
    value = message.get(key)
    if not isinstance(value, str):
        raise ProtocolError(f"a frame holds no data {key!r}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError(f"a frame holds broken data {key!r}") from None
