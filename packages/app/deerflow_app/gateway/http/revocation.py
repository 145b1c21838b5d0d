"""What goes on (streams, sockets) ends when what was shown for it is worth nothing any more: the session ended, the token was
revoked, the user is gone."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.errors import UnauthenticatedError
from deerflow.storage.errors import is_out_of_reach
from deerflow_app.gateway.auth.authenticator import Authenticator

RECHECK_SECONDS = 30.0
POLICY_VIOLATION = 1008


class Revocation:
    """Stands inside of Authentication.

    An answer is looked at when something of it is sent, which its heartbeats see to; so it costs short ones nothing.

    Args:
        seconds: between one look and the next.
    """

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator, seconds: float = RECHECK_SECONDS) -> None:
        self._app = app
        self._authenticator = authenticator
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "credential" not in scope.get("state", {}):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + self._seconds
        is_stream = is_over = False

        async def checked(message: Message) -> None:
            nonlocal due, is_stream, is_over
            if message["type"] == "http.response.start":
                is_stream = all(name.lower() != b"content-length" for name, _ in message["headers"])
            elif is_stream and not is_over and clock() >= due and message.get("more_body"):
                due = clock() + self._seconds
                is_over = not await self._still_holds(scope)
                if is_over:
                    await send({"type": "http.response.body", "body": b""})
            if is_over:
                raise _RevokedError
            await send(message)

        try:
            await self._app(scope, receive, checked)
        except Exception:
            if not is_over:
                raise

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._watch(scope, send))
        try:
            await self._app(scope, receive, send)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self, scope: Scope, send: Send) -> None:
        """Closes the socket; whoever still sends is told by the server that it is closed."""
        holds = True
        while holds:
            await asyncio.sleep(self._seconds)
            holds = await self._still_holds(scope)
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})

    async def _still_holds(self, scope: Scope) -> bool:
        try:
            await self._authenticator.authenticate(HTTPConnection(scope))
        except UnauthenticatedError:
            return False
        except Exception as error:
            if not is_out_of_reach(error):
                raise
        return True


class _RevokedError(OSError):
    """To whoever sends it looks as though the client had left."""
