"""An answer to a client of OpenAI's API, of an agent or of a model alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

PREFIX = "/api/openai/v1"
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}, "text/event-stream": {}}, "description": "As OpenAI documents it."}
}


@dataclass(kw_only=True)
class Answer:
    """Args:
    id: without the prefix that each API gives it.
    created: seconds since 1970.
    model: as the client named it.
    thread_id: None: of a model alone.
    record: what the client asked besides, for its response.
    """

    id: str
    created: int
    model: str
    thread_id: str | None = None
    text: str = ""
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    error: Mapping[str, Any] | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    record: Mapping[str, Any] = field(default_factory=dict[str, Any])

    async def pieces(self) -> AsyncGenerator[tuple[str, str], None]:
        """Yield ``content`` and ``reasoning_content`` as they are generated."""
        yield "content", self.text

    def tokens(self, sent: str, received: str) -> dict[str, int]:
        """Return the usage, by the names that the API has for it."""
        used = {key: self.usage.get(key, 0) for key in ("input_tokens", "output_tokens", "total_tokens")}
        return {sent: used["input_tokens"], received: used["output_tokens"], "total_tokens": used["total_tokens"]}


def event(data: Mapping[str, Any], name: str = "") -> bytes:
    """Return a server-sent event."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + orjson.dumps(data) + b"\n\n"
