"""Answers that go on: server-sent events over ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from deerflow.events.log import RunEvent
from deerflow.events.streams.langgraph_sse import HEARTBEAT, Frames

HEARTBEAT_SECONDS = 5.0


async def rendered(events: AsyncGenerator[list[RunEvent], None], frames: Frames) -> AsyncGenerator[bytes, None]:
    """Batches of events as bytes for a client, up to the end of the run."""
    async with aclosing(events):
        async for batch in events:
            if data := await frames.render(batch):
                yield data
            if frames.ended:
                return


class EventStreamResponse(Response):
    """Sends each chunk as it is made, and a comment when there was none for a while.

    Args:
        content: chunks of whole events. Pulled one at a time, so a slow client holds up only its own generator.
        headers: further ones, such as Location and Content-Location.
        on_disconnect: awaited if the client leaves before the content ends. Not if the server stops.
        heartbeat: seconds of silence before a comment.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        content: AsyncGenerator[bytes, None],
        *,
        headers: Mapping[str, str] | None = None,
        on_disconnect: Callable[[], Awaitable[object]] | None = None,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no", **(headers or {})})
        # Its length is not known; Response takes a missing body for an empty one.
        self.raw_headers = [header for header in self.raw_headers if header[0] != b"content-length"]
        self._content = content
        self._on_disconnect = on_disconnect
        self._heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (leaving, sending):
                if not task.done():
                    task.cancel()
            await asyncio.wait((sending, leaving))
        if sending.cancelled() or isinstance(sending.exception(), _ClientLeftError):
            if self._on_disconnect is not None:
                await self._on_disconnect()
        else:
            sending.result()

    async def _send(self, send: Send) -> None:
        writer = _Writer(send)
        beating = asyncio.create_task(writer.beat(self._heartbeat))
        try:
            async with aclosing(self._content):
                async for chunk in self._content:
                    await writer.write(chunk)
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError, _ClientLeftError):
                await beating
        await writer.write(b"", more=False)


class _ClientLeftError(Exception):
    """Nobody reads any more."""


class _Writer:
    """Writes one chunk at a time, whole, whoever makes it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = asyncio.Lock()
        self._last = asyncio.get_running_loop().time()

    async def write(self, chunk: bytes, *, more: bool = True) -> None:
        async with self._lock:
            try:
                await self._send({"type": "http.response.body", "body": chunk, "more_body": more})
            except OSError as error:
                raise _ClientLeftError from error
            self._last = asyncio.get_running_loop().time()

    async def beat(self, seconds: float) -> None:
        while True:
            silence = asyncio.get_running_loop().time() - self._last
            if silence < seconds:
                await asyncio.sleep(seconds - silence)
            else:
                await self.write(HEARTBEAT)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
