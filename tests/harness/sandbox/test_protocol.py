"""Whatever comes out of a sandbox is an event or a ProtocolError, never anything else."""

from __future__ import annotations

import asyncio
import base64
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.sandbox import protocol
from deerflow.sandbox.protocol import MAX_FRAME, End, Output, ProtocolError, decode, frame, read_event

END = {
    "event": "end",
    "id": 1,
    "exit_code": 0,
    "stopped": None,
    "tail": "",
    "dropped": 0,
    "total": 3,
    "cwd": "/",
    "ms": 1.5,
}
PROCESS = {"event": "process", "id": 1, "known": True, "running": True, "exit_code": None, "data": "", "dropped": 0}
GOOD = [
    {"event": "ready"},
    {"event": "output", "id": 1, "data": base64.b64encode(b"hi").decode()},
    END,
    PROCESS,
    {"event": "process", "id": 1, "known": False},
    {"event": "state", "id": 1, "cwd": "/", "state": "", "background": True},
    {"event": "reset", "id": 1},
    {"event": "failed", "id": 1, "why": "no"},
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def reader(data: bytes) -> asyncio.StreamReader:
    stream = asyncio.StreamReader()
    stream.feed_data(data)
    stream.feed_eof()
    return stream


@pytest.mark.parametrize("message", GOOD, ids=lambda message: message["event"])
def test_a_frame_of_the_supervisor_is_understood(message: dict[str, object]) -> None:
    decode(json.dumps(message).encode())


@pytest.mark.parametrize(
    "change",
    [
        {"id": "1"}, {"id": True}, {"id": -1}, {"id": 1.0}, {"id": None}, {"id": 1 << 60},
        {"exit_code": "0"}, {"exit_code": 256}, {"exit_code": -65}, {"exit_code": False},
        {"stopped": "because"}, {"stopped": 1}, {"tail": "%%%"}, {"tail": "é"}, {"tail": None}, {"tail": "a"},
        {"dropped": -1}, {"total": "3"}, {"cwd": None}, {"cwd": "x" * 5000}, {"ms": "1"}, {"ms": -1}, {"ms": True},
        {"ms": float("inf")}, {"ms": float("nan")},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ProtocolError):
        decode(json.dumps(END | change).encode())


@pytest.mark.parametrize("key", [key for key in END if key not in ("stopped", "exit_code")])
def test_a_missing_value_is_refused(key: str) -> None:
    with pytest.raises(ProtocolError):
        decode(json.dumps({name: value for name, value in END.items() if name != key}).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_a_protocol_error(payload: bytes) -> None:
    try:
        decode(payload)
    except ProtocolError:
        pass


@given(st.sampled_from(GOOD), st.dictionaries(st.sampled_from([*END, *PROCESS, "state", "why"]), JSON, max_size=4))
def test_any_values_are_an_event_or_a_protocol_error(message: dict[str, object], changes: dict[str, object]) -> None:
    try:
        decode(json.dumps(message | changes).encode())
    except ProtocolError:
        pass


def test_json_that_is_nested_too_deeply_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        decode(b"[" * 100_000)


async def test_a_frame_survives_the_way() -> None:
    message = {"event": "output", "id": 7, "data": base64.b64encode(b"\xff\x00").decode()}
    assert await read_event(reader(frame(message))) == Output(7, b"\xff\x00")


async def test_the_end_of_the_stream_is_not_an_error_between_frames() -> None:
    stream = reader(frame(END))
    assert isinstance(await read_event(stream), End)
    assert await read_event(stream) is None


@pytest.mark.parametrize("data", [b"\0", b"\0\0\0", b"\0\0\0\x05{}", b"\0\0\0\x02"])
async def test_a_frame_that_is_cut_off_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="cut off"):
        await read_event(reader(data))


async def test_a_huge_length_is_refused_without_waiting_for_the_data() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(struct.pack(">I", MAX_FRAME + 1))
    with pytest.raises(ProtocolError, match="exceeds"):
        await asyncio.wait_for(read_event(stream), 5)


def test_a_long_explanation_is_cut() -> None:
    event = decode(json.dumps({"event": "failed", "id": 1, "why": "x" * 100_000}).encode())
    assert isinstance(event, protocol.Failed)
    assert len(event.why) == protocol.MAX_WHY


def test_an_explanation_can_be_shown_whatever_it_holds() -> None:
    [event] = [decode(b'{"event": "failed", "id": 1, "why": "no \\udcff"}')]
    assert isinstance(event, protocol.Failed)
    assert event.why.encode() == b"no ?"
