"""What a client gets when something goes wrong: one shape, from one place, whatever raised it."""

from __future__ import annotations

import errno
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from sqlalchemy.exc import DataError, StatementError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.errors import Code, Reason, RequestError
from deerflow.storage.errors import DatabaseError
from deerflow.storage.sql import not_unicode
from deerflow_app.gateway.auth.throttle import ThrottledError

log = logging.getLogger(__name__)


class FieldError(BaseModel):
    """What is wrong with one field."""

    field: str = Field(examples=["input.messages.0"])
    message: str


class ErrorBody(BaseModel):
    """Every error."""

    detail: str = Field(description="For people: what happened and what to do.")
    code: Code = Field(description="For programs.", examples=["not_found"])
    reason: Reason | None = Field(default=None, description="A finer cause than the code, where there is one.")
    values: dict[str, str | float] | None = Field(
        default=None, description="Of the sentence, to word it in other languages."
    )
    errors: list[FieldError] | None = Field(default=None, description="Field by field, where a request is not valid.")


def described(descriptions: Mapping[int, str], model: Any = ErrorBody) -> dict[int | str, dict[str, Any]]:
    """For the ``responses`` of a route: what it means when its answer is an error of this status."""
    return {status: {"model": model, "description": text} for status, text in descriptions.items()}


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
        "description": text,
    }
    for status, text in {
        400: "The request cannot be read.",
        401: "Nobody is signed in, or the session has ended.",
        403: "Not allowed to this user, token or page.",
        404: "There is no such thing, or it belongs to someone else.",
        409: "It does not fit the present state.",
        413: "The request is too large.",
        422: "The request is not valid; `errors` names the fields.",
        429: "Too often; `Retry-After` says when to try again.",
        500: "A fault of the server; the log has details under the reference id.",
        503: "A part that the request needs is out of order.",
    }.items()
}
"""Documented with every route. Refers to what :func:`described` brings: a field of its own for each would take 11 MB and a second."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_CODES: Mapping[int, Code] = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
"""Of what Starlette, FastAPI and BodyLimit raise."""


def install(app: FastAPI) -> None:
    """Let ``app`` answer all errors of routes in this shape; what no route expects is for the Failures middleware."""
    for kind in (RequestError, StarletteHTTPException, RequestValidationError):
        app.add_exception_handler(kind, response_for)


async def response_for(request: Request, error: Exception) -> Response:
    """The answer to ``error``. What is unexpected is logged with an id, and the client learns only the id."""
    answer = _answer_to(error, request)
    if not request.scope["path"].startswith("/api/openai/"):
        return answer
    body = orjson.loads(answer.body)
    fields = body.get("errors") or [{"field": getattr(error, "param", None)}]
    param = fields[0]["field"]
    kind = "invalid_request_error" if answer.status_code < 500 else "server_error"
    as_openai = {"message": body["detail"], "type": kind, "code": body["code"], "param": param}
    headers = {key: value for key, value in answer.headers.items() if key not in ("content-length", "content-type")}
    return JSONResponse({**body, "error": as_openai}, answer.status_code, headers=headers)


def _answer_to(error: Exception, request: Request) -> Response:
    if isinstance(error, RequestError):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
        if isinstance(error, ThrottledError):
            headers = {"Retry-After": str(error.retry_after)}
        return _respond(error.status, str(error), error.code, reason=error.reason, values=error.values, headers=headers)
    if isinstance(error, RequestValidationError):
        return _invalid(error, request)
    if isinstance(error, StarletteHTTPException):
        if isinstance(error.__cause__, UnicodeDecodeError):
            return _respond(400, _not_utf8(error.__cause__), "invalid_json")
        detail = error.detail if isinstance(error.detail, str) else HTTPStatus(error.status_code).phrase
        if error.status_code == 404 and detail == HTTPStatus(404).phrase:
            detail = f"There is nothing at {request.method} {request.scope['path']}."
        return _respond(error.status_code, detail, _CODES.get(error.status_code, "error"), headers=error.headers)
    if _cannot_be_stored(error):
        log.warning("%s %r: %s", request.method, request.scope["path"], type(error).__name__)
        return _respond(422, "The request holds text or a number that cannot be stored.", "invalid_request")
    if isinstance(error, DatabaseError):
        log.error("%s", error)
        return _respond(503, error.public, error.code)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        log.error("%s %r: %s", request.method, request.scope["path"], error)
        return _respond(503, "The server's disk is full. Whoever looks after it has to make room.", "no_space")
    reference = secrets.token_hex(6)
    log.error("%s %r failed, reference id %s", request.method, request.scope["path"], reference, exc_info=error)
    return _respond(500, f"Internal error. The server's log tells more under reference id {reference}.", "internal")


def _respond(
    status: int,
    detail: str,
    code: Code,
    *,
    reason: Reason | None = None,
    values: Mapping[str, str | float] | None = None,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    # A message may quote what came in, and that may be no valid Unicode.
    content: dict[str, Any] = {"detail": _whole(detail), "code": code}
    if reason is not None:
        content["reason"] = reason
    if values:
        content["values"] = {key: _whole(value) if isinstance(value, str) else value for key, value in values.items()}
    if errors is not None:
        content["errors"] = errors
    return JSONResponse(content, status, headers=headers)


def _invalid(error: RequestValidationError, request: Request) -> Response:
    found = error.errors()
    if found and found[0]["type"] == "json_invalid":
        return _respond(400, f"The body is not valid JSON: {found[0]['ctx']['error']}.", "invalid_json")
    content_type = request.headers.get("content-type", "")
    if any(tuple(one["loc"]) == ("body",) for one in found) and not _is_json(content_type) and _has_body(request):
        named = f"not as {content_type.split(';')[0]}" if content_type else "and say so in Content-Type"
        return _respond(415, f"Send the body as application/json, {named}.", "unsupported_media_type")
    errors = [_field_error(one) for one in found]
    first = f"{errors[0]['field']}: {errors[0]['message']}" if errors else "The request is not valid."
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return _respond(422, first + more, "invalid_request", errors=errors)


def _not_utf8(error: UnicodeDecodeError) -> str:
    """Name the field of a JSON body whose bytes cannot be decoded, else the first of them."""
    try:
        place = not_unicode(json.loads(error.object.decode("utf-8", "surrogateescape")))
    except (ValueError, RecursionError):
        place = None
    return f"{place or f'The body (byte {error.start + 1})'}: this text is not valid UTF-8. Send it as UTF-8."


def _field_error(one: Any) -> dict[str, str]:
    """Without what was sent: that may be a password."""
    path = [str(part) for part in one["loc"]]
    field = ".".join(path[1:] if path[:1] == ["body"] else path) or "body"
    message = str(one["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if one["type"] == "string_unicode":
        message = "this text is not valid UTF-8. Send it as UTF-8, without halves of surrogate pairs."
    return {"field": _whole(field), "message": _whole(message)}


def _whole(text: str) -> str:
    """Return ``text`` without what is no valid Unicode."""
    return text.encode(errors="replace").decode()


def _is_json(content_type: str) -> bool:
    kind = content_type.split(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _cannot_be_stored(error: Exception) -> bool:
    """PostgreSQL knows no NUL in text, neither database lone surrogates, and integers have 64 bits."""
    if isinstance(error, DataError | UnicodeEncodeError):
        return True
    return isinstance(error, StatementError) and isinstance(error.orig, TypeError | UnicodeEncodeError | OverflowError)


_POLICY_VIOLATION = 1008


@dataclass
class Failures:
    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] in ("http.response.start", "websocket.accept", "websocket.close")
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except ClientDisconnect:
            return  # nobody is there to be told
        except Exception as error:
            if started:
                raise  # the connection breaks off: the client must not take what it has for the whole
            if scope["type"] == "http":
                response = await response_for(Request(scope), error)
                await response(scope, receive, send)
            elif isinstance(error, RequestError):
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": str(error)})
            else:
                raise
