"""One stream per browser that says which lists are out of date."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from deerflow.events.jsonable import encode
from deerflow.events.streams.langgraph_sse import HEARTBEAT
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime
from deerflow_app.gateway.http.streaming import EventStreamResponse

router = APIRouter(tags=["events"])

HEARTBEAT_SECONDS = 5.0


@router.get(
    "/api/events",
    summary="Notices of what has changed",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events, for ever."}},
)
async def notices(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    """Each event is one JSON object that names what to load again, such as `{"type": "runs", "thread_id": "…"}`; `{"type":
    "refresh"}` means everything. Notices are not kept: whoever connects again loads everything again."""
    notices = runtime.hub.subscribe(principal.user_id, heartbeat=HEARTBEAT_SECONDS)
    return EventStreamResponse(_sse(notices))


async def _sse(notices: AsyncGenerator[list[dict[str, Any]], None]) -> AsyncGenerator[bytes, None]:
    """The first bytes say that nothing will be missed from here on: whoever loads its lists after them is up to date."""
    async with aclosing(notices):
        first = asyncio.ensure_future(anext(notices))
        try:
            await asyncio.sleep(0)  # the task runs until it listens
            yield HEARTBEAT
            yield _frames(await first)
        finally:
            first.cancel()
            await asyncio.wait([first])
        async for batch in notices:
            yield _frames(batch)


def _frames(batch: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % encode(notice) for notice in batch) or HEARTBEAT
