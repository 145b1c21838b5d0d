from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deerflow.events.streams.langgraph_sse import HEARTBEAT, frame
from deerflow_app.remote.stream import ServerEvent, server_events


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_events_are_whole_however_the_bytes_come(size: int) -> None:
    json = '{"text":"数据\u2028\x85 one line: still"}'.encode()
    sent = frame("messages", json, 5) + HEARTBEAT + frame("end", b"{}", 6) + frame("lost", b'{"cut":1}', 7)[:-4]
    assert [event async for event in server_events(chunks(sent, size))] == [
        ServerEvent("messages", json, "5"),
        None,
        ServerEvent("end", b"{}", "6"),
    ]


async def test_lines_may_end_as_other_servers_and_proxies_write_them() -> None:
    sent = b"event: a\ndata: [1,\ndata: 2]\nid: 9\n\ndata:3\n\n"
    events = [event async for event in server_events(chunks(sent, 4))]
    assert events == [ServerEvent("a", b"[1,\n2]", "9"), ServerEvent("message", b"3", "")]
