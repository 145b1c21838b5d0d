"""The agent streaming protocol: commands to a thread, and its events, over HTTP or a WebSocket.

It is what ``client.threads.stream`` of the LangGraph SDKs and ``useStream`` of ``@langchain/react`` speak.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.websockets import WebSocketDisconnected

from deerflow.errors import RequestError, UnauthenticatedError
from deerflow.events.jsonable import encode
from deerflow.events.streams.langgraph_sse import HEARTBEAT
from deerflow.runs.protocol_commands import Command, ProtocolCommands, ProtocolSession, error_answer
from deerflow.runs.protocol_stream import EventStreamRequest, ProtocolStreams
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime
from deerflow_app.gateway.http.errors import ErrorBody
from deerflow_app.gateway.http.streaming import EventStreamResponse

router = APIRouter(tags=["protocol"])

GOING_AWAY, POLICY_VIOLATION = 1012, 1008


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


async def protocol_streams(runtime: CurrentRuntime) -> ProtocolStreams:
    return runtime.streams


Streams = Annotated[ProtocolStreams, Depends(protocol_streams)]


async def protocol_commands(runtime: CurrentRuntime, streams: Streams) -> ProtocolCommands:
    return ProtocolCommands(runtime.runs, runtime.threads.states, streams)


Commands = Annotated[ProtocolCommands, Depends(protocol_commands)]

_ERRORS: dict[int | str, dict[str, Any]] = {
    # What has not the shape of a command is answered as everywhere.
    status: {"model": CommandError | ErrorBody, "description": description}
    for status, description in {
        400: "There is no such command.",
        404: "The thread, run, checkpoint or interrupt does not exist.",
        409: "It does not fit what the thread is doing.",
        422: "The parameters are not valid, or something is asked for that is not supported.",
    }.items()
}


@router.post(
    "/api/threads/{thread_id}/commands",
    summary="Start, answer, steer or inspect a run",
    response_model=CommandAnswer,
    response_model_exclude_none=True,
    responses=_ERRORS,
)
async def execute(thread_id: str, command: Command, principal: CurrentPrincipal, commands: Commands) -> Any:
    """`run.start` {assistant_id, input, …}: the thread is made if there is none. `input.respond` {interrupt_id, response}
    or {responses}. `input.inject` {message}: hand a message to the run that is on its way. `state.get`,
    `state.listCheckpoints`, `state.fork` {checkpoint_id, input}, `agent.getTree`. `subscription.*` need the WebSocket.
    """
    try:
        return await commands.execute(principal, thread_id, command)
    except RequestError as error:
        return JSONResponse(error_answer(command.id, error), error.status)


@router.post(
    "/api/threads/{thread_id}/stream/events",
    summary="Follow the events of a thread",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events, for ever."}},
)
async def follow(
    thread_id: str, request: EventStreamRequest, principal: CurrentPrincipal, streams: Streams
) -> Response:
    """Each event is one JSON object {type, event_id, seq, method, params {namespace, timestamp, data}}. Without `since` the
    newest run is told from its start. Events keep their ids: drop those that you have seen."""
    events = await streams.open(principal, thread_id, request, since=request.since)
    return EventStreamResponse(_sse(events))


@router.websocket("/api/threads/{thread_id}/stream/events")
async def connect(
    socket: WebSocket, thread_id: str, principal: CurrentPrincipal, commands: Commands, streams: Streams
) -> None:
    """Commands in; answers, and the events of subscriptions, out."""
    await socket.accept()

    async def send(message: dict[str, Any]) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.send_text(encode(message).decode())

    session = ProtocolSession(principal, thread_id, commands=commands, streams=streams, send=send)
    try:
        await session.run(_heard(socket))
    except UnauthenticatedError:  # signed out, or the token was revoked, while the socket was open
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(POLICY_VIOLATION)
    finally:
        await session.aclose()
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(GOING_AWAY)


async def _heard(socket: WebSocket) -> AsyncIterator[str]:
    # A client that is gone shows in what we send as well; then there is nothing to receive either.
    with suppress(WebSocketDisconnected):
        async for text in socket.iter_text():
            await socket.app.state.authenticator.authenticate(socket)
            yield text


async def _sse(events: Any) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        async for batch in events:
            yield (
                b"".join(b"id: %b\r\ndata: %b\r\n\r\n" % (event["event_id"].encode(), encode(event)) for event in batch)
                or HEARTBEAT
            )
