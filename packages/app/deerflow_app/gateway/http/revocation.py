"""End open streams and sockets of a person whose session or token has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.errors import UnauthenticatedError
from deerflow.storage.errors import is_out_of_reach
from deerflow_app.gateway.auth import Authenticator

RECHECK_SECONDS = 1.0
POLICY_VIOLATION = 1008


@dataclass
class Revocation:
    """Stands inside of Authentication. Answers of a known length are not looked at."""

    app: ASGIApp
    authenticator: Authenticator
    seconds: float
    """Between one look and the next."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        credential = scope.get("state", {}).get("credential")
        if credential is None or credential.user is None:  # no one is signed in
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            closed = {"type": "websocket.close", "code": POLICY_VIOLATION}
            async with self._watched(scope, lambda: send(closed)):
                await self.app(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_over = False
        sending = asyncio.Lock()

        async def end() -> None:
            nonlocal is_over
            is_over = True
            async with sending:
                await send({"type": "http.response.body", "body": b""})

        async def checked(message: Message) -> None:
            if message["type"] == "http.response.start" and not _has_length(message):
                await watching.enter_async_context(self._watched(scope, end))
            async with sending:
                if is_over:
                    raise _RevokedError
                await send(message)

        async with AsyncExitStack() as watching:
            try:
                await self.app(scope, receive, checked)
            except Exception:
                if not is_over:
                    raise

    @asynccontextmanager
    async def _watched(self, scope: Scope, end: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Calls ``end`` as soon as the credential of ``scope`` holds no more."""

        async def watch() -> None:
            holds = True
            while holds:
                await asyncio.sleep(self.seconds)
                holds = await self._still_holds(scope)
            await end()

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _still_holds(self, scope: Scope) -> bool:
        try:
            await self.authenticator.authenticate(HTTPConnection(scope))
        except UnauthenticatedError:
            return False
        except Exception as error:
            if not is_out_of_reach(error):
                raise
        return True


def _has_length(start: Message) -> bool:
    return any(name.lower() == b"content-length" for name, _ in start["headers"])


class _RevokedError(OSError):
    """To the sender it looks as though the client had left."""
