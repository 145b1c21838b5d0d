"""Whatever goes wrong below becomes one answer; the fault of a route is logged and stays private."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.errors import RequestError
from deerflow_app.gateway.errors import response_for

_POLICY_VIOLATION = 1008


class Failures:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] in ("http.response.start", "websocket.accept", "websocket.close")
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except ClientDisconnect:
            return  # nobody is there to be told
        except Exception as error:
            if started:
                raise  # the connection breaks off: the client must not take what it has for the whole
            if scope["type"] == "websocket":
                await self._refuse(HTTPConnection(scope), error, send)
            else:
                await response_for(error, Request(scope))(scope, receive, send)

    async def _refuse(self, connection: HTTPConnection, error: Exception, send: Send) -> None:
        if not isinstance(error, RequestError):
            raise error
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": str(error)})
