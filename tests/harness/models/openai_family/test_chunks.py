"""Streams are read to the end, put right where servers differ, and never half believed."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.event_loop import LoopTurns
from deerflow.models.openai_chunks import aread_chunks
from deerflow.server_events import Event, EventDecoder

STREAM = {"content-type": "text/event-stream; charset=utf-8"}


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body that arrives in the given pieces and knows whether it was closed."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


async def read(*pieces: bytes | Exception, headers: dict[str, str] = STREAM) -> list[dict[str, Any]]:
    """What becomes of a body, which is closed in any case."""
    body = Body(*pieces)
    request = httpx2.Request("POST", "http://server/v1/chat/completions")
    response = httpx2.Response(200, headers=headers, stream=body, request=request)
    try:
        return [chunk async for chunk in aread_chunks(response, LoopTurns(), timeout=30, model_name="m")]
    finally:
        assert body.closed


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


DONE = event(b"[DONE]")
HI, STOP = delta(content="hi"), delta("stop")
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


@given(
    st.lists(st.binary(max_size=12).filter(lambda data: b"\n" not in data and b"\r" not in data), max_size=5),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_events_do_not_depend_on_how_the_bytes_arrive(payloads: list[bytes], end: bytes, cuts: list[int]) -> None:
    body = b"".join(b": ping" + end + b"id: 7" + end + b"data: " + data + end + end for data in payloads)
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    decoder = EventDecoder()
    # A CR that ends the body may be half of a CRLF, so that only a next byte settles it.
    pieces = [body[start:stop] for start, stop in itertools.pairwise(edges)] + [b": end"]
    events = [event for piece in pieces for event in decoder.feed(piece)]
    assert events == [Event(b"", data, b"7") for data in payloads]


def test_several_data_lines_are_one_event() -> None:
    assert EventDecoder().feed(b"event: x\ndata: a\ndata:b\n\ndata: c\n\n") == [Event(b"x", b"a\nb"), Event(b"", b"c")]


async def test_the_end_mark_ends_the_stream_whatever_follows() -> None:
    assert await read(event(HI) + DONE + b"data: rubbish\n\n", b"more") == [HI]


async def test_a_stream_without_end_mark_is_whole_if_it_gave_a_reason() -> None:
    assert await read(event(HI), event(STOP)) == [HI, STOP]


@pytest.mark.parametrize("pieces", [[], [event(HI)], [event(HI), event(STOP)[:-20]], [b": ping\n\n"]], ids=str)
async def test_a_stream_that_just_ends_is_an_error(pieces: list[bytes]) -> None:
    with pytest.raises(openai.APIConnectionError, match="broke off"):
        await read(*pieces)


async def test_a_broken_connection_is_an_error_with_its_cause() -> None:
    with pytest.raises(openai.APIConnectionError, match="peer closed") as caught:
        await read(event(HI), httpx2.RemoteProtocolError("peer closed"))
    assert isinstance(caught.value.__cause__, httpx2.RemoteProtocolError)


async def test_a_silent_connection_is_a_timeout() -> None:
    with pytest.raises(openai.APITimeoutError):
        await read(event(HI), httpx2.ReadTimeout("silence"))


@pytest.mark.parametrize(
    "data",
    [
        event({"error": {"message": "overloaded", "type": "server_error"}}),
        event({"error": "overloaded"}),
        b"event: error\n" + event({"message": "overloaded"}),
    ],
)
async def test_an_error_inside_of_a_stream_is_raised(data: bytes) -> None:
    with pytest.raises(openai.APIError, match="overloaded"):
        await read(event(HI), data, DONE)


@pytest.mark.parametrize("data", [b"<html>", b"[1]", b"7", b'{"a":', b"\xff"])
async def test_an_event_that_is_no_object_is_an_error(data: bytes) -> None:
    with pytest.raises(openai.APIConnectionError, match="not a JSON object"):
        await read(event(HI), event(data), DONE)


async def test_an_error_document_instead_of_a_stream_is_raised() -> None:
    with pytest.raises(openai.APIError, match="no credit"):
        await read(b'{"error": {"message": "no credit"}}', headers={"content-type": "application/json"})


async def test_a_page_instead_of_a_stream_says_what_to_check() -> None:
    with pytest.raises(openai.APIResponseValidationError, match=r"text/html.*base_url"):
        await read(b"<html>Welcome</html>", headers={"content-type": "text/html"})


async def test_half_surrogates_in_an_event_are_mended() -> None:
    assert await read(event(rb'{"choices": [{"delta": {"content": "\ud83d!\ud83d\ude00"}}]}'), DONE) == [
        {"choices": [{"delta": {"content": "\ufffd!😀"}}]}
    ]


async def test_a_choice_without_delta_is_an_empty_one() -> None:
    assert await read(event({"choices": [{"finish_reason": "stop"}]}), DONE) == [
        {"choices": [{"finish_reason": "stop", "delta": {}}]}
    ]


def usages(chunks: list[dict[str, Any]]) -> list[Any]:
    return [chunk["usage"] for chunk in chunks if chunk.get("usage")]


@pytest.mark.parametrize(
    "chunks",
    [
        [HI, STOP, {"choices": [], "usage": USAGE}],
        [HI, {**STOP, "usage": USAGE}],
        [{**HI, "usage": {"total_tokens": 1}}, {**STOP, "usage": USAGE}],
        [{**HI, "usage": {"total_tokens": 1}}, {**STOP, "usage": USAGE}, {"choices": [], "usage": USAGE}],
        [{**HI, "usage": {"total_tokens": 1}}, {**HI, "usage": USAGE}, STOP],
        [HI, STOP, {**delta(), "usage": USAGE}],
    ],
)
async def test_usage_is_told_once_wherever_the_server_puts_it(chunks: list[dict[str, Any]]) -> None:
    assert usages(await read(*map(event, chunks), DONE)) == [USAGE]


async def test_calls_without_index_are_numbered_by_their_ids() -> None:
    fragments = [
        [{"id": "a", "function": {"name": "x", "arguments": "{"}}],
        [{"function": {"arguments": "}"}}],
        [{"id": "b", "function": {"name": "y", "arguments": {"k": 1}}}, {"id": "c", "function": None}],
    ]
    chunks = await read(*[event(delta(tool_calls=calls)) for calls in fragments], event(STOP))
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert [call["index"] for call in calls] == [0, 0, 1, 2]
    assert calls[2]["function"]["arguments"] == '{"k":1}'
    assert calls[3]["function"] == {}


@pytest.mark.parametrize(
    "data",
    [
        b"[DONE]",
        b"[" * 5000 + b"]" * 5000,
        b'{"choices": [{"delta": {"content": ' + b"[" * 5000 + b"]" * 5000 + b"}}]}",
        b"[1, 2]",
        b'{"choices": [[1]]}',
        b'{"choices": {"a": 1}}',
        b'{"choices": [{"delta": [1]}]}',
        b'{"choices": [{"delta": {"tool_calls": [7]}}]}',
    ],
    ids=lambda data: data[:40].decode(),
)
async def test_what_no_answer_looks_like_is_a_connection_that_is_tried_again(data: bytes) -> None:
    with pytest.raises(openai.APIConnectionError, match="http://server"):
        await read(event(data), event(b"[DONE]"))


async def test_ids_that_are_numbers_become_text() -> None:
    call = {"id": 7, "function": {"name": "bash", "arguments": "{}"}}
    (chunk, *_) = await read(
        event({"id": 12, "choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "stop"}]}), event(b"[DONE]")
    )
    assert (chunk["id"], chunk["choices"][0]["delta"]["tool_calls"][0]["id"]) == ("12", "7")
