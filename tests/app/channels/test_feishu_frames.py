"""Frames of Feishu's long connection."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deerflow_app.channels.adapters.feishu_frames import CONTROL, DATA, Assembly, FeishuFrame

NUMBERS = st.integers(0, 2**64 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
WORDS = st.text(st.characters(codec="utf-8"), max_size=200)
FRAMES = st.builds(
    FeishuFrame,
    service=INT32,
    method=INT32,
    headers=st.dictionaries(WORDS, WORDS, max_size=5),
    payload=st.sampled_from((0, 1, 127, 128, 300, 70_000)).map(random.randbytes),
    seq_id=NUMBERS,
    log_id=NUMBERS,
    payload_encoding=WORDS,
    payload_type=WORDS,
    log_id_new=WORDS,
)

# Written by Google's protobuf for the official client's `pbbp2.Frame`.
EVENT = bytes.fromhex(
    "0807108080808080808080800118f681801020012a0d0a047479706512056576656e742a100a0a6d6573736167655f696412026d31"
    "2a080a0373756d1201312a080a037365711201302a0f0a0874726163655f69641203e580bc3204677a69703a046a736f6e"
    "42077b2261223a317d4a036e6577"
)
PING = bytes.fromhex("0800100018f681801020002a0c0a0474797065120470696e67")


@given(FRAMES)
@settings(max_examples=500)
def test_a_frame_comes_back_as_it_was(frame: FeishuFrame):
    assert FeishuFrame.load(frame.dump()) == frame


def test_known_bytes_are_read_and_written():
    headers = {"type": "event", "message_id": "m1", "sum": "1", "seq": "0", "trace_id": "值"}
    event = FeishuFrame(33554678, DATA, headers, b'{"a":1}', 7, 1 << 63, "gzip", "json", "new")

    assert FeishuFrame.load(EVENT) == event and event.dump() == EVENT
    assert FeishuFrame(33554678, CONTROL, {"type": "ping"}).dump() == PING


def test_unknown_fields_are_passed_over():
    varint, fixed64, fixed32, text = b"\x78\x01", b"\x79" + bytes(8), b"\x7d" + bytes(4), b"\x7a\x02hi"

    assert FeishuFrame.load(PING + varint + fixed64 + fixed32 + text) == FeishuFrame.load(PING)


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_any_bytes_are_a_frame_or_a_value_error(data: bytes):
    try:
        assert isinstance(FeishuFrame.load(data), FeishuFrame)
    except ValueError:
        pass


def test_every_cut_of_a_frame_is_a_frame_or_a_value_error():
    for length in range(len(EVENT)):
        try:
            FeishuFrame.load(EVENT[:length])
        except ValueError:
            pass


def part(message: str, total: int, number: int, payload: bytes) -> FeishuFrame:
    return FeishuFrame(1, DATA, {"message_id": message, "sum": str(total), "seq": str(number)}, payload)


def test_parts_make_one_message_in_whatever_order_they_come():
    assembly = Assembly()

    assert assembly.add(part("a", 3, 2, b"3")) is None
    assert assembly.add(part("b", 2, 0, b"x")) is None
    assert assembly.add(part("a", 3, 0, b"1")) is None
    assert assembly.add(part("a", 3, 0, b"1")) is None
    assert assembly.add(part("a", 3, 1, b"2")) == b"123"
    assert assembly.add(part("b", 2, 1, b"y")) == b"xy"


def test_messages_that_never_end_take_bounded_memory():
    assembly = Assembly()
    for number in range(1000):
        assembly.add(part(f"m{number}", 2, 0, bytes(1000)))

    assert len(assembly._parts) <= 64
    assert assembly.add(part("m999", 2, 1, b"!")) == bytes(1000) + b"!"


@pytest.mark.parametrize(("total", "number"), [("2", "2"), ("2", "-1"), ("x", "0"), ("2", "")])
def test_an_impossible_part_is_a_value_error(total: str, number: str):
    with pytest.raises(ValueError):
        Assembly().add(FeishuFrame(1, DATA, {"message_id": "m", "sum": total, "seq": number}))
