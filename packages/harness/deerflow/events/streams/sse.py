"""Server-sent events as bytes. Lines end with CR LF, as those of the LangGraph server do."""

from __future__ import annotations

HEARTBEAT = b": heartbeat\r\n\r\n"
"""A comment: clients learn from it that the connection lives. The JavaScript SDK learns the cadence, too."""


def frame(event: str, json: bytes, seq: int) -> bytes:
    """One event; ``json`` is one line."""
    return b"event: %b\r\ndata: %b\r\nid: %d\r\n\r\n" % (event.encode(), json, seq)
