"""Runs as answers show them, and the answers that last as long as a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from deerflow.agents.receipts import Check, Claim, Command, FileReceipt
from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.events.jsonable import encode, values_json
from deerflow.events.store import EVENTS_PER_CLAIM
from deerflow.events.streams.langgraph_sse import Frames
from deerflow.identity import Principal
from deerflow.runs.timeline import run_json, verification
from deerflow.storage.runs import Run as RunRow
from deerflow.storage.threads import Thread
from deerflow_app.gateway.http.answers import Moment
from deerflow_app.gateway.http.streaming import EventStreamResponse, rendered

if TYPE_CHECKING:
    from deerflow.runtime import Runtime

KEEP_ALIVE_SECONDS = 5.0
THREAD_MODES = {
    "run_modes": ("values", "updates", "messages-tuple", "custom"),
    "lifecycle": (),
    "state_update": ("values",),
}
"""What each mode of a thread's stream shows, besides how runs begin and end."""


class Run(BaseModel):
    """A run. ``kwargs`` is what was asked for."""

    run_id: str
    thread_id: str
    assistant_id: str | None
    agent: str | None = Field(description="The name of the custom agent that it is for.")
    status: str = Field(description="pending, running, success, error, interrupted or timeout.")
    metadata: dict[str, Any]
    kwargs: dict[str, Any]
    multitask_strategy: str
    created_at: Moment
    updated_at: Moment
    started_at: Moment | None
    ended_at: Moment | None
    attempt: int
    error: str | None
    stop_reason: str | None = Field(
        description="end_turn, interrupt, cancelled, timeout, checks_failed, or the kind of error."
    )
    model_name: str | None
    first_human_message: str | None
    last_ai_message: str | None
    message_count: int
    total_input_tokens: int
    total_output_tokens: int
    total_tokens: int
    llm_call_count: int
    cost: float | None = Field(description="In the currency of the model's price.")
    verification: str | None = Field(
        description="verified, partly or claimed: whether what the run did bears out its answer. None before a good end."
    )
    checkpoint_before: str | None = Field(description="Fork from here to ask again.")
    checkpoint_after: str | None
    trace_id: str | None = Field(description="Of OpenTelemetry; None for runs of older versions.")

    @classmethod
    def of(cls, run: RunRow) -> Run:
        return cls.model_validate(run_json(run))


class Receipts(BaseModel):
    """See :class:`deerflow.agents.receipts.Receipts`."""

    verification: str | None
    claims: list[Claim] = []
    checks: list[Check] = []
    commands: list[Command] = []
    files: list[FileReceipt] = []
    delivered: list[str] = []
    sources: list[str] = []
    open_todos: list[str] = []

    @classmethod
    def of(cls, run: RunRow) -> Receipts:
        return cls.model_validate({**(run.receipts or {}), "verification": verification(run)})


def run_headers(run: RunRow) -> dict[str, str]:
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
    run: RunRow,
    *,
    modes: list[str],
    subgraphs: bool,
    after: int = 0,
    cancel_on_disconnect: bool = False,
) -> Response:
    """The run's events as server-sent events, from its first to its last."""
    frames = Frames(modes, subgraphs, lambda: _values(runtime, run), after)
    events = runtime.runs.events(run, after=frames.start)
    return EventStreamResponse(
        rendered(events, frames),
        headers=run_headers(run),
        on_disconnect=canceller(runtime, principal, run) if cancel_on_disconnect else None,
    )


def thread_stream(runtime: Runtime, thread: Thread, *, modes: frozenset[str], after: int | None) -> Response:
    """The events of all runs of a thread, for ever; without ``after`` from the run that is on its way, else what comes."""
    shown = list(dict.fromkeys(mode for name in THREAD_MODES if name in modes for mode in THREAD_MODES[name]))
    begin = after if after is not None else (thread.epoch + (thread.status != "busy")) * EVENTS_PER_CLAIM

    async def frames() -> AsyncGenerator[bytes, None]:
        each = Frames(shown, True, lambda: _thread_values(runtime, thread.thread_id), begin)
        async with aclosing(runtime.event_log.read(thread.thread_id, after=begin)) as batches:
            async for batch in batches:
                if data := await each.render(batch):
                    yield data

    return EventStreamResponse(frames())


def final_values(
    runtime: Runtime, principal: Principal, run: RunRow, *, cancel_on_disconnect: bool = False
) -> Response:
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


async def _result(runtime: Runtime, run: RunRow) -> dict[str, Any]:
    if run.status in ("error", "timeout"):
        return {"__error__": {"error": run.stop_reason or "Error", "message": run.error or ""}}
    return await runtime.runs.values(run)


async def _values(runtime: Runtime, run: RunRow) -> dict[str, Any] | None:
    with suppress(NotFoundError):
        return await runtime.runs.values(run)
    return None


async def _thread_values(runtime: Runtime, thread_id: str) -> dict[str, Any]:
    if (live := await runtime.event_log.live_values(thread_id)) is not None:
        return live
    return await asyncio.to_thread(values_json, (await runtime.threads.states.snapshot(thread_id)).values)


def canceller(runtime: Runtime, principal: Principal, run: RunRow) -> Callable[[], Awaitable[None]]:
    """What stops a run, if it is there and has not ended."""

    async def cancel() -> None:
        with suppress(NotFoundError):
            await runtime.runs.cancel(principal, run.run_id)

    return cancel
