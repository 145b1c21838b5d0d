"""Packing keeps every byte, and what was packed before stays readable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deerflow.storage.checkpoints.sqlite_steps import pack, unpack


@given(st.binary(max_size=3000))
def test_what_is_packed_comes_back(data: bytes) -> None:
    assert unpack(pack(data)) == data


def test_a_small_message_becomes_much_smaller() -> None:
    message = b"langchain_core.messages.ai AIMessage content additional_kwargs response_metadata finish_reason stop" * 2
    assert len(pack(message)) < len(message) / 3


def test_the_words_are_those_that_stored_checkpoints_were_packed_with() -> None:
    packed = bytes.fromhex(
        "28b52ffd20562d0100982c20616e6420736f6d657468696e67206e65770640009fa4c018821a291bf15886b84e04"
    )
    assert unpack(packed) == b"usage_metadata AIMessage channel_versions branch:to:model tool_call, and something new"
