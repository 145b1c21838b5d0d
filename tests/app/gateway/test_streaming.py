"""Event streams over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
import zstandard
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from deerflow.events.log import RunEvent
from deerflow.events.streams.langgraph_sse import Frames, frame
from deerflow_app.gateway.http.compression import CompressionMiddleware
from deerflow_app.gateway.http.streaming import EventStreamResponse, rendered

GUARD = 60


class Source:
    """A stream that says a piece whenever it is told to."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.closed = asyncio.Event()
        self.left = asyncio.Event()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        try:
            while (piece := await self.pieces.get()) is not None:
                yield piece
        finally:
            self.closed.set()

    async def leave(self) -> None:
        self.left.set()


@asynccontextmanager
async def serving(source: Source, heartbeat: float = GUARD) -> AsyncIterator[str]:
    async def endpoint(request: Request) -> EventStreamResponse:
        headers = {"Location": "/threads/t/runs/r/stream", "Content-Location": "/threads/t/runs/r"}
        return EventStreamResponse(source.stream(), headers=headers, on_disconnect=source.leave, heartbeat=heartbeat)

    inner = Starlette(routes=[Route("/", endpoint)])
    inner.state.metrics = SimpleNamespace(open_streams=0)
    app = CompressionMiddleware(inner)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    running = asyncio.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = server.force_exit = True
        await running


@asynccontextmanager
async def opened(url: str, coding: str = "identity") -> AsyncIterator[httpx.Response]:
    async with asyncio.timeout(GUARD), httpx.AsyncClient(timeout=GUARD) as client:
        async with client.stream("GET", url, headers={"Accept-Encoding": coding}) as response:
            yield response


async def test_headers_come_before_the_first_event() -> None:
    source = Source()
    async with serving(source) as url, opened(url) as response:
        assert response.headers["content-type"].partition(";")[0] == "text/event-stream"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["location"] == "/threads/t/runs/r/stream"
        assert response.headers["content-location"] == "/threads/t/runs/r"
        assert "content-length" not in response.headers
        source.pieces.put_nowait(None)
        assert await response.aread() == b""


@pytest.mark.parametrize("coding", ["identity", "zstd", "br", "gzip"])
async def test_every_event_arrives_when_it_is_sent(coding: str) -> None:
    source = Source()
    async with serving(source) as url, opened(url, coding) as response:
        assert response.headers.get("content-encoding", "identity") == coding
        chunks = response.aiter_bytes()
        for number in range(20):
            event = frame("custom", b'{"number": %d}' % number, number)
            source.pieces.put_nowait(event)
            received = b""
            while len(received) < len(event):
                received += await anext(chunks)
            assert received == event
        source.pieces.put_nowait(None)
        assert [chunk async for chunk in chunks] == []
    assert source.closed.is_set()
    assert not source.left.is_set()


async def test_silence_is_filled_with_comments() -> None:
    source = Source()
    async with serving(source, heartbeat=0.02) as url, opened(url) as response:
        received = b""
        async for chunk in response.aiter_bytes():
            received += chunk
            if received.count(b": heartbeat\r\n\r\n") == 3:
                source.pieces.put_nowait(None)
        assert set(received.split(b"\r\n\r\n")) == {b": heartbeat", b""}


async def test_a_client_that_leaves_is_noticed_at_once() -> None:
    source = Source()
    async with serving(source) as url:
        async with opened(url):
            pass
        async with asyncio.timeout(GUARD):
            await source.left.wait()
            await source.closed.wait()


async def test_a_stream_that_breaks_is_cut_off_rather_than_ended() -> None:
    class Broken(Source):
        async def stream(self) -> AsyncGenerator[bytes, None]:
            yield frame("custom", b"1", 1)
            raise RuntimeError("the database is gone")

    async with serving(Broken()) as url:
        with pytest.raises(httpx.RemoteProtocolError):
            async with opened(url) as response:
                await response.aread()


async def test_a_client_that_does_not_read_holds_up_only_itself() -> None:
    made = 0

    class Fast(Source):
        async def stream(self) -> AsyncGenerator[bytes, None]:
            nonlocal made
            for _ in range(2000):
                made += 1
                yield b"x" * 65_536

    async with serving(Fast()) as url:
        reader, writer = await asyncio.open_connection(
            url.split("/")[2].split(":")[0], int(url.rstrip("/").rsplit(":", 1)[1])
        )
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        before = -1
        async with asyncio.timeout(GUARD):
            while made == 0 or made != before:
                before = made
                await asyncio.sleep(0.1)
        assert made < 1000
        writer.close()


async def test_batches_of_events_become_frames_until_the_run_ends() -> None:
    async def batches() -> AsyncGenerator[list[RunEvent], None]:
        yield [RunEvent(1, "r", "metadata", {"run_id": "r"})]
        yield []
        yield [RunEvent(2, "r", "custom", "unasked")]
        yield [RunEvent(3, "r", "end", {"status": "success"})]
        raise AssertionError("read after the end")

    async def nothing() -> Any:
        return None

    async with aclosing(rendered(batches(), Frames(["updates"], False, nothing))) as chunks:
        assert [chunk.split(b"\r\n")[0] async for chunk in chunks] == [b"event: metadata", b"event: end"]


async def test_repeated_states_cost_little_with_a_far_window() -> None:
    source = Source()
    state = frame(
        "values", b'"' + zstandard.ZstdCompressor().compress(bytes(range(256)) * 8).hex().encode() * 2000 + b'"', 1
    )
    async with serving(source) as url, opened(url, "zstd") as response:
        for _ in range(10):
            source.pieces.put_nowait(state)
        source.pieces.put_nowait(None)
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
    assert zstandard.ZstdDecompressor().decompressobj().decompress(raw) == state * 10
    assert len(raw) < len(state)
