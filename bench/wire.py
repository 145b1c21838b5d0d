"""Replies as bytes: HTTP responses and server-sent events in the shapes of OpenAI's chat completions API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from bench.replies import Cut, Empty, HttpError, RawChunks, RawToolCall, Reply, Text, ToolCalls, Usage, words

CREATED = 1700000000
ARGUMENT_PIECES = 8
"""Into about how many deltas the arguments of a call are cut."""

ERROR_TYPES = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("server_error", "service_unavailable"),
}
ERROR_MESSAGES = {
    400: "The request is invalid (scripted).",
    401: "Incorrect API key provided (scripted).",
    404: "The model does not exist (scripted).",
    429: "Rate limit reached (scripted).",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every event of one response repeats."""

    id: str
    model: str
    usage: Usage
    include_usage: bool


@dataclass(frozen=True, slots=True)
class Response:
    """A response in parts: ``head`` opens it, then come ``frames``; ``cut`` closes the socket behind the last one."""

    head: bytes
    frames: Sequence[bytes]
    cut: bool = False


DONE = b"data: [DONE]\n\n"
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def stream_response(reply: Reply, envelope: Envelope) -> Response:
    """Encode a reply to a streaming request."""
    if isinstance(reply, HttpError):
        return error_response(reply)
    if isinstance(reply, RawChunks):
        events = [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in reply.chunks]
        return Response(SSE_HEAD, _complete([*events, DONE]))
    if isinstance(reply, Cut):
        events = [*_text_events(Text(reply.text), envelope)][: 1 + reply.after_chunks]
        return Response(SSE_HEAD, [_chunked(event) for event in events], cut=True)
    return Response(SSE_HEAD, _complete(_events(reply, envelope)))


def whole_response(reply: Reply, envelope: Envelope) -> Response:
    """Encode a reply to a request without streaming."""
    if isinstance(reply, HttpError):
        return error_response(reply)
    if isinstance(reply, RawChunks):
        return json_response(reply.chunks[0])
    if isinstance(reply, Cut):
        body = orjson.dumps(_completion(Text(reply.text), envelope))
        return Response(_head(200, len(body)), [body[: len(body) // 2]], cut=True)
    return json_response(_completion(reply, envelope))


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = value if isinstance(value, bytes) else orjson.dumps(value)
    return Response(_head(status, len(body), headers=headers), [body])


def error_response(error: HttpError) -> Response:
    """Encode an error with OpenAI's error object, unless the script gives its own body."""
    if isinstance(error.body, bytes):
        head = _head(error.status, len(error.body), "text/html; charset=utf-8", error.headers)
        return Response(head, [error.body])
    body = error.body
    if body is None or isinstance(body, str):
        type_, code = ERROR_TYPES.get(error.status, ("server_error" if error.status >= 500 else "api_error", None))
        message = body or ERROR_MESSAGES.get(error.status, f"Error {error.status} (scripted).")
        body = {"error": {"message": message, "type": type_, "param": None, "code": code}}
    return json_response(body, error.status, error.headers)


def _head(
    status: int, length: int, content_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> bytes:
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Scripted"
    lines = [f"HTTP/1.1 {status} {phrase}", f"content-type: {content_type}", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _chunked(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _complete(events: Iterable[bytes]) -> list[bytes]:
    """The last event and the end of the body are one frame: clients hang up once they read ``[DONE]``."""
    frames = [_chunked(event) for event in events]
    return [*frames[:-1], frames[-1] + _chunked(b"")]


def _events(reply: Reply, envelope: Envelope) -> Iterator[bytes]:
    match reply:
        case Text():
            yield from _text_events(reply, envelope)
        case ToolCalls():
            yield from _call_events(reply, envelope)
        case RawToolCall():
            yield from _call_events(ToolCalls(reply), envelope)
        case Empty():
            yield from _text_events(Text(), envelope)
        case _:
            raise TypeError(f"{reply!r} is not a reply with content")


def _text_events(reply: Text, envelope: Envelope) -> Iterator[bytes]:
    start, end = _around(envelope)
    yield start + b'{"role":"assistant","content":""}' + end
    for piece in words(reply.reasoning or ""):
        yield start + orjson.dumps({reply.reasoning_field: piece}) + end
    for piece in reply.pieces:
        yield start + b'{"content":' + orjson.dumps(piece) + b"}" + end
    yield from _last_events(reply.finish_reason, reply.usage, envelope)


def _call_events(reply: ToolCalls, envelope: Envelope) -> Iterator[bytes]:
    start, end = _around(envelope)
    yield start + b'{"role":"assistant","content":""}' + end
    for piece in words(reply.reasoning or ""):
        yield start + orjson.dumps({reply.reasoning_field: piece}) + end
    for piece in words(reply.text):
        yield start + b'{"content":' + orjson.dumps(piece) + b"}" + end
    for index, call in enumerate(_wire_calls(reply, envelope)):
        arguments = call["function"]["arguments"]
        opening = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield start + orjson.dumps({"tool_calls": [opening]}) + end
        size = max(8, len(arguments) // ARGUMENT_PIECES)
        for at in range(0, len(arguments), size):
            delta = {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + size]}}]}
            yield start + orjson.dumps(delta) + end
    yield from _last_events("tool_calls", reply.usage, envelope)


def _around(envelope: Envelope) -> tuple[bytes, bytes]:
    opening = (
        b'data: {"id":"%b","object":"chat.completion.chunk","created":%d,"model":%b,"choices":[{"index":0,"delta":'
        % (
            envelope.id.encode(),
            CREATED,
            orjson.dumps(envelope.model),
        )
    )
    return opening, b',"logprobs":null,"finish_reason":null}]}\n\n'


def _last_events(finish_reason: str, usage: Usage | None, envelope: Envelope) -> Iterator[bytes]:
    chunk = {"id": envelope.id, "object": "chat.completion.chunk", "created": CREATED, "model": envelope.model}
    choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish_reason}
    yield b"data: " + orjson.dumps({**chunk, "choices": [choice]}) + b"\n\n"
    if envelope.include_usage:
        yield b"data: " + orjson.dumps({**chunk, "choices": [], "usage": usage or envelope.usage}) + b"\n\n"
    yield DONE


def _wire_calls(reply: ToolCalls, envelope: Envelope) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for index, call in enumerate(reply.calls):
        call_id = f"call_{envelope.id.removeprefix('chatcmpl-')}_{index}"
        if isinstance(call, RawToolCall):
            call_id, name, arguments = call.id or call_id, call.name, call.arguments
        else:
            name, arguments = call[0], orjson.dumps(call[1]).decode()
        calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})
    return calls


def _completion(reply: Reply, envelope: Envelope) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    finish_reason, usage = "stop", None
    if isinstance(reply, RawToolCall):
        reply = ToolCalls(reply)
    if isinstance(reply, Text):
        message["content"], finish_reason, usage = reply.content, reply.finish_reason, reply.usage
    elif isinstance(reply, ToolCalls):
        message |= {"content": reply.text or None, "tool_calls": _wire_calls(reply, envelope)}
        finish_reason, usage = "tool_calls", reply.usage
    if isinstance(reply, Text | ToolCalls) and reply.reasoning is not None:
        message[reply.reasoning_field] = reply.reasoning
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    head = {"id": envelope.id, "object": "chat.completion", "created": CREATED, "model": envelope.model}
    return {**head, "choices": [choice], "usage": usage or envelope.usage}
