"""Answers that go on: server-sent events over ASGI, and those of runs and threads, which last as long as a run or for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.events.jsonable import encode, values_json
from deerflow.events.log import RunEvent
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.langgraph_sse import HEARTBEAT, Frames
from deerflow.identity import Principal
from deerflow.storage.runs import Run
from deerflow.storage.threads import Thread

if TYPE_CHECKING:
    from deerflow.runtime import Runtime

HEARTBEAT_SECONDS = KEEP_ALIVE_SECONDS = 5.0
THREAD_MODES = {
    "run_modes": ("values", "updates", "messages-tuple", "custom"),
    "lifecycle": (),
    "state_update": ("values",),
}
"""What each mode of a thread's stream shows, besides how runs begin and end."""


def run_headers(run: Run) -> dict[str, str]:
    """Where the run is, and where a client that lost its stream finds it again; relative to the API's address."""
    path = f"/threads/{run.thread_id}/runs/{run.run_id}"
    return {"Content-Location": path, "Location": f"{path}/stream"}


def position(last_event_id: str | None) -> int:
    """After which event to begin: that of ``Last-Event-ID``. Nothing, or ``-1``, means the beginning.

    Raises:
        InvalidRequestError: it is none of ours.
    """
    given = (last_event_id or "").strip()
    if given in ("", "-1"):
        return 0
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise InvalidRequestError("Last-Event-ID must be the id of an event of this stream, or -1 for its beginning.")
    return int(given)


def event_stream(
    runtime: Runtime,
    principal: Principal,
    run: Run,
    *,
    modes: list[str],
    subgraphs: bool,
    after: int = 0,
    cancel_on_disconnect: bool = False,
) -> Response:
    """The run's events as server-sent events, from its first to its last. Raises InvalidRequestError: there is no such mode."""

    async def values() -> dict[str, Any] | None:
        with suppress(NotFoundError):
            return await runtime.runs.values(run)
        return None

    frames = Frames(modes, subgraphs, values, after)
    return EventStreamResponse(
        rendered(runtime.runs.events(run, after=frames.start), frames),
        headers=run_headers(run),
        on_disconnect=canceller(runtime, principal, run) if cancel_on_disconnect else None,
    )


def thread_stream(runtime: Runtime, thread: Thread, *, modes: frozenset[str], after: int | None) -> Response:
    """The events of all runs of a thread, for ever; without ``after`` from the run that is on its way, else what comes."""
    shown = list(dict.fromkeys(mode for name in THREAD_MODES if name in modes for mode in THREAD_MODES[name]))
    begin = after if after is not None else (thread.epoch + (thread.status != "busy")) * EVENTS_PER_CLAIM

    async def values() -> dict[str, Any]:
        if (live := await runtime.event_log.live_values(thread.thread_id)) is not None:
            return live
        return await asyncio.to_thread(values_json, (await runtime.threads.states.snapshot(thread.thread_id)).values)

    events = runtime.event_log.read(thread.thread_id, after=begin)
    return EventStreamResponse(rendered(events, Frames(shown, True, values, begin), endless=True))


def final_values(runtime: Runtime, principal: Principal, run: Run, *, cancel_on_disconnect: bool = False) -> Response:
    """The thread's values when the run has ended, or ``{"__error__": {error, message}}``.

    Blanks keep the connection alive until then: JSON allows them, and clients give up on silence.
    """

    async def body() -> AsyncIterator[bytes]:
        ending = asyncio.ensure_future(runtime.runs.wait(principal, run.run_id))
        try:
            while not (await asyncio.wait([ending], timeout=KEEP_ALIVE_SECONDS))[0]:
                yield b"\n"
            yield encode(await _result(runtime, ending.result()))
        finally:
            if not ending.done():
                ending.cancel()
                if cancel_on_disconnect:
                    await asyncio.shield(canceller(runtime, principal, run)())

    headers = {**run_headers(run), "Location": f"/threads/{run.thread_id}/runs/{run.run_id}/join"}
    return StreamingResponse(body(), media_type="application/json", headers=headers)


async def _result(runtime: Runtime, run: Run) -> dict[str, Any]:
    if run.status in ("error", "timeout"):
        return {"__error__": {"error": run.stop_reason or "Error", "message": run.error or ""}}
    return await runtime.runs.values(run)


def canceller(runtime: Runtime, principal: Principal, run: Run) -> Callable[[], Awaitable[None]]:
    """What stops a run, if it is there and has not ended."""

    async def cancel() -> None:
        with suppress(NotFoundError):
            await runtime.runs.cancel(principal, run.run_id)

    return cancel


async def rendered(
    events: AsyncGenerator[list[RunEvent], None], frames: Frames, *, endless: bool = False
) -> AsyncGenerator[bytes, None]:
    """Batches of events as bytes for a client, up to the end of the run unless ``endless``."""
    async with aclosing(events):
        async for batch in events:
            if data := await frames.render(batch):
                yield data
            if frames.ended and not endless:
                return


@contextmanager
def open_stream(scope: Scope) -> Iterator[None]:
    """Count a stream of the application while it is open."""
    metrics = scope["app"].state.metrics
    metrics.open_streams += 1
    try:
        yield
    finally:
        metrics.open_streams -= 1


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
        with open_stream(scope):
            await self._follow(receive, send)

    async def _follow(self, receive: Receive, send: Send) -> None:
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
        clock = asyncio.get_running_loop().time
        writing = asyncio.Lock()
        last = clock()

        async def write(chunk: bytes, *, more: bool = True) -> None:
            """One chunk at a time, whole, whoever makes it."""
            nonlocal last
            async with writing:
                try:
                    await send({"type": "http.response.body", "body": chunk, "more_body": more})
                except OSError as error:
                    raise _ClientLeftError from error
                last = clock()

        async def beat() -> None:
            while True:
                silence = clock() - last
                if silence < self._heartbeat:
                    await asyncio.sleep(self._heartbeat - silence)
                else:
                    await write(HEARTBEAT)

        beating = asyncio.create_task(beat())
        try:
            async with aclosing(self._content):
                async for chunk in self._content:
                    await write(chunk)
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError, _ClientLeftError):
                await beating
        await write(b"", more=False)


class _ClientLeftError(Exception):
    """Nobody reads any more."""


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
