"""Streams without an end: which lists of a browser are out of date; and the agent streaming protocol, commands to a thread and its
events, over HTTP or a WebSocket.

The protocol is what ``client.threads.stream`` of the LangGraph SDKs and ``useStream`` of ``@langchain/react`` speak.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.websockets import WebSocketDisconnected

from deerflow.errors import RequestError, UnauthenticatedError
from deerflow.events.jsonable import encode
from deerflow.events.streams.langgraph_sse import HEARTBEAT
from deerflow.runs.protocol_commands import READING, ProtocolCommand, ProtocolCommands, ProtocolSession, error_answer
from deerflow.runs.protocol_stream import EventStreamRequest
from deerflow_app.gateway.auth.scopes import require
from deerflow_app.gateway.http.errors import ErrorBody, described
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.http.streaming import EventStreamResponse, open_stream
from deerflow_app.gateway.routes import CurrentCredential, CurrentPrincipal, CurrentRuntime, Runtime, raw

router = Router(tags=["events"])
protocol_routes = Router(tags=["protocol"])

HEARTBEAT_SECONDS = 5.0
GOING_AWAY, POLICY_VIOLATION = 1012, 1008
_ENDLESS = raw("text/event-stream", "Server-sent events, for ever.")


@router.get("/api/events", summary="Notices of what has changed", **_ENDLESS)
async def notices(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    """Each event is one JSON object that names what to load again, such as `{"type": "runs", "thread_id": "…"}`; `{"type":
    "refresh"}` means everything. Notices are not kept: whoever connects again loads everything again."""
    return EventStreamResponse(_notices(runtime.hub.subscribe(principal.user_id, heartbeat=HEARTBEAT_SECONDS)))


async def _notices(notices: AsyncGenerator[list[dict[str, Any]], None]) -> AsyncGenerator[bytes, None]:
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


# the agent streaming protocol -----------------------------------------------------------------------------------------


class Meta(BaseModel):
    applied_through_seq: int = Field(description="What lies up to this position of the thread's events came before.")


class CommandAnswer(BaseModel):
    type: str = Field(examples=["success"])
    id: int
    result: dict[str, Any] = Field(examples=[{"run_id": "0b7a9a3e-5a2e-4d7c-9f2f-6f2f0d1c9a11"}])
    meta: Meta | None = None


class CommandError(BaseModel):
    type: str = Field(examples=["error"])
    id: int | None
    error: str = Field(examples=["invalid_argument", "no_such_interrupt", "not_supported"])
    message: str


_ERRORS = described(
    {
        400: "There is no such command.",
        404: "The thread, run, checkpoint or interrupt does not exist.",
        409: "It does not fit what the thread is doing.",
        422: "The parameters are not valid, or something is asked for that is not supported.",
    },
    CommandError | ErrorBody,  # what has not the shape of a command is answered as everywhere
)


@protocol_routes.post(
    "/api/threads/{thread_id}/commands",
    summary="Start, answer, steer or inspect a run",
    response_model=CommandAnswer,
    response_model_exclude_none=True,
    responses=_ERRORS,
)
async def execute(
    thread_id: str, command: ProtocolCommand, credential: CurrentCredential, runtime: CurrentRuntime
) -> Any:
    """`run.start` {assistant_id, input, …}: the thread is made if there is none. `input.respond` {interrupt_id, response}
    or {responses}. `input.inject` {message}: hand a message to the run that is on its way. `state.get`,
    `state.listCheckpoints`, `state.fork` {checkpoint_id, input}, `agent.getTree`. `subscription.*` need the WebSocket.
    """
    require(credential, "read" if command.method in READING else "write")
    try:
        return await _commands(runtime).execute(credential.principal, thread_id, command)
    except RequestError as error:
        return JSONResponse(error_answer(command.id, error), error.status)


@protocol_routes.post("/api/threads/{thread_id}/stream/events", summary="Follow the events of a thread", **_ENDLESS)
async def follow(
    thread_id: str, request: EventStreamRequest, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    """Each event is one JSON object {type, event_id, seq, method, params {namespace, timestamp, data}}. Without `since` the
    newest run is told from its start. Events keep their ids: drop those that you have seen."""
    events = await runtime.streams.open(principal, thread_id, request, since=request.since)
    return EventStreamResponse(_sse(events))


@protocol_routes.websocket("/api/threads/{thread_id}/stream/events")
async def connect(socket: WebSocket, thread_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    """Commands in; answers, and the events of subscriptions, out."""
    await socket.accept()

    async def send(message: dict[str, Any]) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.send_text(encode(message).decode())

    session = ProtocolSession(principal, thread_id, commands=_commands(runtime), streams=runtime.streams, send=send)
    try:
        with open_stream(socket.scope):
            await session.run(_heard(socket))
    except UnauthenticatedError:  # signed out, or the token was revoked, while the socket was open
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(POLICY_VIOLATION)
    finally:
        await session.aclose()
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(GOING_AWAY)


def _commands(runtime: Runtime) -> ProtocolCommands:
    return ProtocolCommands(runtime.runs, runtime.threads.states, runtime.streams)


async def _heard(socket: WebSocket) -> AsyncIterator[str]:
    # A client that is gone shows in what we send as well; then there is nothing to receive either.
    with suppress(WebSocketDisconnected):
        async for text in socket.iter_text():
            await socket.app.state.authenticator.authenticate(socket)
            yield text


async def _sse(events: AsyncGenerator[list[dict[str, Any]], None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        async for batch in events:
            frames = (b"id: %b\r\ndata: %b\r\n\r\n" % (event["event_id"].encode(), encode(event)) for event in batch)
            yield b"".join(frames) or HEARTBEAT
