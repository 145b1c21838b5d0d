from __future__ import annotations

import pytest

from deerflow.events.streams.langgraph_sse import HEARTBEAT, frame
from deerflow.server_events import Event, EventDecoder


def events(data: bytes, size: int) -> list[Event]:
    decoder = EventDecoder()
    return [event for start in range(0, len(data), size) for event in decoder.feed(data[start : start + size])]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_events_are_whole_however_the_bytes_come(size: int) -> None:
    json = '{"text":"数据\u2028\x85 one line: still"}'.encode()
    sent = frame("messages", json, 5) + HEARTBEAT + frame("end", b"{}", 6) + frame("lost", b'{"cut":1}', 7)[:-4]
    assert events(sent, size) == [Event(b"messages", json, b"5"), Event(b"end", b"{}", b"6")]


def test_lines_may_end_as_other_servers_and_proxies_write_them() -> None:
    sent = b"event: a\ndata: [1,\ndata: 2]\nid: 9\n\ndata:3\n\n"
    # The last id stays that of the events behind it, says the standard.
    assert events(sent, 4) == [Event(b"a", b"[1,\n2]", b"9"), Event(b"", b"3", b"9")]
