"""Mend what servers send beside the protocol before it is parsed, so that one odd character, tool or answer costs itself alone."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import httpx2
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from deerflow.security.text import inline

MAX_MESSAGE = 32 << 20
"""Bytes. A server that sends more in one message is cut off."""
MAX_REFUSAL = 64 << 10
"""Bytes that are read of an answer that is no message."""
MAX_SHOWN = 300
"""Characters of it that are shown."""

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
_LISTS = ("tools/list", "2025-11-25")
"""The method, and the version of the protocol, that a listed tool must fit."""


def mended(line: bytes) -> bytes:
    """Return a message, or a line of an event that holds one, in Unicode that is whole, and without what is invalid of a list of tools."""
    if b"\\" in line:
        line = _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], line)
    try:
        line.decode()
    except UnicodeDecodeError:
        line = line.decode(errors="replace").encode()
    return _with_valid_tools(line) if b'"tools"' in line else line


def _with_valid_tools(line: bytes) -> bytes:
    before, _, rest = line.partition(b"{")
    with suppress(ValueError, RecursionError):
        message = json.loads(b"{" + rest)
        result = message.get("result")
        if isinstance(result, dict) and isinstance(tools := result.get("tools"), list):
            made = [valid for tool in tools if (valid := _valid(tool)) is not None]
            if made != tools:
                result["tools"] = made
                return before + json.dumps(message).encode() + b"\n"
    return line


def _valid(tool: Any) -> dict[str, Any] | None:
    """A tool without what is invalid in its definition; None if it has no name, and so cannot be called."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    schema = tool.get("inputSchema")
    made = {**tool, "inputSchema": {**(schema if isinstance(schema, dict) else {}), "type": "object"}}
    try:
        validate_server_result(*_LISTS, {"tools": [made]})
    except ValidationError as error:
        odd = {part for one in error.errors() for part in one["loc"] if part in made}
        made = {key: value for key, value in made.items() if key not in odd} | {"inputSchema": made["inputSchema"]}
        if "inputSchema" in odd:
            made["inputSchema"] = _EMPTY
    return made


class ResponseLines(httpx2.AsyncByteStream):
    """The body of a response, mended line by line."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held: list[bytes] = []
        size = 0
        async for piece in self._response.aiter_bytes():
            end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            if end:
                for line in b"".join((*held, piece[:end])).splitlines(keepends=True):
                    yield mended(line)
                held, size = [], 0
            held.append(piece[end:])
            size += len(piece) - end
            if size > MAX_MESSAGE:
                raise httpx2.StreamError(f"A message has more than {MAX_MESSAGE >> 20} MB.")
        if last := b"".join(held):
            yield mended(last)

    async def aclose(self) -> None:
        await self._response.aclose()


class MendingClient(httpx2.AsyncClient):
    """Mends the bodies of responses. One that refuses a message becomes a JSON-RPC error that shows its status and its body."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        came = await super().send(request, stream=True, **options)
        headers = [pair for pair in came.headers.multi_items() if pair[0] not in ("content-encoding", "content-length")]
        made = httpx2.Response(
            came.status_code, headers=headers, stream=ResponseLines(came), request=request, extensions=came.extensions
        )
        made.next_request = came.next_request
        if came.is_error or (request.method == "POST" and came.status_code == 200 and not _holds_messages(came)):
            made = await _refusal(came)
        if not stream:
            await made.aread()
        return made


def shown(response: httpx2.Response) -> str:
    """Return the status of a response, and what its body says, for people."""
    body = inline(response.content.decode(errors="replace"), MAX_SHOWN)
    return f"The server answered {response.status_code} {response.reason_phrase}".rstrip() + (
        f": {body}" if body else "."
    )


def _holds_messages(response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in ("application/json", "text/event-stream")


async def _refusal(came: httpx2.Response) -> httpx2.Response:
    body = b""
    with suppress(httpx2.HTTPError):
        async for piece in came.aiter_bytes():
            body += piece
            if len(body) > MAX_REFUSAL:
                break
    await came.aclose()
    made = httpx2.Response(came.status_code, content=body, request=came.request, extensions=came.extensions)
    if came.request.method != "POST" or _is_error(body):
        made.headers["content-type"] = came.headers.get("content-type", "")
        return made
    gone = INVALID_REQUEST if "mcp-session-id" in came.request.headers else METHOD_NOT_FOUND
    code = gone if came.status_code == 404 else INTERNAL_ERROR
    error = {"jsonrpc": "2.0", "id": _id_of(came.request), "error": {"code": code, "message": shown(made)}}
    return httpx2.Response(came.status_code, json=error, request=came.request, extensions=came.extensions)


def _is_error(body: bytes) -> bool:
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
        return isinstance(found, Mapping) and "jsonrpc" in found and "error" in found
    return False


def _id_of(request: httpx2.Request) -> Any:
    with suppress(ValueError, AttributeError, httpx2.RequestNotRead):
        return json.loads(request.content).get("id")
    return None
