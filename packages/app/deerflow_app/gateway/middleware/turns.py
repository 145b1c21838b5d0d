"""Requests that come in a crowd are begun one after the other."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from deerflow.turns import Turns


class InTurn:
    """Each request takes a turn of the event loop before anything is done for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._turns.take()
        await self._app(scope, receive, send)
